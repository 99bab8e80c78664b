"""A gradient is zeroed in place while the program still holds that very tensor."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.rules.finding import Finding
from gradtui.rules.rule import Fault, Rule, Said, line_key
from gradtui.rules.wording import line, them


class GradientAliasKept(Rule):
    """A gradient was zeroed in place while something else in the program still held that tensor.

    What it means: `saved = p.grad` keeps no copy, it keeps the same tensor. `zero_grad(set_to_none=False)` or
    `p.grad.zero_()` then zeroes what was saved.

    Why it matters: what was saved (for a mean, a comparison, a plot) is silently zero.

    What to do: save `p.grad.clone()`, or clear with `set_to_none=True`.
    """

    slug = "gradient-alias-kept"
    severity = "info"
    watches = (ev.GradsZeroed,)

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        aliased = getattr(event, "aliased", ())
        if not aliased or not isinstance(event, ev.GradsZeroed):
            return
        fault = self.fault(line_key(event.site), "zero_grad", event.ordinal, event.seq, event.site)
        fault.become("confirmed")
        fault.hit(event.seq, aliased)
        yield from self.tell(fault, ledger)

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        message = f"The clear at {line(fault.site)} zeroed gradients of {them(fault.ids, ledger)} that the program still holds elsewhere."
        return Said(message, "Save a copy (`p.grad.clone()`), or clear with `set_to_none=True`.")
