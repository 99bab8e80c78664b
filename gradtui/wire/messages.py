"""What host and client say to each other over the run's client socket: one JSON object a line, typed by these structs.

The client sends requests; the host answers each request that has an answer with a `Reply` of the same `id`, and on its own
account says when the timeline has grown, when the run stops and goes on, and when it has ended. Facts themselves are never sent:
the client reads them from the timeline.
"""

from __future__ import annotations

from typing import Any, Literal, Union

import msgspec

from gradtui.events import CallKind


class Breakpoint(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Stop before a call of `kind`, at a source line, after a write to a parameter, or on a finding of `rule`. All given fields must hold."""

    id: int
    kind: CallKind | None = None
    file: str = ""
    line: int = 0
    parameter: int = 0
    rule: str = ""


# -- client to host -----------------------------------------------------------------------------------------------


class Hello(msgspec.Struct, frozen=True, tag="hello"):
    """First message of a client. `readonly` clients may look and not steer."""

    readonly: bool = False


class StepOver(msgspec.Struct, frozen=True, tag="step_over"):
    """Run the call the arrow is on; stop before the next call at the same depth or above."""


class StepInto(msgspec.Struct, frozen=True, tag="step_into"):
    """Run into the call: stop before the first call made inside it (a closure's), else before the next."""


class FinishWindow(msgspec.Struct, frozen=True, tag="finish_window"):
    """Run until an optimizer step has run; stop before the call that follows. Inside a call: leave it."""


class Continue(msgspec.Struct, frozen=True, tag="continue"):
    """Run freely until a breakpoint, a finding (when set) or a pause."""


class RunTo(msgspec.Struct, frozen=True, tag="run_to"):
    """Stop before the next call of one of `kinds`, after a write to `parameter`, or at `file`:`line`."""

    kinds: tuple[CallKind, ...] = ()
    parameter: int = 0
    file: str = ""
    line: int = 0
    finding: bool = False
    """Stop at the next finding of any severity, else at the end."""


class Pause(msgspec.Struct, frozen=True, tag="pause"):
    """Stop at the next call."""


class SetStops(msgspec.Struct, frozen=True, tag="set_stops"):
    """Which kinds of call stepping stops at, and whether error findings (or suspicions) stop a free run."""

    kinds: tuple[CallKind, ...]
    on_error: bool = True
    on_suspicion: bool = False


class SetBreakpoints(msgspec.Struct, frozen=True, tag="set_breakpoints"):
    """Replaces all breakpoints."""

    breakpoints: tuple[Breakpoint, ...]


class ViewTensor(msgspec.Struct, frozen=True, tag="view_tensor"):
    """A bounded view of a tensor while the run is stopped. Answered by a Reply whose `result` is a TensorView."""

    id: int
    parameter: int
    what: Literal["grad", "value"] = "grad"
    process: int = 0
    rows: int = 16
    columns: int = 32
    pool: Literal["absmax", "mean"] = "absmax"
    index: tuple[int, ...] = ()
    """For tensors of more than two dimensions: indices into the leading ones (default zeros)."""
    values_at: tuple[int, int] = (0, 0)
    """Row and column at which the block of plain values starts."""
    values: tuple[int, int] = (0, 0)
    """Rows and columns of plain values wanted."""
    unscaled: bool = False
    """Divide by the loss scale."""
    bins: int = 21


class TypeInput(msgspec.Struct, frozen=True, tag="type_input"):
    """Bytes for the script's terminal, as Latin-1 text."""

    data: str


class Resize(msgspec.Struct, frozen=True, tag="resize"):
    """Size of the script's terminal."""

    rows: int
    columns: int


class Stop(msgspec.Struct, frozen=True, tag="end"):
    """End the script: SIGINT, SIGTERM or SIGKILL."""

    signal: Literal["INT", "TERM", "KILL"] = "TERM"


class Leave(msgspec.Struct, frozen=True, tag="leave"):
    """The client goes; `free` lets a stopped run continue."""

    free: bool = True


Request = Union[
    Hello,
    StepOver,
    StepInto,
    FinishWindow,
    Continue,
    RunTo,
    Pause,
    SetStops,
    SetBreakpoints,
    ViewTensor,
    TypeInput,
    Resize,
    Stop,
    Leave,
]


# -- host to client -----------------------------------------------------------------------------------------------


class Frame(msgspec.Struct, frozen=True):
    """One of the person's frames at a stop, innermost first."""

    file: str
    line: int
    function: str


class Where(msgspec.Struct, frozen=True, kw_only=True):
    """The call a stopped process is about to make."""

    process: int
    kind: CallKind
    call: int
    ordinal: int
    """Which call of its kind it will be."""
    depth: int = 0
    """0 at top level; 1 inside a step(closure) or a backward, and so on."""
    reason: str = ""
    """Why it stopped, for people: `step`, `pause`, `breakpoint 2`, `finding stale-gradient`."""
    expression: str = ""
    """Loss, optimizer or module the call is made on."""
    value: float | None = None
    """Value of the loss, for a backward."""
    frames: tuple[Frame, ...] = ()


class Welcome(msgspec.Struct, frozen=True, tag="welcome"):
    """Answer to Hello: where the run stands."""

    run: str
    """Run directory."""
    timeline: str
    """Path of the timeline."""
    command: tuple[str, ...]
    interpreter: str
    state: Literal["starting", "running", "stopped", "ended"]
    seq: int
    where: tuple[Where, ...] = ()


class Grown(msgspec.Struct, frozen=True, tag="grown"):
    """The timeline holds events up to `seq` and `output` bytes; `findings` counts changes to findings."""

    seq: int
    output: int = 0
    findings: int = 0


class Stopped(msgspec.Struct, frozen=True, tag="stopped"):
    """Every process that makes gradient calls waits; events up to `seq` are what has happened."""

    seq: int
    where: tuple[Where, ...]


class Running(msgspec.Struct, frozen=True, tag="running"):
    """The run goes on. `free`: no stop is planned."""

    free: bool = True


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """The script is over."""

    seq: int
    exit_code: int | None = None
    signal: int | None = None
    observed: bool = True
    """False: no process joined the run."""


class Reply(msgspec.Struct, frozen=True, tag="reply"):
    """Answer to the request with this id; `error` is one line for people, empty when all is well."""

    id: int
    result: dict[str, Any] | None = None
    error: str = ""


Message = Union[Welcome, Grown, Stopped, Running, Ended, Reply]


class TensorView(msgspec.Struct, frozen=True, kw_only=True):
    """A bounded picture of a tensor, as 2-D: vectors are one row folded to the wanted width, leading dimensions are indexed."""

    parameter: int
    what: str
    missing: str = ""
    """Why there is nothing to show (`.grad is None`); empty when there is."""
    shape: tuple[int, ...] = ()
    dtype: str = ""
    device: str = ""
    placement: str = ""
    index: tuple[int, ...] = ()
    scale: float = 1.0
    """Loss scale that the numbers still carry."""
    grid: tuple[tuple[float, ...], ...] = ()
    """Pooled cells, row by row: the value of largest magnitude in the cell (absmax, sign kept) or the mean. NaN and Inf stay."""
    pooled: tuple[int, int] = (1, 1)
    """Elements per cell, down and across."""
    plane: tuple[int, int] = (0, 0)
    """Rows and columns of the 2-D plane the grid shows."""
    norm: float = 0.0
    mean: float = 0.0
    std: float = 0.0
    minimum: float = 0.0
    minimum_at: tuple[int, ...] = ()
    maximum: float = 0.0
    maximum_at: tuple[int, ...] = ()
    zeros: int = 0
    nans: int = 0
    infs: int = 0
    count: int = 0
    histogram: tuple[int, ...] = ()
    edges: tuple[float, ...] = ()
    """One more than `histogram`; finite values only."""
    values: tuple[tuple[float, ...], ...] = ()
    values_at: tuple[int, int] = (0, 0)


decode_request = msgspec.json.Decoder(Request).decode
decode_message = msgspec.json.Decoder(Message).decode
encode_line = msgspec.json.Encoder().encode
"""JSON has no NaN: numbers that are not finite must be sent through `as_json_number`."""


def as_json_number(value: float) -> float | str:
    """A float as JSON can carry it: `nan`, `inf`, `-inf` as strings."""
    return value if value - value == 0 else repr(value)


def view_of(result: dict[str, Any]) -> TensorView:
    """A TensorView from a Reply's result, with the strings `nan`, `inf`, `-inf` turned back into floats."""
    return msgspec.convert(result, TensorView, strict=False)
