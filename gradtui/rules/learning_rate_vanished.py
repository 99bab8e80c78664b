"""Steps go on at a learning rate that has fallen to nothing."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.rule import Ending, Fault, Rule, Said
from gradtui.rules.wording import line, number, times


class LearningRateVanished(Rule):
    """Steps went on with a learning rate that a schedule had taken to zero.

    What it means: the schedule ran out long before the training did: most often a scheduler meant for epochs is stepped
    once per batch.

    Why it matters: nothing is learnt from there on.

    What to do: step the scheduler where its horizon is counted: per epoch outside the batch loop, or give it the number of
    batches.
    """

    slug = "learning-rate-vanished"
    severity = "warning"
    watches = (ev.OptimizerStepped,)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._best: dict[int, float] = {}
        self._run: dict[int, int] = {}

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if not isinstance(event, ev.OptimizerStepped) or not event.lr or change.optimizer is None:
            return
        rate = max(event.lr)
        best = self._best[event.optimizer] = max(rate, self._best.get(event.optimizer, 0.0))
        if best == 0.0 or rate > best * self.thresholds.vanished_rate:
            self._run[event.optimizer] = 0
            return
        if not any(ledger.parameter(n).norm > 0.0 for n in change.consumed[:16]):
            return
        run = self._run[event.optimizer] = self._run.get(event.optimizer, 0) + 1
        fault = self.fault(str(event.optimizer), "step", event.ordinal, event.seq, event.site)
        fault.own(change.optimizer)
        fault.facts.update(rate=rate, best=best)
        for tally in ledger.lines["scheduler"].values() if not fault.count else ():
            fault.relate(tally.site)
        fault.hit(event.seq, event.used)
        if run >= self.thresholds.vanished_steps:
            fault.become("confirmed")
        yield from self.tell(fault, ledger)

    def finish(self, ledger: Ledger, ending: Ending) -> None:
        """The last step or two of a schedule may well be at zero."""
        for key, fault in self.faults.items():
            optimizer = ledger.optimizers.get(int(key))
            steps = optimizer.steps if optimizer is not None else 0
            if fault.status == "suspected" or fault.count * 20 < steps:
                fault.become("withdrawn")

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        name, rate, best = (
            fault.words.get("name", "the optimizer"),
            fault.facts.get("rate", 0.0),
            fault.facts.get("best", 0.0),
        )
        scheduler = fault.related[0] if fault.related else None
        message = f"`{name}` went on stepping at a learning rate of {number(rate)}, after {number(best)} before ({times(fault.count)})."
        fix = (
            f"Step the scheduler ({line(scheduler)}) once per epoch, or give it the number of batches as its horizon."
            if scheduler
            else "Look at what sets the learning rate."
        )
        return Said(
            message,
            fix,
            (
                Evidence(
                    "learning rate over its largest",
                    number(rate / best if best else 0.0),
                    f"above {number(self.thresholds.vanished_rate)}",
                ),
            ),
        )
