"""Gradients are clipped and then added onto before the step."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.events import CallSite
from gradtui.ledger import Change, Ledger
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.rule import Ending, Fault, Rule, Said, line_key
from gradtui.rules.wording import line, plural, them, times


class ClipInsideWindow(Rule):
    """Gradients were clipped in the middle of an accumulation window.

    What it means: after the clip another backward added onto the clipped gradients before a step used them.

    Why it matters: the sum is clipped again and again while it grows: early micro-batches shrink more than late ones, and
    the final sum may still be above the limit.

    What to do: clip once, right before the step.
    """

    slug = "clip-inside-window"
    severity = "warning"
    watches = (ev.GradsClipped, ev.BackwardEnded, ev.BackwardProgressed, ev.OptimizerStepped, ev.GradsZeroed)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._clip: tuple[int, int, CallSite | None] = (0, 0, None)
        self._onto: tuple[int, ...] = ()

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if isinstance(event, ev.GradsClipped):
            self._clip = (event.seq, event.ordinal, event.site)
        elif change.onto_clipped and change.record is not None:
            self._onto = change.onto_clipped
            seq, ordinal, site = self._clip
            fault = self.fault(line_key(site), "clip", ordinal, seq, site)
            fault.add(change.onto_clipped)
            fault.relate(change.record.site)
            fault.facts["added"] = fault.facts.get("added", 0) + 1
            yield from self.tell(fault, ledger)
        elif isinstance(event, ev.OptimizerStepped) and self._onto:
            if not set(self._onto).isdisjoint(change.consumed):
                fault = self.fault(line_key(self._clip[2]), "clip", self._clip[1], self._clip[0], self._clip[2])
                fault.hit(event.seq)
                fault.relate(event.site)
                if fault.count >= 2:
                    fault.become("confirmed")
                yield from self.tell(fault, ledger)
            self._onto = ()
        elif isinstance(event, ev.GradsZeroed):
            self._onto = ()

    def finish(self, ledger: Ledger, ending: Ending) -> None:
        for fault in self.faults.values():
            if fault.status == "suspected":
                fault.become("withdrawn")

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        backward = fault.related[0] if fault.related else None
        step = fault.related[1] if len(fault.related) > 1 else None
        message = (
            f"The clip at {line(fault.site)} runs inside the accumulation window: backwards at {line(backward)} add onto the clipped gradients "
            f"of {them(fault.ids, ledger)} before a step uses them ({times(fault.count)})."
        )
        fix = f"Move the clip at {line(fault.site)} out of the micro-batch loop, right before the step at {line(step)}."
        return Said(
            message, fix, (Evidence("added after a clip", plural(int(fault.facts.get("added", 0)), "backward"), "0"),)
        )
