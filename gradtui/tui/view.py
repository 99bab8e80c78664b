"""What panes are given to draw: one frozen picture of the run at the cursor, made once a paint. Panes read it and keep nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from gradtui.events import CallKind
from gradtui.ledger.state import Counts, OptimizerState, ParameterState
from gradtui.rules.finding import Finding, Severity
from gradtui.tui.keymap import State
from gradtui.wire.messages import Breakpoint, Ended, Frame, TensorView, Where

if TYPE_CHECKING:
    from gradtui.tui.terminal_text import TerminalText


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """One line of the timeline."""

    seq: int
    process: int
    kind: str
    """Event class."""
    mark: str
    """Role of its dot: one a kind of call."""
    what: str
    """`backward`, `step`, `zero_grad`, …"""
    ordinal: int
    detail: str
    file: str = ""
    line: int = 0
    duration: float = 0.0
    depth: int = 0
    parameters: frozenset[int] = frozenset()
    """Whose gradients it changed (at most 10,000)."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A finding with its number in the timeline."""

    id: int
    finding: Finding


@dataclass(frozen=True, slots=True)
class SourceText:
    """A file of the person's program, as it was when the run met it."""

    file: str
    lines: tuple[str, ...]
    kept: bool = True
    """False: read from disk now, and it may differ from what ran."""


@dataclass(frozen=True, slots=True)
class SiteMark:
    """Gradient calls seen on one line."""

    kind: CallKind
    count: int


@dataclass(frozen=True, slots=True)
class Selection:
    """What the person has picked out; survives resizes, steps and time travel."""

    process: int = 0
    parameter: int = 0
    """0: none yet."""
    finding: int = 0


@dataclass(frozen=True, slots=True)
class TensorSight:
    """The tensor on show, or why there is none."""

    view: TensorView | None = None
    note: str = ""
    stale: bool = False
    """The run has gone on since it was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A run at one event. The ledger's records in it are read at once and never changed."""

    state: State = "starting"
    script: str = ""
    command: tuple[str, ...] = ()
    interpreter: str = ""
    head: int = 0
    cursor: int = 0
    where: Where | None = None
    """The call that is about to run, when stopped and at the head."""
    ended: Ended | None = None
    parameters: dict[int, ParameterState] = field(default_factory=dict)
    optimizers: dict[int, OptimizerState] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)
    processes: tuple[int, ...] = ()
    events: tuple[EventRow, ...] = ()
    """Around the cursor, oldest first."""
    findings: tuple[Listed, ...] = ()
    source: SourceText | None = None
    line: int = 0
    """The line the arrow is on; 0 for none."""
    marks: dict[int, SiteMark] = field(default_factory=dict)
    """By line of the file on show."""
    breakpoints: tuple[Breakpoint, ...] = ()
    output: TerminalText | None = None
    selection: Selection = Selection()
    tensor: TensorSight = TensorSight()
    changed: frozenset[int] = frozenset()
    """Parameters whose gradient the last step (or the event at the cursor) changed."""
    message: str = ""
    """For the ticker, once."""
    message_role: str = ""
    asking: bool = False
    """The script seems to wait for a line of input."""
    round_trip: float = 0.0
    """Seconds to the terminal and back; 0 when not known."""

    @property
    def live(self) -> bool:
        """The cursor is at the head."""
        return self.cursor >= self.head

    @property
    def selected(self) -> ParameterState | None:
        """The parameter that Gradient and Accumulation show."""
        return self.parameters.get(self.selection.parameter)

    @property
    def event(self) -> EventRow | None:
        """The event at the cursor, or the last one shown before it."""
        before = [row for row in self.events if row.seq <= self.cursor]
        return before[-1] if before else None

    @property
    def frames(self) -> tuple[Frame, ...]:
        """The person's stack at the stop, innermost first."""
        return self.where.frames if self.where else ()

    def worst(self) -> Severity | None:
        """Severity of the gravest finding on show."""
        found = {item.finding.severity for item in self.findings if item.finding.status != "withdrawn"}
        return next((level for level in ("error", "warning", "info") if level in found), None)


SEVERITY_ROLES: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "info"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorWish:
    """What the Gradient pane would like to be shown of the selected parameter."""

    what: Literal["grad", "value"] = "grad"
    rows: int = 16
    columns: int = 32
    index: tuple[int, ...] = ()
    values_at: tuple[int, int] = (0, 0)
    values: tuple[int, int] = (0, 0)
