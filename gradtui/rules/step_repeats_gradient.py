"""A second step on the same gradients, with no backward between."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.rule import Fault, Rule, Said, line_key
from gradtui.rules.wording import line, them, times


class StepRepeatsGradient(Rule):
    """An optimizer stepped twice on the same gradients.

    What it means: between two steps of one optimizer no backward wrote to any of its gradients and nothing cleared them,
    so the second step applied the first one's gradients again.

    Why it matters: often the step of another optimizer was meant, or a step was left in the loop twice. The parameters
    move twice as far as intended while others do not move at all.

    What to do: step the optimizer whose parameters the last backward reached, or remove the second step.
    """

    slug = "step-repeats-gradient"
    severity = "error"
    watches = (ev.OptimizerStepped,)

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if not isinstance(event, ev.OptimizerStepped) or not change.repeated or event.closure:
            return
        if change.consumed or change.by_hand or change.optimizer is None:
            return
        optimizer = change.optimizer
        fault = self.fault(line_key(event.site), "step", event.ordinal, event.seq, event.site)
        fault.become("confirmed")
        fault.add(change.repeated)
        fault.count += 1
        fault.seq = event.seq
        if fault.count == 1:
            fault.own(optimizer)
            self._point_at_others(fault, ledger)
        yield from self.tell(fault, ledger)

    def _point_at_others(self, fault: Fault, ledger: Ledger) -> None:
        """The step that used them first, and an optimizer whose gradients wait for a step of their own."""
        p = ledger.parameter(next(iter(fault.ids)))
        for tally in ledger.lines["step"].values():
            fault.relate(tally.site)
        if p.contributions:
            fault.relate(p.contributions[-1].site)
        waiting = [
            other.info.name
            for other in ledger.optimizers.values()
            if other.info.name != fault.words["name"]
            and any(q.waiting for n in other.info.parameters if (q := ledger.parameters.get(n)) is not None)
        ]
        if waiting:
            fault.words["meant"] = waiting[0]

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        name = fault.words.get("name", "the optimizer")
        meant = fault.words.get("meant")
        message = (
            f"`{name}` stepped again on gradients of {them(fault.ids, ledger)} that it had already used; "
            f"no backward has reached them since ({times(fault.count)})."
        )
        if meant:
            message += f" Meanwhile the gradients of `{meant}` wait for a step."
            fix = f"Call `{meant}.step()` instead of `{name}.step()` at {line(fault.site)}."
        else:
            fix = f"Remove the step at {line(fault.site)}, or run a backward before it."
        return Said(message, fix, (Evidence("backwards since the last step", "0", "at least 1"),))
