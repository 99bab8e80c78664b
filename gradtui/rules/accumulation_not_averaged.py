"""Mean losses of several micro-batches are summed into one step."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.ledger.windows import micro_batches
from gradtui.rules.finding import Evidence, Finding, Severity
from gradtui.rules.rule import Fault, Rule, Said, line_key
from gradtui.rules.wording import line, loss_of, them, times


class AccumulationNotAveraged(Rule):
    """Several micro-batches make one step, and their losses were added up without dividing by their number.

    What it means: N backwards from one line went into a step; each loss is a mean, none was divided by N.

    Why it matters: the step is N times as large as with one batch of the same size, as if the learning rate were N times
    higher. (Adam hides much of it; clipping and weight decay do not.)

    What to do: divide the loss by the number of micro-batches before `backward()`.
    """

    slug = "accumulation-not-averaged"
    severity = "warning"
    watches = (ev.OptimizerStepped,)

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if change.weighing not in ("summed", "unknown") or not isinstance(event, ev.OptimizerStepped) or event.closure:
            return
        members = micro_batches(change.window)
        severity: Severity = "warning" if change.weighing == "summed" and len(members) >= 3 else "info"
        fault = self.fault(line_key(members[0].site), "step", event.ordinal, event.seq, members[0].site, severity)
        fault.become("confirmed", "warning" if severity == "warning" else fault.severity)
        fault.hit(event.seq)
        fault.facts["members"] = max(fault.facts.get("members", 0), len(members))
        if fault.count == 1:
            fault.words.update(loss=members[0].loss, reduction=members[0].reduction)
            fault.add(event.used)
            fault.relate(event.site)
        yield from self.tell(fault, ledger)

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        count = int(fault.facts.get("members", 2))
        loss = loss_of(fault.words.get("loss", ""))
        step = fault.related[0] if fault.related else None
        message = (
            f"{count} backwards of {loss} ({line(fault.site)}) went into one step of {them(fault.ids, ledger)} at {line(step)} and no loss "
            f"was divided by {count} ({times(fault.count)})."
        )
        name = fault.words.get("loss") or "loss"
        evidence = (
            Evidence("backwards in a step", str(count)),
            Evidence("constant the loss was divided by", "1", f"about {count}"),
            Evidence("reduction of the loss", fault.words.get("reduction") or "not known"),
        )
        return Said(message, f"Divide before backward: `({name} / {count}).backward()`.", evidence)
