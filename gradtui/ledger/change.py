"""What one event changed in a ledger, so that rules need no shadow of it."""

from __future__ import annotations

from dataclasses import dataclass

from gradtui.events import Event
from gradtui.ledger.state import BackwardRecord, OptimizerState


@dataclass(slots=True)
class Change:
    """The event and its consequences. Tuples of ids are parameters, in the event's order."""

    event: Event
    record: BackwardRecord | None = None
    """The backward that the event belongs to."""
    landed: tuple[int, ...] = ()
    """Received a contribution."""
    onto_spent: tuple[int, ...] = ()
    """Received it on top of a gradient that a step had used, with nothing between to excuse it, for the first time since."""
    onto_edited: tuple[int, ...] = ()
    """Received it on top of a used gradient that the program had edited by hand after the step."""
    onto_poisoned: tuple[int, ...] = ()
    """Received a finite contribution on top of a gradient that was not finite."""
    onto_clipped: tuple[int, ...] = ()
    """Received it on top of a gradient that had been clipped and not used yet."""
    onto_unscaled: tuple[int, ...] = ()
    """Received a contribution under loss scaling on top of a gradient whose scale had been taken off."""
    nonfinite: tuple[int, ...] = ()
    """Received a contribution that is not finite, on top of a gradient that was (or none)."""
    optimizer: OptimizerState | None = None
    """The optimizer that stepped."""
    consumed: tuple[int, ...] = ()
    """Gradients with contributions that the step (or hand-written update) was the first to consume."""
    stale: tuple[int, ...] = ()
    """Consumed sums that still hold a contribution consumed before."""
    repeated: tuple[int, ...] = ()
    """Consumed although the same optimizer had used them and nothing was added since."""
    zeros: tuple[int, ...] = ()
    """Used by the step, but exact zeros that nothing was added to."""
    scaled: tuple[int, ...] = ()
    """Used by a step of the optimizer's own while they still carried the loss scale."""
    clipped: tuple[int, ...] = ()
    """Consumed, and clipped since the last use."""
    unclipped: tuple[int, ...] = ()
    """Consumed without having been clipped; told only in runs that clip."""
    by_hand: tuple[int, ...] = ()
    """Consumed gradients that the program had put there itself since the last step."""
    window: tuple[BackwardRecord, ...] = ()
    """The backwards that went into the step (those still kept)."""
    window_size: int = 0
    weighing: str = ""
    """For a window of several backwards from one line: their losses were `averaged`, `summed`, or that is `unknown`."""
    fresh_cleared: tuple[int, ...] = ()
    """Cleared while they held contributions that nothing had consumed."""
    poisoned_cleared: bool = False
    """Some of what was cleared was not finite."""
    clipped_cleared: bool = False
    """Some of the unused gradients cleared had been clipped (measured) first."""
    discarded: tuple[BackwardRecord, ...] = ()
    """Backwards whose last contributions were cleared just now, none of them ever consumed."""
    wasted: tuple[BackwardRecord, ...] = ()
    """Backwards of which some contributions were cleared unused while others were consumed elsewhere."""
