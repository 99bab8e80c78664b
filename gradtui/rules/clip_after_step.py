"""Gradients are clipped after the step has used them."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.rule import Ending, Fault, Rule, Said, line_key
from gradtui.rules.wording import line, number, them, times

_MEASURING = 1e6
"""A limit so high only measures the norm."""


class ClipAfterStep(Rule):
    """Gradients were clipped after the step that used them.

    What it means: when the clip ran every gradient had been used already, and the gradients were cleared or added onto
    before another step could use the clipped values.

    Why it matters: the clipping has no effect at all; explosions go through.

    What to do: move the clip between `backward()` and `step()`.
    """

    slug = "clip-after-step"
    severity = "error"
    watches = (ev.GradsClipped, ev.GradsZeroed, ev.BackwardEnded, ev.BackwardProgressed, ev.OptimizerStepped)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._waiting: dict[str, set[int]] = {}

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if isinstance(event, ev.GradsClipped):
            yield from self._clip(event, ledger)
        elif not self._waiting:
            return
        elif isinstance(event, ev.GradsZeroed):
            yield from self._useless(event.parameters, ledger)
        elif change.landed:
            yield from self._useless(change.landed, ledger)
        elif isinstance(event, ev.OptimizerStepped):
            for key, waiting in list(self._waiting.items()):
                if not waiting.isdisjoint(event.used):
                    del self._waiting[key]

    def _clip(self, event: ev.GradsClipped, ledger: Ledger) -> Iterator[Finding]:
        states = [ledger.parameter(n) for n in event.parameters]
        if not states or any(p.waiting or p.state != "spent" for p in states):
            return
        if not isfinite(event.limit) or event.limit >= _MEASURING:
            return
        key = line_key(event.site)
        fault = self.fault(key, "clip", event.ordinal, event.seq, event.site)
        fault.facts.update(limit=event.limit, norm=max(fault.facts.get("norm", 0.0), event.norm))
        fault.add(event.parameters)
        owner = next((ledger.optimizers[o] for p in states for o in p.owners), None)
        if owner is not None:
            fault.own(owner)
            fault.relate(owner.site)
        self._waiting[key] = set(event.parameters)
        yield from self.tell(fault, ledger)

    def _useless(self, gone: tuple[int, ...], ledger: Ledger) -> Iterator[Finding]:
        for key, waiting in list(self._waiting.items()):
            if waiting.isdisjoint(gone):
                continue
            del self._waiting[key]
            fault = self.faults[key]
            fault.become("confirmed")
            fault.hit(ledger.seq)
            yield from self.tell(fault, ledger)

    def finish(self, ledger: Ledger, ending: Ending) -> None:
        for fault in self.faults.values():
            if fault.status == "suspected":
                fault.become("confirmed" if fault.key in self._waiting and ending.orderly else "withdrawn")

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        name = fault.words.get("name", "the optimizer")
        step = line(fault.related[0]) if fault.related else "the step"
        message = (
            f"The clip at {line(fault.site)} ran after `{name}` had used the gradients of {them(fault.ids, ledger)}; nothing used the "
            f"clipped values ({times(fault.count)})."
        )
        evidence = Evidence(
            "largest norm that came to the clip",
            number(fault.facts.get("norm", 0.0)),
            number(fault.facts.get("limit", 0.0)),
        )
        return Said(message, f"Move the clip at {line(fault.site)} before the step at {step}.", (evidence,))
