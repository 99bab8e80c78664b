"""What the ledger knows about one process at one event: plain records that rules, reports and panes read and never change."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Literal

from gradtui.events import CallSite, OptimizerInfo, ParameterInfo

GradState = Literal["none", "zero", "fresh", "spent"]
"""`none`: no tensor · `zero`: a tensor of zeros · `fresh`: written since last cleared, no step has used it · `spent`: a step has
used it and nothing has cleared it since (also when more was added onto it: then some contributions are unused)."""

KEPT_CONTRIBUTIONS = 64
"""Newest contributions kept in full for one parameter; older ones are only counted."""

HISTORY = 32
"""Backward norms kept for a trend."""


@dataclass(slots=True)
class Contribution:
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
    cosine: float | None
    """Between what was added and the sum before, from the three norms; None without a sum before or when not measured."""
    finite: bool = True
    scale: float = 1.0
    """Loss scale it carries."""
    used_by: int = 0
    """Event of the first step (or hand-written update) that consumed it; 0 while none has."""


@dataclass(slots=True)
class Clear:
    """When a gradient was last cleared, how and by whom."""

    seq: int
    site: CallSite | None
    how: Literal["none", "zeros"]
    by: Literal["optimizer", "module", "hand", "backward"]
    """`backward`: inside a backward (optimizer-in-backward)."""
    owner: str


@dataclass(slots=True)
class ParameterState:
    """One parameter and its gradient, now."""

    info: ParameterInfo
    state: GradState = "none"
    norm: float = 0.0
    """Last known norm of `.grad`; 0.0 when there is none; NaN when unknown."""
    finite: bool = True
    contributions: list[Contribution] = field(default_factory=list)
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
    history: deque[float] = field(default_factory=lambda: deque(maxlen=HISTORY))
    """Norm of `.grad` after each of its last backwards, oldest first."""


@dataclass(slots=True)
class OptimizerState:
    """One optimizer, now."""

    info: OptimizerInfo
    window: list[int] = field(default_factory=list)
    """Ordinals of the backwards that contributed to its parameters since its last step (at most 4,096 kept)."""
    windows: deque[int] = field(default_factory=lambda: deque(maxlen=1000))
    """Sizes of its accumulation windows: backwards that went into each of its steps."""
    steps: int = 0
    last_step: int = 0
    """Event of its last step; 0 for none."""
    lr: tuple[float, ...] = ()


@dataclass(slots=True)
class Counts:
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
