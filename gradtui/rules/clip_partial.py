"""A step consumes clipped and never-clipped gradients together."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.events import CallSite
from gradtui.ledger import Change, Ledger
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.rule import Ending, Fault, Rule, Said
from gradtui.rules.wording import line, them, times


class ClipPartial(Rule):
    """One step used gradients that were clipped together with gradients that never were.

    What it means: the clip was given some of the parameters that the optimizer owns, not all.

    Why it matters: the rest explodes as if there were no clipping, and the balance between the two parts is lost.

    What to do: pass every parameter of the optimizer to the clip. If only a part is meant (a recurrent core, say), ignore
    this rule on that line.
    """

    slug = "clip-partial"
    severity = "warning"
    watches = (ev.GradsClipped, ev.OptimizerStepped)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._clip: tuple[int, int, CallSite | None] = (0, 0, None)
        self._ever: set[int] = set()

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if isinstance(event, ev.GradsClipped):
            if event.parameters:
                self._clip = (event.seq, event.ordinal, event.site)
                self._ever.update(event.parameters)
        elif isinstance(event, ev.OptimizerStepped) and change.clipped and change.unclipped:
            assert change.optimizer is not None
            seq, ordinal, site = self._clip
            fault = self.fault(str(event.optimizer), "clip", ordinal, seq, site)
            fault.own(change.optimizer)
            fault.facts.update(clipped=len(change.clipped), unclipped=len(change.unclipped))
            fault.relate(event.site)
            fault.hit(event.seq)
            fault.add(change.unclipped)
            if fault.count >= 2:
                fault.become("confirmed")
            yield from self.tell(fault, ledger)

    def finish(self, ledger: Ledger, ending: Ending) -> None:
        for fault in self.faults.values():
            for number in self._ever.intersection(fault.ids):
                del fault.ids[number]
            fault.become("confirmed" if fault.count >= 2 and fault.ids else "withdrawn")

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        facts = fault.facts
        message = (
            f"Steps of `{fault.words.get('name', 'the optimizer')}` used clipped gradients together with those of {them(fault.ids, ledger)}, "
            f"which are never clipped ({times(fault.count)})."
        )
        evidence = Evidence(
            "clipped in one step",
            f"{int(facts.get('clipped', 0)):,}",
            f"{int(facts.get('clipped', 0) + facts.get('unclipped', 0)):,}",
        )
        return Said(
            message,
            f"Pass all parameters of `{fault.words.get('name', 'the optimizer')}` to the clip at {line(fault.site)}.",
            (evidence,),
        )
