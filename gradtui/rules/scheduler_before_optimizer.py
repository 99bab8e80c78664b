"""A learning-rate scheduler steps before its optimizer has."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.rule import Ending, Fault, Rule, Said, line_key
from gradtui.rules.wording import line, number


class SchedulerBeforeOptimizer(Rule):
    """A learning-rate scheduler was stepped before the optimizer's first step.

    What it means: `scheduler.step()` comes before `optimizer.step()` in the loop.

    Why it matters: the first value of the schedule is skipped, and every later one comes a step (or an epoch) early.

    What to do: call `scheduler.step()` after `optimizer.step()`.
    """

    slug = "scheduler-before-optimizer"
    severity = "warning"
    watches = (ev.SchedulerStepped, ev.OptimizerStepped)

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if isinstance(event, ev.SchedulerStepped):
            optimizer = change.optimizer
            if optimizer is not None and not optimizer.steps and not optimizer.skipped:
                key = f"{event.optimizer} {line_key(event.site)}"
                fault = self.fault(key, "scheduler", event.ordinal, event.seq, event.site)
                if not fault.count:
                    fault.own(optimizer)
                    fault.words["kind"] = event.kind
                    fault.facts.update(before=max(event.before, default=0.0), after=max(event.after, default=0.0))
                fault.hit(event.seq)
                yield from self.tell(fault, ledger)
        elif isinstance(event, ev.OptimizerStepped) and self.faults:
            for fault in self.faults.values():
                if fault.status == "suspected" and fault.key.startswith(f"{event.optimizer} "):
                    fault.relate(event.site)
                    fault.become("confirmed")
                    yield from self.tell(fault, ledger)

    def finish(self, ledger: Ledger, ending: Ending) -> None:
        for fault in self.faults.values():
            if fault.status == "suspected":
                fault.become("withdrawn")

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        name, facts = fault.words.get("name", "the optimizer"), fault.facts
        message = f"{fault.words.get('kind', 'The scheduler')} stepped at {line(fault.site)} before `{name}` had made its first step."
        fix = f"Move `scheduler.step()` at {line(fault.site)} after the step of `{name}`."
        evidence = Evidence(
            "learning rate before and after",
            f"{number(facts.get('before', 0.0))} → {number(facts.get('after', 0.0))}",
            "unchanged until the first step",
        )
        return Said(message, fix, (evidence,))
