"""Micro-batches of clearly different size count the same."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.ledger.windows import micro_batches
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.rule import Fault, Rule, Said, line_key
from gradtui.rules.wording import line, loss_of, times

_CLEARLY = 1.5


class AccumulationWeighting(Rule):
    """Micro-batches of different sizes were averaged as if they were alike.

    What it means: each loss in the window is a mean, but over a different number of elements (tokens, unmasked pixels).
    The mean of such means is not the mean over all of them.

    Why it matters: elements of small micro-batches weigh more. The effect is mild, and changes with the batch layout.

    What to do: sum the losses and divide by the number of elements of the whole window.
    """

    slug = "accumulation-weighting"
    severity = "info"
    watches = (ev.OptimizerStepped,)

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if not change.weighing or not isinstance(event, ev.OptimizerStepped):
            return
        members = [r for r in micro_batches(change.window) if r.reduction == "mean" and r.elements]
        sizes = [record.elements for record in members]
        if len(sizes) < 2 or max(sizes) < _CLEARLY * min(sizes):
            return
        fault = self.fault(line_key(members[0].site), "step", event.ordinal, event.seq, members[0].site)
        fault.hit(event.seq)
        fault.become("confirmed" if fault.count >= 2 else "suspected")
        if fault.count == 1:
            fault.words["loss"] = members[0].loss
            fault.facts.update(least=min(sizes), most=max(sizes))
            fault.add(members[0].parameters)
            fault.relate(event.site)
        yield from self.tell(fault, ledger)

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        least, most = int(fault.facts.get("least", 0)), int(fault.facts.get("most", 0))
        message = (
            f"Means over {least:,} to {most:,} elements of {loss_of(fault.words.get('loss', ''))} ({line(fault.site)}) count the same in one "
            f"step ({times(fault.count)})."
        )
        fix = 'Use `reduction="sum"` and divide by the number of elements in the whole window.'
        return Said(
            message, fix, (Evidence("elements, least to most", f"{least:,} to {most:,}", f"within {_CLEARLY}×"),)
        )
