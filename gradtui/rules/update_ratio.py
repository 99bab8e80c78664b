"""Updates stay far too small or far too large for the weights."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from statistics import median

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.rule import Ending, Fault, Rule, Said
from gradtui.rules.wording import number


class UpdateRatio(Rule):
    """Updates are far too small, or far too large, for the weights they change.

    What it means: the norm of an ordinary update is about a thousandth of the norm of the weights. Here it stayed out of
    the range from 1e-5 to 1e-1 for many steps.

    Why it matters: far below, training crawls; far above, each step overwrites what was learnt.

    What to do: change the learning rate, for all or for one parameter group.
    """

    slug = "update-ratio"
    severity = "info"
    watches = (ev.OptimizerStepped,)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._run: dict[int, tuple[int, int]] = {}
        """By optimizer: (-1 below or +1 above, measured steps in a row)."""

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if not isinstance(event, ev.OptimizerStepped) or not event.ratios or change.optimizer is None:
            return
        measured = [ratio for ratio in event.ratios if isfinite(ratio) and ratio > 0.0]
        if not measured:
            return
        middle = median(measured)
        side = -1 if middle < self.thresholds.update_low else 1 if middle > self.thresholds.update_high else 0
        before, run = self._run.get(event.optimizer, (0, 0))
        run = run + 1 if side and side == before else int(side != 0)
        self._run[event.optimizer] = (side, run)
        if side and run >= 6 and change.optimizer.steps >= self.thresholds.update_steps:
            fault = self.fault(str(event.optimizer), "step", event.ordinal, event.seq, event.site)
            fault.facts.update(ratio=middle, side=side)
            fault.own(change.optimizer)
            fault.become("confirmed")
            fault.hit(event.seq, event.used)
            yield from self.tell(fault, ledger)

    def finish(self, ledger: Ledger, ending: Ending) -> None:
        for key, fault in self.faults.items():
            if self._run.get(int(key), (0, 0))[0] == 0:
                fault.become("withdrawn")

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        ratio, low = fault.facts.get("ratio", 0.0), fault.facts.get("side", 0) < 0
        message = f"Updates of `{fault.words.get('name', 'the optimizer')}` stay {'far below' if low else 'far above'} the weights: about {number(ratio)} of their norm a step."
        evidence = Evidence(
            "update norm over weight norm",
            number(ratio),
            f"{number(self.thresholds.update_low)} to {number(self.thresholds.update_high)}",
        )
        return Said(
            message,
            f"{'Raise' if low else 'Lower'} the learning rate of `{fault.words.get('name', 'the optimizer')}`.",
            (evidence,),
        )
