"""A clip receives no tensors although there are gradients to clip."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.rule import Ending, Fault, Rule, Said, line_key
from gradtui.rules.wording import line, shorten, them, times


class ClipCoversNothing(Rule):
    """A clip was given no tensors while parameters held gradients.

    What it means: what was passed to `clip_grad_norm_` was empty: a `model.parameters()` generator that an earlier loop
    had used up, an empty list, a module without parameters.

    Why it matters: the clip returns 0.0 and clips nothing; explosions go through.

    What to do: pass `model.parameters()` itself, or keep `list(model.parameters())`.
    """

    slug = "clip-covers-nothing"
    severity = "error"
    watches = (ev.GradsClipped, ev.OptimizerStepped)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._open = ""

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if isinstance(event, ev.GradsClipped) and not event.given:
            holding = [n for n, p in ledger.parameters.items() if p.waiting]
            if not holding:
                return
            self._open = line_key(event.site)
            fault = self.fault(self._open, "clip", event.ordinal, event.seq, event.site)
            fault.facts["limit"] = event.limit
            if not fault.count:
                fault.add(holding)
            yield from self.tell(fault, ledger)
        elif isinstance(event, ev.OptimizerStepped) and self._open and change.consumed:
            fault = self.faults[self._open]
            self._open = ""
            if change.clipped:
                if fault.status == "suspected":
                    fault.become("withdrawn")
                    yield from self.tell(fault, ledger)
                return
            if not fault.count:
                fault.ids = dict.fromkeys(change.consumed)
                fault.relate(event.site)
            fault.hit(event.seq)
            fault.become("confirmed", "error")
            yield from self.tell(fault, ledger)

    def finish(self, ledger: Ledger, ending: Ending) -> None:
        for fault in self.faults.values():
            if fault.status == "suspected":
                fault.become("withdrawn")

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        message = (
            f"The clip at {line(fault.site)} was given no tensors while {them(fault.ids, ledger)} held gradients; the next step used "
            f"them unclipped ({times(fault.count)})."
        )
        given = shorten(fault.site.expression, 30) if fault.site is not None else ""
        what = f"`{given}` was empty: a generator is used up after one loop. " if given else ""
        fix = f"{what}Pass `model.parameters()` itself or `list(model.parameters())` to the clip at {line(fault.site)}."
        return Said(message, fix, (Evidence("tensors given", "0", f"{len(fault.ids):,}"),))
