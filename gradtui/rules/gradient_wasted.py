"""Part of what a backward wrote was cleared unused while the rest was used."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.rules.finding import Finding
from gradtui.rules.rule import Fault, Rule, Said, line_key
from gradtui.rules.wording import call, line, loss_of, plural, them


class GradientWasted(Rule):
    """A backward also wrote gradients that were thrown away unused.

    What it means: one part of what a backward wrote was used by a step, another part was cleared. A GAN does this: the
    generator's loss runs through the discriminator and leaves gradients there.

    Why it matters: the result is right; time and memory for those gradients are spent for nothing.

    What to do: nothing, or switch the other network's gradients off around that backward (`requires_grad_(False)`).
    """

    slug = "gradient-wasted"
    severity = "info"
    watches = (ev.GradsZeroed,)

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if not change.wasted or not isinstance(event, ev.GradsZeroed):
            return
        for record in change.wasted:
            fault = self.fault(line_key(record.site), "zero_grad", event.ordinal, event.seq, record.site)
            fault.become("confirmed")
            fault.count += 1
            fault.seq = event.seq
            if fault.count == 1:
                fault.words["loss"] = record.loss
                reached = set(record.parameters)
                fault.add(n for n in change.fresh_cleared if n in reached)
                fault.relate(event.site)
            yield from self.tell(fault, ledger)

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        clear = fault.related[0] if fault.related else None
        message = (
            f"The backward of {loss_of(fault.words.get('loss', ''))} at {line(fault.site)} also wrote gradients of "
            f"{them(fault.ids, ledger)}, which {call(clear, 'a clear')} threw away unused ({plural(fault.count, 'time')})."
        )
        return Said(message, "Nothing is wrong; `requires_grad_(False)` around that backward would save the work.")
