"""A step on gradients that were not averaged over the ranks."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.rule import Fault, Rule, Said, line_key
from gradtui.rules.wording import line, plural, them, times


class UnsyncedStep(Rule):
    """A step used gradients whose last backward ran under `no_sync`.

    What it means: inside `model.no_sync()` DistributedDataParallel does not average gradients. The last micro-batch of a
    window must run outside it.

    Why it matters: each rank steps on its own gradients and the replicas drift apart.

    What to do: use `no_sync()` for all micro-batches of a window but the last.
    """

    slug = "unsynced-step"
    severity = "error"
    watches = (ev.OptimizerStepped,)

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if not isinstance(event, ev.OptimizerStepped) or not change.window or not change.window[-1].unsynced:
            return
        record = change.window[-1]
        fault = self.fault(line_key(event.site), "step", event.ordinal, event.seq, event.site)
        fault.become("confirmed")
        fault.relate(record.site)
        fault.facts["window"] = len(change.window)
        fault.hit(event.seq, event.used)
        yield from self.tell(fault, ledger)

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        backward = fault.related[0] if fault.related else None
        message = (
            f"The step at {line(fault.site)} used gradients of {them(fault.ids, ledger)} that were never averaged over the ranks: the last "
            f"backward ({line(backward)}) ran under `no_sync` ({times(fault.count)})."
        )
        fix = "Leave `no_sync()` for the last micro-batch of each window."
        return Said(
            message, fix, (Evidence("backwards in the window", plural(int(fault.facts.get("window", 1)), "backward")),)
        )
