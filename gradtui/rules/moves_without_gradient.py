"""A parameter that no backward reached changes in a step, by momentum or weight decay."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.reading import really_moves
from gradtui.rules.rule import Ending, Fault, Rule, Said, line_key
from gradtui.rules.wording import line, them, times


class MovesWithoutGradient(Rule):
    """A parameter moved although no backward reached it in that window.

    What it means: its `.grad` is a tensor of zeros (`zero_grad(set_to_none=False)`), not None, so the optimizer applies
    momentum and weight decay to it.

    Why it matters: parts of the model that a batch does not use (another task's head) drift with every step.

    What to do: clear with `set_to_none=True`, the default: the optimizer then skips what has no gradient.
    """

    slug = "moves-without-gradient"
    severity = "warning"
    watches = (ev.OptimizerStepped,)

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if not change.zeros or not change.consumed or not isinstance(event, ev.OptimizerStepped):
            return
        if change.optimizer is None or event.closure:
            return
        moved = set(event.moved).difference(event.frozen)
        numbers = tuple(n for n in change.zeros if n in moved and really_moves(n, change, ledger))
        if not numbers:
            return
        p = ledger.parameter(numbers[0])
        clear = p.cleared.site if p.cleared is not None else None
        fault = self.fault(line_key(event.site), "step", event.ordinal, event.seq, clear or event.site)
        if not fault.count:
            fault.own(change.optimizer)
            fault.relate(event.site)
        fault.hit(event.seq)
        fault.add(numbers)
        fault.become("confirmed" if fault.count >= 3 else "suspected")
        yield from self.tell(fault, ledger)

    def finish(self, ledger: Ledger, ending: Ending) -> None:
        for fault in self.faults.values():
            if fault.status == "suspected":
                fault.become("withdrawn")

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        message = (
            f"Steps of `{fault.words.get('name', 'the optimizer')}` moved {them(fault.ids, ledger)} although no backward had reached "
            f"{'it' if len(fault.ids) == 1 else 'them'}: the gradient was a tensor of zeros ({times(fault.count)})."
        )
        fix = f"Clear with `set_to_none=True` at {line(fault.site)}, so that the optimizer skips them."
        return Said(message, fix, (Evidence("gradient at the step", "zeros", "None"),))
