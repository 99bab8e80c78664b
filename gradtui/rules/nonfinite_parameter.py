"""Finite gradients went into a step and non-finite parameters came out."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.rule import Fault, Rule, Said
from gradtui.rules.wording import line, number, them


class NonfiniteParameter(Rule):
    """A step turned finite gradients into NaN or infinite parameters.

    What it means: the optimizer's own arithmetic overflowed: squares of gradients in half precision, an `eps` that is zero
    in that type, or a learning rate so large that the update left the type's range.

    Why it matters: everything after that step is NaN.

    What to do: keep parameters and optimizer state in float32, raise `eps` (1e-4 for float16), or lower the learning rate.
    """

    slug = "nonfinite-parameter"
    severity = "error"
    watches = (ev.OptimizerStepped,)

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if not isinstance(event, ev.OptimizerStepped) or not event.nonfinite or self.faults or change.optimizer is None:
            return
        good = tuple(n for n in event.nonfinite if n in event.used and ledger.parameter(n).finite)
        if len(good) < len(event.nonfinite):
            return
        fault = self.fault("first", "step", event.ordinal, event.seq, event.site)
        info = change.optimizer.info
        fault.own(change.optimizer)
        fault.words.update(kind=info.kind, dtype=ledger.parameter(good[0]).info.dtype)
        fault.facts.update(eps=dict(info.settings).get("eps", 0.0), rate=max(event.lr, default=0.0))
        fault.facts["norm"] = max(ledger.parameter(n).norm for n in good)
        fault.become("confirmed")
        fault.hit(event.seq, good)
        yield from self.tell(fault, ledger)

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        words, facts = fault.words, fault.facts
        message = f"A step of `{words['name']}` at {line(fault.site)} made {them(fault.ids, ledger)} NaN or infinite although the gradients were finite."
        half = words["dtype"] in ("float16", "bfloat16")
        adaptive = "Adam" in words["kind"] or words["kind"] in ("RMSprop", "Adagrad", "NAdam", "RAdam")
        if half and adaptive:
            fix = f"{words['kind']}'s squares or its eps ({number(facts['eps'])}) leave {words['dtype']}: keep parameters in float32, or set eps to 1e-4."
        else:
            fix = f"The update left the range of {words['dtype']}: lower the learning rate ({number(facts['rate'])}) or clip the gradients."
        return Said(
            message, fix, (Evidence("largest gradient norm", number(facts["norm"])), Evidence("dtype", words["dtype"]))
        )
