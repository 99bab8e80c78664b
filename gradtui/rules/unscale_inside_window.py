"""Scaled gradients are added onto unscaled ones."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.events import CallSite
from gradtui.ledger import Change, Ledger
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.rule import Ending, Fault, Rule, Said, line_key
from gradtui.rules.wording import line, number, them, times


class UnscaleInsideWindow(Rule):
    """Gradients were unscaled, and a scaled backward was added onto them before the step.

    What it means: `scaler.unscale_` stands inside the micro-batch loop. The first micro-batches are divided by the scale,
    the later ones are not.

    Why it matters: the sum is dominated by the micro-batches that came after, thousands of times too heavy.

    What to do: call `unscale_` once, after the last backward of the window.
    """

    slug = "unscale-inside-window"
    severity = "error"
    watches = (
        ev.GradsUnscaled,
        ev.BackwardEnded,
        ev.BackwardProgressed,
        ev.GradsZeroed,
        ev.OptimizerStepped,
        ev.CallRaised,
    )

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._unscale: CallSite | None = None
        self._mixed: set[int] = set()

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if isinstance(event, ev.GradsUnscaled):
            self._unscale = event.site
        elif change.onto_unscaled and change.record is not None:
            site = self._unscale
            fault = self.fault(line_key(site), "backward", change.record.ordinal, event.seq, site)
            fault.facts["scale"] = change.record.scale
            fault.add(change.onto_unscaled)
            fault.relate(change.record.site)
            self._mixed.update(change.onto_unscaled)
            yield from self.tell(fault, ledger)
        elif self._mixed and isinstance(event, ev.GradsZeroed):
            self._mixed.difference_update(event.parameters)
        elif self._mixed and (isinstance(event, ev.CallRaised) or not self._mixed.isdisjoint(change.consumed)):
            self._mixed.clear()
            for fault in self.faults.values():
                fault.become("confirmed")
                fault.hit(event.seq)
                fault.relate(event.site)
                yield from self.tell(fault, ledger)

    def finish(self, ledger: Ledger, ending: Ending) -> None:
        for fault in self.faults.values():
            if fault.status == "suspected":
                fault.become("withdrawn")

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        backward = fault.related[0] if fault.related else None
        message = (
            f"`unscale_` at {line(fault.site)} runs inside the window: the backward at {line(backward)} added gradients scaled by "
            f"{number(fault.facts.get('scale', 0.0))} onto unscaled ones of {them(fault.ids, ledger)} ({times(fault.count)})."
        )
        fix = f"Call `unscale_` once, after the last backward of the window, not at {line(fault.site)} for each."
        return Said(
            message, fix, (Evidence("scales in one sum", f"1 and {number(fault.facts.get('scale', 0.0))}", "one"),)
        )
