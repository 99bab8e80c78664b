"""An optimizer steps on gradients that still carry the loss scale."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.rule import Fault, Rule, Said, line_key
from gradtui.rules.wording import line, number, them, times


class StepOnScaledGradient(Rule):
    """An optimizer stepped directly on gradients that were still multiplied by the loss scale.

    What it means: the loss went through `scaler.scale`, but `optimizer.step()` was called instead of
    `scaler.step(optimizer)`, and nothing unscaled the gradients before.

    Why it matters: the step is as many times too large as the scale says, and infinite gradients are not skipped.

    What to do: call `scaler.step(optimizer)` and `scaler.update()`.
    """

    slug = "step-on-scaled-gradient"
    severity = "error"
    watches = (ev.OptimizerStepped,)

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if not change.scaled or not isinstance(event, ev.OptimizerStepped):
            return
        fault = self.fault(line_key(event.site), "step", event.ordinal, event.seq, event.site)
        fault.become("confirmed")
        if not fault.count:
            record = change.window[-1] if change.window else None
            fault.facts["scale"] = record.scale if record is not None else 0.0
            fault.own(change.optimizer)
            fault.relate(record.site if record is not None else None)
        fault.hit(event.seq)
        fault.add(change.scaled)
        yield from self.tell(fault, ledger)

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        scale, name = fault.facts.get("scale", 0.0), fault.words.get("name", "optimizer")
        message = (
            f"`{name}` stepped on gradients of {them(fault.ids, ledger)} still multiplied by the loss scale {number(scale)} "
            f"({times(fault.count)})."
        )
        fix = f"Call `scaler.step({name})` and then `scaler.update()` instead of `{name}.step()` at {line(fault.site)}."
        return Said(message, fix, (Evidence("loss scale carried at the step", number(scale), "1"),))
