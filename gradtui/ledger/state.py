"""What the ledger knows about one process at one event: plain records that rules, reports and panes read and never change."""

from __future__ import annotations

from collections import deque
from typing import Literal

import msgspec

from gradtui.events import CallSite, OptimizerInfo, ParameterInfo

GradState = Literal["none", "zero", "fresh", "spent"]
"""`none`: no tensor · `zero`: a tensor of zeros · `fresh`: written since last cleared, no step has used it · `spent`: a step has
used it and nothing has cleared it since (also when more was added onto it: then some contributions are unused)."""

KEPT_CONTRIBUTIONS = 64
"""Newest contributions kept in full for one parameter; older ones are only counted."""

HISTORY = 32
"""Backward norms kept for a trend."""


class Contribution(msgspec.Struct, gc=False):
    """What one backward added to one parameter's gradient."""

    seq: int
    """Event that told it."""
    call: int
    """The backward's call id."""
    backward: int
    """The backward's ordinal."""
    loss: str
    site: CallSite | None
    incoming: float
    """Norm of what was added; NaN when it was not measured."""
    before: float
    """Norm of the sum before; -1.0 when there was no gradient."""
    after: float
    """Norm of the sum after."""
    cosine: float | None = None
    """Between what was added and the sum before, from the three norms; None without a sum before or when not measured."""
    finite: bool = True
    scale: float = 1.0
    """Loss scale it carries."""
    used_by: int = 0
    """Event of the first step (or hand-written update) that consumed it; 0 while none has."""


class Clear(msgspec.Struct, frozen=True, gc=False):
    """When a gradient was last cleared, how and by whom."""

    seq: int
    site: CallSite | None
    how: Literal["none", "zeros"]
    by: Literal["optimizer", "module", "hand", "backward"]
    """`backward`: inside a backward (optimizer-in-backward)."""
    owner: str


class ParameterState(msgspec.Struct):
    """One parameter and its gradient, now."""

    info: ParameterInfo
    state: GradState = "none"
    norm: float = 0.0
    """Last known norm of `.grad`; 0.0 when there is none; NaN when unknown."""
    finite: bool = True
    contributions: list[Contribution] = msgspec.field(default_factory=list)
    """Since it was last cleared, oldest first, at most KEPT_CONTRIBUTIONS."""
    folded: int = 0
    """Older contributions since then that are no longer kept."""
    cleared: Clear | None = None
    """None: never cleared in this run."""
    steps_since_clear: int = 0
    """Steps (or hand-written updates) that consumed this gradient since it was last cleared."""
    last_step: int = 0
    """Event of the last of them; 0 for none."""
    owners: tuple[int, ...] = ()
    """Ids of the optimizers that own it."""
    scale: float = 1.0
    """Loss scale the gradient carries now; 1.0 when unscaled."""
    clipped: int = 0
    """Event that clipped it since it was last cleared; 0 for none."""
    edited: int = 0
    """Event of the last hand-made edit (GradsEdited) since it was last cleared; 0 for none."""
    backwards: int = 0
    """Contributions received in the whole run."""
    history: deque[float] = msgspec.field(default_factory=lambda: deque(maxlen=HISTORY))
    """Norm of `.grad` after each of its last backwards, oldest first."""
    unused: int = 0
    """How many of the newest contributions no step (or hand-written update) has consumed yet."""
    waiting: int = 0
    """How many of the newest contributions no optimizer step has consumed yet. A hand-written update of a parameter that an
    optimizer owns (SAM's ascent, weight clipping) uses contributions, but they still wait for the step."""
    stale: int = 0
    """Event of the backward that added onto this gradient after a step had used it, with nothing between to excuse it; 0 for none."""
    stepped_by: tuple[int, ...] = ()
    """Optimizers whose step used this gradient since a backward last wrote to it (0: a hand-written update)."""
    unscaled: int = 0
    """Event that took the loss scale off it since it was last cleared or used; 0 for none."""
    spent_by: int = 0
    """Optimizer whose step used it last; 0: a hand-written update, or none."""
    own_making: int = 0
    """Event at which the program put a gradient that is not a scaled copy of the old one here, since the last step; 0 for none."""
    last_backward: int = 0
    """Event of its last contribution; 0 for none."""
    steps: int = 0
    """Steps (or hand-written updates) that consumed it in the whole run."""


class BackwardRecord(msgspec.Struct):
    """One backward and what became of its contributions."""

    seq: int
    call: int
    ordinal: int
    site: CallSite | None
    loss: str
    value: float | None = None
    value_finite: bool = True
    parameters: tuple[int, ...] = ()
    """All parameters it wrote to, in backward order."""
    owned: int = 0
    """How many of them an optimizer owned then."""
    used: int = 0
    """Contributions consumed by a step or a hand-written update."""
    cleared: int = 0
    """Contributions cleared unused."""
    cleared_owned: int = 0
    first_clear: tuple[int, int] = (0, 0)
    """(event, ordinal) of the first call that cleared some of it unused."""
    first_clear_site: CallSite | None = None
    used_by: int = 0
    """First event that consumed some of it; 0 for none."""
    used_by_optimizer: int = 0
    owners: tuple[int, ...] = ()
    """Optimizers that own some of its parameters."""
    inputs: bool = False
    """It also reached a plain tensor that no optimizer owns (an input being attacked or explained; a weight updated by hand)."""
    finite: bool = True
    """Everything it contributed was finite."""
    scale: float = 1.0
    divisor: float = 1.0
    reduction: str = ""
    root: str = ""
    training: str = ""
    nodes: int = 0
    retain_graph: bool = False
    create_graph: bool = False
    eval_modules: tuple[str, ...] = ()
    reached: int = 0
    elements: int = 0
    """Elements that the mean at the root was taken over; 0 when not known."""
    unsynced: bool = False
    parent: int = 0

    @property
    def pending(self) -> int:
        """Contributions that are neither consumed nor cleared yet."""
        return len(self.parameters) - self.used - self.cleared


class OptimizerState(msgspec.Struct):
    """One optimizer, now."""

    info: OptimizerInfo
    window: list[int] = msgspec.field(default_factory=list)
    """Ordinals of the backwards that contributed to its parameters since its last step (at most 4,096 kept)."""
    windows: deque[int] = msgspec.field(default_factory=lambda: deque(maxlen=1000))
    """Sizes of its accumulation windows: backwards that went into each of its steps."""
    steps: int = 0
    last_step: int = 0
    """Event of its last step; 0 for none."""
    lr: tuple[float, ...] = ()
    site: CallSite | None = None
    """Line of its last step."""
    seen: int = 0
    """Event at which it was first met."""
    empty_steps: int = 0
    """Steps at which none of its parameters held a gradient, or all held exact zeros that nothing had been added to."""
    skipped: int = 0
    """Steps that a GradScaler skipped in a row, up to now."""
    by_hand: int = 0
    """Steps on gradients that the program had put there itself."""
    scaled: int = 0
    """Steps that a GradScaler made."""
    averaged: dict[str, int] = msgspec.field(default_factory=dict)
    """Windows of several backwards by how their losses were weighed: `averaged`, `summed`, `unknown`."""


class Counts(msgspec.Struct):
    """Calls seen in one process, by kind."""

    backward: int = 0
    step: int = 0
    zero_grad: int = 0
    zero_grad_by_hand: int = 0
    clip: int = 0
    unscale: int = 0
    scaler_step: int = 0
    scaler_update: int = 0
    scheduler: int = 0
    parameters_edited: int = 0
    """Hand-written updates."""


class LineTally(msgspec.Struct):
    """How often one line made a call of one kind, and what it was made on."""

    site: CallSite | None
    count: int = 0
    first: int = 0
    """Ordinal of the first."""
    detail: dict[str, int] = msgspec.field(default_factory=dict)
    """How often each variety was seen: an optimizer's name, a limit, how gradients were cleared (at most 40)."""


class OpenClosure(msgspec.Struct):
    """A step(closure) in progress."""

    call: int
    optimizer: int
    seq: int
    evaluation: int = 0
    """Of its last backward, where that is known."""
