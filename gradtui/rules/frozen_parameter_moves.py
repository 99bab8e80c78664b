"""A parameter with requires_grad=False changes in a step."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.reading import really_moves
from gradtui.rules.rule import Fault, Rule, Said, line_key
from gradtui.rules.wording import line, them, times


class FrozenParameterMoves(Rule):
    """A frozen parameter was changed by a step.

    What it means: `requires_grad=False` only stops new gradients. The parameter still holds a `.grad` tensor (zeros left
    by `zero_grad(set_to_none=False)`, or an old gradient), so the optimizer goes on applying momentum and weight decay.

    Why it matters: what was meant to stay fixed drifts.

    What to do: set `p.grad = None` when freezing, clear with `set_to_none=True`, or take the parameter out of the optimizer.
    """

    slug = "frozen-parameter-moves"
    severity = "error"
    watches = (ev.OptimizerStepped,)

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if not isinstance(event, ev.OptimizerStepped) or not event.frozen or change.optimizer is None:
            return
        moved = set(event.moved).intersection(event.used)
        numbers = tuple(n for n in event.frozen if n in moved and really_moves(n, change, ledger))
        if not numbers:
            return
        p = ledger.parameter(numbers[0])
        clear = p.cleared.site if p.cleared is not None else None
        fault = self.fault(line_key(event.site), "step", event.ordinal, event.seq, clear or event.site)
        fault.become("confirmed")
        if not fault.count:
            fault.own(change.optimizer)
            fault.words["zeros"] = "yes" if p.state == "zero" else ""
            settings = dict(change.optimizer.info.settings)
            fault.facts.update(momentum=settings.get("momentum", 0.0), decay=settings.get("weight_decay", 0.0))
            fault.relate(event.site, *self.sources.freezes(ledger))
        fault.hit(event.seq)
        fault.add(numbers)
        yield from self.tell(fault, ledger)

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        name = fault.words.get("name", "the optimizer")
        held = "a gradient of zeros" if fault.words.get("zeros") else "an old gradient"
        message = f"Steps of `{name}` changed {them(fault.ids, ledger)}, which {'is' if len(fault.ids) == 1 else 'are'} frozen but still hold {held} ({times(fault.count)})."
        fix = f"Set `p.grad = None` when freezing, or clear with `set_to_none=True` at {line(fault.site)}."
        evidence = (
            Evidence("requires_grad", "False, yet written by the step"),
            Evidence(
                "momentum, weight decay", f"{fault.facts.get('momentum', 0.0):g}, {fault.facts.get('decay', 0.0):g}"
            ),
        )
        return Said(message, fix, evidence)
