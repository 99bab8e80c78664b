"""The facts of a run: frozen records in the past tense, shared by probe, host and client; imports nothing of ours.

Every event carries the `Origin` fields. Norms are Euclidean norms of whole tensors, in the units of the gradient
(for a gradient under loss scaling: still scaled; `scale` tells by how much). Parallel tuples belong together: the
i-th entry of each is about the i-th parameter id.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Union

CallKind = Literal["backward", "step", "zero_grad", "clip", "unscale", "scaler_step", "scaler_update", "scheduler"]
"""Calls at which a run can stop."""

CALL_KINDS: tuple[CallKind, ...] = (
    "backward",
    "step",
    "zero_grad",
    "clip",
    "unscale",
    "scaler_step",
    "scaler_update",
    "scheduler",
)

DEFAULT_STOPS: tuple[CallKind, ...] = ("backward", "step", "zero_grad")


@dataclass(frozen=True, slots=True)
class CallSite:
    """The person's line behind an event."""

    file: str
    """Absolute path, or a name such as `<stdin>`."""
    line: int
    function: str
    """Qualified name of the function the line is in; `<module>` at top level."""
    source: str = ""
    """The call as written, one line, at most 200 characters; empty when the source cannot be read."""
    expression: str = ""
    """What the call was made on: `loss` in `loss.backward()`, `optimizer` in `optimizer.step()`."""
    framework: str = ""
    """`package/file.py:line function` of the framework frame that made the call for the person; empty without one."""


@dataclass(frozen=True, slots=True)
class ParameterInfo:
    """A leaf tensor that can hold a gradient."""

    id: int
    """Unique within its process; never reused."""
    name: str
    """As the person knows it: `model.conv1.weight`, `W`."""
    shape: tuple[int, ...]
    dtype: str
    device: str
    requires_grad: bool = True
    is_parameter: bool = True
    """A torch.nn.Parameter (False: a plain tensor such as an input being attacked)."""
    registered: bool = False
    """Some live module lists it in its parameters()."""
    module: str = ""
    """Class name of the module that holds it; empty without one."""
    root: str = ""
    """The person's name of the outermost module that holds it."""
    shared: tuple[str, ...] = ()
    """Its other names, for shared weights."""
    made: CallSite | None = None
    """The person's line at which the nn.Parameter came to be, where that was seen."""


@dataclass(frozen=True, slots=True)
class OptimizerInfo:
    """An optimizer and what it owns."""

    id: int
    name: str
    """The person's variable, or the class name where none was found."""
    kind: str
    """Class name."""
    parameters: tuple[int, ...]
    """Ids of every parameter in its groups, in order."""
    lr: tuple[float, ...] = ()
    """One a group."""
    settings: tuple[tuple[str, float], ...] = ()
    """Numeric defaults (momentum, weight_decay, …)."""
    reads_closure: bool = False
    """It re-evaluates a closure within one step (LBFGS)."""
    made: CallSite | None = None
    """The person's line at which the optimizer was built, where that was seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What every event has."""

    seq: int = 0
    """Position in the run, from 1, without gaps; given by the host."""
    process: int = 0
    """Index of the process in the run, from 0, in order of joining."""
    call: int = 0
    """The call this event is about: unique in its process; start, progress and end of one call share it."""
    parent: int = 0
    """The call inside which this one was made (a closure's backward inside its step); 0 at top level."""
    ordinal: int = 0
    """Which call of its kind this is in its process, from 1; 0 for events that are not calls."""
    site: CallSite | None = None
    time: float = 0.0
    """Seconds since the epoch at which the call began."""
    duration: float = 0.0
    """Seconds the call took, less our own work; 0 for events that are not ends of calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessJoined(Origin):
    """A process made its first gradient call and joined the run."""

    pid: int
    rank: int = 0
    world_size: int = 1
    argv: tuple[str, ...] = ()
    python: str = ""
    torch: str = ""
    main: bool = True
    """It is the process the host started (False: a child of it)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessEnded(Origin):
    """A process closed its connection; the exit status is known for the one the host started."""

    exit_code: int | None = None
    signal: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ParametersSeen(Origin):
    """Parameters met for the first time, or whose description changed (same id, later record wins)."""

    parameters: tuple[ParameterInfo, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerSeen(Origin):
    """An optimizer met for the first time, or whose groups changed."""

    optimizer: OptimizerInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Contributions:
    """What one backward added, parameter by parameter. NaN marks a norm that was not measured."""

    parameters: tuple[int, ...] = ()
    incoming: tuple[float, ...] = ()
    """Norm of what was added."""
    before: tuple[float, ...] = ()
    """Norm of `.grad` before; -1.0 where `.grad` was None."""
    after: tuple[float, ...] = ()
    """Norm of `.grad` after."""
    finite: tuple[bool, ...] = ()
    """False where the incoming gradient (or, where only that is known, the sum) holds NaN or Inf.
    A finite gradient may have an infinite norm when its squares overflow: trust this, not the norm."""
    tiny: tuple[float, ...] = ()
    """Share of the elements (0 to 1) that are exactly zero or subnormal, measured for 16-bit gradients; empty otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackwardStarted(Origin):
    """Sent when something happens inside a backward (a nested step) or the run stops before it."""

    loss: str
    """The loss expression as written."""
    value: float | None = None
    """Value of a scalar loss; None when it is not a scalar or not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackwardProgressed(Origin):
    """Contributions that landed before a nested call inside the backward could use or clear them."""

    contributions: Contributions


@dataclass(frozen=True, slots=True, kw_only=True)
class BackwardEnded(Origin):
    """A backward ran. `contributions` holds those not already told by BackwardProgressed."""

    loss: str
    value: float | None = None
    value_finite: bool = True
    contributions: Contributions = Contributions()
    reached: int = 0
    """How many leaves the graph reaches, known or not; -1 when the graph was not walked this time."""
    retain_graph: bool = False
    create_graph: bool = False
    root: str = ""
    """Class of the autograd node at the graph's root: `NllLossBackward0`, `DivBackward0`."""
    divisor: float = 1.0
    """Product of the constants the loss was divided by at the root of its graph (`loss / 4` gives 4)."""
    reduction: str = ""
    """`mean`, `sum` or `none` of the loss function at the root, where it can be seen."""
    scale: float = 1.0
    """Loss scale applied by a GradScaler; 1 without one."""
    training: str = ""
    """`train`, `eval`, or `mixed` over the modules that hold the parameters reached; empty when unknown."""
    eval_modules: tuple[str, ...] = ()
    """Names of dropout and batch-norm modules in eval mode (at most 20)."""
    nodes: int = 0
    """Nodes of the graph when it was walked; 0 when it was not."""
    evaluation: int = 0
    """Inside step(closure): which evaluation of the closure this backward belongs to, from 1; 0 when not known."""
    elements: int = 0
    """How many elements the mean at the root of the loss was taken over (tokens, pixels); 0 when not known."""
    unsynced: bool = False
    """It ran under DistributedDataParallel's `no_sync()`: ranks have not averaged what it added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRaised(Origin):
    """A gradient call ended by an exception, which went on to the person unchanged."""

    kind: CallKind
    error: str
    """Class name."""
    message: str
    """Text, at most 2,000 characters."""
    names: tuple[str, ...] = ()
    """For a graph used again after it was freed: the person's variables found to have carried it over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradsZeroed(Origin):
    """Gradients were cleared."""

    by: Literal["optimizer", "module", "hand"]
    owner: str
    """Name of the optimizer or module; for a clear by hand the names' common root, or empty."""
    how: Literal["none", "zeros", "nothing"]
    """What is left: None, or a tensor of zeros. `nothing`: there was no gradient to clear."""
    parameters: tuple[int, ...] = ()
    """Those that held a gradient (of any value) and no longer do."""
    optimizer: int = 0
    """Id of the optimizer, for `by="optimizer"`; 0 otherwise."""
    covers: int = 0
    """How many parameters the owner has, with or without a gradient."""
    aliased: tuple[int, ...] = ()
    """Those zeroed in place whose tensor something else in the program still holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradsClipped(Origin):
    """clip_grad_norm_ or clip_grad_value_ ran."""

    method: Literal["norm", "value"]
    limit: float
    norm: float = 0.0
    """Total norm that was returned (method `norm`); the largest absolute value is not measured for `value`."""
    given: int = 0
    """Tensors handed in."""
    parameters: tuple[int, ...] = ()
    """Those among them that held a gradient."""
    after: tuple[float, ...] = ()
    """Norm of each `.grad` afterwards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradsUnscaled(Origin):
    """GradScaler.unscale_ divided an optimizer's gradients by the loss scale."""

    optimizer: int
    scale: float
    found_inf: bool = False
    parameters: tuple[int, ...] = ()
    after: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerStepStarted(Origin):
    """Sent before a step(closure), or when something happens inside a step or the run stops before it."""

    optimizer: int
    closure: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerStepped(Origin):
    """An optimizer's step ran."""

    optimizer: int
    closure: bool = False
    lr: tuple[float, ...] = ()
    used: tuple[int, ...] = ()
    """Owned parameters that held a gradient when the step began (for a closure: when it ended)."""
    norms: tuple[float, ...] = ()
    """Norm of each gradient used, where it was measured again at the step; empty when unchanged since the last event."""
    moved: tuple[int, ...] = ()
    """Owned parameters whose storage was written."""
    frozen: tuple[int, ...] = ()
    """Owned parameters with requires_grad=False."""
    unchanged: bool | None = None
    """Every parameter used is bit for bit what it was; None when it was not compared."""
    nonfinite: tuple[int, ...] = ()
    """Parameters that came out with NaN or Inf, when compared."""
    ratios: tuple[float, ...] = ()
    """Update norm over parameter norm for each in `used`, when measured; empty otherwise."""
    by_scaler: bool = False
    """It was called by GradScaler.step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalerStepped(Origin):
    """GradScaler.step ran: it called the optimizer's step, or skipped it because gradients were not finite."""

    optimizer: int
    ran: bool
    scale: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalerUpdated(Origin):
    """GradScaler.update ran."""

    before: float
    after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerStepped(Origin):
    """A learning-rate scheduler stepped."""

    kind: str
    optimizer: int
    before: tuple[float, ...] = ()
    after: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GradsEdited(Origin):
    """Gradients changed and nobody announced it; found by comparing at the next event. Clears by hand are GradsZeroed."""

    parameters: tuple[int, ...]
    how: Literal["scaled", "replaced", "changed"]
    """`scaled`: the norm changed by about one factor for all; `replaced`: another tensor; `changed`: in place."""
    factor: float = 0.0
    """For `scaled`."""
    before: tuple[float, ...] = ()
    after: tuple[float, ...] = ()
    finite: tuple[bool, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ParametersEdited(Origin):
    """Parameters' values changed outside any optimizer step; found by comparing at the next event."""

    parameters: tuple[int, ...]
    rebound: tuple[str, ...] = ()
    """Variable names that held these leaves and now hold a tensor computed from them (no longer a leaf)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphKept(Origin):
    """Nodes of graphs whose backward is over are still alive."""

    backwards: int
    """How many earlier backwards' graphs are still alive."""
    oldest: int = 0
    """Ordinal of the backward whose graph is the oldest of them; 0 when not known."""
    nodes: int = 0
    names: tuple[str, ...] = ()
    """Variables found to hold them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WarningSeen(Origin):
    """torch issued one of its own training warnings."""

    category: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NonfiniteOrigin(Origin):
    """The first autograd node of a backward whose output was not finite while its input was (watch level `ops`)."""

    op: str
    module: str = ""
    forward: CallSite | None = None
    """The line of the forward pass that made the node."""
    cause: str = ""
    when: str = "backward"
    """`forward` when the numbers went bad in the forward pass already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeFailed(Origin):
    """A hook of ours failed and went silent; the script did not see it."""

    hook: str
    error: str


Event = Union[
    ProcessJoined,
    ProcessEnded,
    ParametersSeen,
    OptimizerSeen,
    BackwardStarted,
    BackwardProgressed,
    BackwardEnded,
    CallRaised,
    GradsZeroed,
    GradsClipped,
    GradsUnscaled,
    OptimizerStepStarted,
    OptimizerStepped,
    ScalerStepped,
    ScalerUpdated,
    SchedulerStepped,
    GradsEdited,
    ParametersEdited,
    GraphKept,
    WarningSeen,
    NonfiniteOrigin,
    ProbeFailed,
]

EVENTS: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        ProcessJoined,
        ProcessEnded,
        ParametersSeen,
        OptimizerSeen,
        BackwardStarted,
        BackwardProgressed,
        BackwardEnded,
        CallRaised,
        GradsZeroed,
        GradsClipped,
        GradsUnscaled,
        OptimizerStepStarted,
        OptimizerStepped,
        ScalerStepped,
        ScalerUpdated,
        SchedulerStepped,
        GradsEdited,
        ParametersEdited,
        GraphKept,
        WarningSeen,
        NonfiniteOrigin,
        ProbeFailed,
    )
}
"""Every event class by its name on the wire and in a timeline."""

CALL_OF: dict[str, CallKind] = {
    "BackwardEnded": "backward",
    "OptimizerStepped": "step",
    "GradsZeroed": "zero_grad",
    "GradsClipped": "clip",
    "GradsUnscaled": "unscale",
    "ScalerStepped": "scaler_step",
    "ScalerUpdated": "scaler_update",
    "SchedulerStepped": "scheduler",
}
"""Event class that ends a call of each kind. A clear by hand (`GradsZeroed` with by="hand") is no call and has ordinal 0."""
