"""Gradients are clipped while they still carry the loss scale."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.rule import Fault, Rule, Said, line_key
from gradtui.rules.wording import line, number, them, times


class ClipBeforeUnscale(Rule):
    """Gradients were clipped while they were still multiplied by the loss scale.

    What it means: `scaler.scale(loss).backward()` makes gradients thousands of times larger; clipping them at the usual
    limit and unscaling afterwards leaves them thousands of times smaller than the limit.

    Why it matters: training hardly moves, without any error.

    What to do: call `scaler.unscale_(optimizer)` between backward and the clip.
    """

    slug = "clip-before-unscale"
    severity = "error"
    watches = (ev.GradsClipped,)

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if not isinstance(event, ev.GradsClipped):
            return
        scaled = tuple(n for n in event.parameters if ledger.parameter(n).scale != 1.0)
        if not scaled:
            return
        fault = self.fault(line_key(event.site), "clip", event.ordinal, event.seq, event.site)
        fault.become("confirmed")
        if fault.count == 0:
            p = ledger.parameter(scaled[0])
            fault.facts.update(scale=p.scale, limit=event.limit, norm=event.norm)
            fault.own(next((ledger.optimizers[o] for o in p.owners), None))
            fault.relate(p.contributions[-1].site if p.contributions else None)
        fault.hit(event.seq)
        fault.add(scaled)
        yield from self.tell(fault, ledger)

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        facts = fault.facts
        scale, limit = facts.get("scale", 1.0), facts.get("limit", 0.0)
        message = (
            f"The clip at {line(fault.site)} ran on gradients of {them(fault.ids, ledger)} still multiplied by the loss scale "
            f"{number(scale)} ({times(fault.count)})."
        )
        evidence = (
            Evidence("loss scale carried at the clip", number(scale), "1"),
            Evidence("norm at the clip", number(facts.get("norm", 0.0))),
            Evidence("limit as it acts after unscaling", number(limit / scale), number(limit)),
        )
        name = fault.words.get("name", "optimizer")
        return Said(message, f"Add `scaler.unscale_({name})` before the clip at {line(fault.site)}.", evidence)
