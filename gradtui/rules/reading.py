"""Questions to the ledger that several rules ask."""

from __future__ import annotations

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.ledger.state import BackwardRecord, OptimizerState


def without_gradient(optimizer: OptimizerState, ledger: Ledger, frozen: tuple[int, ...]) -> list[int]:
    """Trainable parameters of an optimizer that have received nothing in the whole run."""
    parameters = ledger.parameters
    out = frozenset(frozen)
    return [
        n
        for n in optimizer.info.parameters
        if n not in out
        and (p := parameters.get(n)) is not None
        and not p.backwards
        and p.info.requires_grad
        and not p.steps
    ]


def first_backward(optimizer: OptimizerState, ledger: Ledger) -> BackwardRecord | None:
    """The first backward that ran while this optimizer was there: one that reached something of its own, if any did."""
    after = [record for record in ledger.backwards.values() if record.seq > optimizer.seen]
    own = [record for record in after if optimizer.info.id in record.owners]
    return (own or after or [None])[0]  # type: ignore[list-item]


def really_moves(number: int, change: Change, ledger: Ledger) -> bool:
    """The step changed its values, as far as can be told: a zero gradient moves only with weight decay or an optimizer's memory."""
    event, optimizer = change.event, change.optimizer
    assert isinstance(event, ev.OptimizerStepped)
    assert optimizer is not None
    if number in event.used and len(event.ratios) == len(event.used):
        ratio = event.ratios[event.used.index(number)]
        if ratio == ratio:
            return ratio > 0.0
    if event.unchanged:
        return False
    p = ledger.parameter(number)
    if p.state != "zero" and p.norm > 0.0:
        return True
    settings = dict(optimizer.info.settings)
    if settings.get("weight_decay", 0.0) > 0.0:
        return True
    remembers = settings.get("momentum", 0.0) > 0.0 or optimizer.info.kind != "SGD"
    return remembers and p.backwards > 0 and any(norm > 0.0 for norm in p.history)
