"""A step with nothing to apply."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.rule import Ending, Fault, Rule, Said
from gradtui.rules.wording import call, line, plural


class StepWithoutGradient(Rule):
    """An optimizer stepped while none of its parameters had a gradient.

    What it means: at the step every `.grad` was None, or zeros that nothing had been added to: no backward reached the
    optimizer's parameters since they were last cleared, or `zero_grad()` stands between `backward()` and `step()`.

    Why it matters: the step changes nothing (or applies momentum and weight decay alone).

    What to do: put the calls in this order: `zero_grad()`, `backward()`, `step()`; and make sure that the loss depends on
    the parameters this optimizer owns.
    """

    slug = "step-without-gradient"
    severity = "error"
    watches = (ev.OptimizerStepped,)

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event, optimizer = change.event, change.optimizer
        if not isinstance(event, ev.OptimizerStepped) or optimizer is None:
            return
        key = str(optimizer.info.id)
        if len(change.zeros) < len(event.used):
            self._full(key)
            return
        if event.closure and change.consumed:
            return
        fault = self.fault(key, "step", event.ordinal, event.seq, event.site)
        fault.add(n for n in optimizer.info.parameters if n not in event.frozen)
        fault.count += 1
        fault.facts["running"] = fault.facts.get("running", 0) + 1
        fault.facts["zeros"] = len(event.used)
        fault.own(optimizer)
        fault.seq = event.seq
        p = next((ledger.parameter(n) for n in optimizer.info.parameters), None)
        if p is not None and p.cleared is not None:
            fault.relate(p.cleared.site)
        if fault.facts["running"] >= 2:
            fault.become("confirmed")
        yield from self.tell(fault, ledger)

    def _full(self, key: str) -> None:
        fault = self.faults.get(key)
        if fault is not None:
            fault.facts["running"] = 0

    def finish(self, ledger: Ledger, ending: Ending) -> None:
        """A few empty steps among many (a phase that trains something else) are no fault."""
        for fault in self.faults.values():
            optimizer = ledger.optimizers.get(int(fault.key))
            steps = optimizer.steps if optimizer is not None else 0
            fault.facts["steps"] = steps
            if fault.count * 2 >= steps:
                fault.become("confirmed", "error")
            else:
                fault.become("confirmed", "info")

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        name = fault.words.get("name", "the optimizer")
        what = "held only zeros just cleared" if fault.facts.get("zeros") else "had a gradient"
        none = "all of its parameters" if fault.facts.get("zeros") else "none of its parameters"
        clear = fault.related[0] if fault.related else None
        message = f"`{name}` stepped {plural(fault.count, 'time')} while {none} {what}."
        fix = f"Run a backward that reaches the parameters of `{name}` before the step at {line(fault.site)}."
        if clear is not None:
            fix = f"Move {call(clear, 'the clear')} so that it does not stand between backward and {line(fault.site)}."
        steps = int(fault.facts.get("steps", 0))
        evidence = Evidence("steps without any gradient", f"{fault.count:,}" + (f" of {steps:,}" if steps else ""), "0")
        return Said(message, fix, (evidence,))
