"""Steps with real gradients leave every parameter bit for bit the same."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.rule import Ending, Fault, Rule, Said
from gradtui.rules.wording import line, number, them, times


class StepChangesNothing(Rule):
    """Steps with finite, non-zero gradients and a learning rate above zero left every parameter exactly as it was.

    What it means: the update is smaller than the parameters' type can show (half precision, a tiny learning rate), or the
    optimizer works on copies that nobody reads.

    Why it matters: nothing is trained, and no error says so.

    What to do: keep the parameters in float32, or raise the learning rate.
    """

    slug = "step-changes-nothing"
    severity = "error"
    watches = (ev.OptimizerStepped,)

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event, optimizer = change.event, change.optimizer
        if not isinstance(event, ev.OptimizerStepped) or optimizer is None or event.unchanged is None:
            return
        key = str(optimizer.info.id)
        if not event.unchanged:
            fault = self.faults.get(key)
            if fault is not None and fault.status == "suspected":
                fault.become("withdrawn")
                yield from self.tell(fault, ledger)
            return
        used = tuple(n for n in change.consumed if (p := ledger.parameter(n)).norm > 0.0 and p.finite)
        if not used or not any(rate > 0.0 for rate in event.lr):
            return
        fault = self.fault(key, "step", event.ordinal, event.seq, event.site)
        fault.own(optimizer)
        fault.words.update(dtype=ledger.parameter(used[0]).info.dtype)
        fault.facts.update(rate=max(event.lr), norm=max(ledger.parameter(n).norm for n in used))
        fault.hit(event.seq, used)
        if fault.count >= 3 and fault.status == "suspected":
            fault.become("confirmed")
        yield from self.tell(fault, ledger)

    def finish(self, ledger: Ledger, ending: Ending) -> None:
        for fault in self.faults.values():
            if fault.status == "suspected":
                fault.become("withdrawn")

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        rate, norm = fault.facts.get("rate", 0.0), fault.facts.get("norm", 0.0)
        message = (
            f"Steps of `{fault.words.get('name', 'the optimizer')}` at {line(fault.site)} left {them(fault.ids, ledger)} bit for bit the same, "
            f"with gradients and a learning rate of {number(rate)} (compared {times(fault.count)})."
        )
        dtype = fault.words.get("dtype", "")
        fix = (
            f"The update is too small for {dtype}: keep the parameters in float32 or raise the learning rate."
            if dtype
            else "Raise the learning rate."
        )
        return Said(
            message, fix, (Evidence("largest gradient norm", number(norm)), Evidence("parameters changed", "0", "all"))
        )
