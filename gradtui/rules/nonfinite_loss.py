"""The loss itself is NaN or infinite."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.rule import Ending, Fault, Rule, Said
from gradtui.rules.wording import call, line, loss_of, number, plural


class NonfiniteLoss(Rule):
    """The loss was NaN or infinite when its backward ran, and a step used what came of it.

    What it means: the forward pass already failed; the gradients could only be wrong.

    Why it matters: the step after it makes parameters NaN.

    What to do: look at the forward pass of that batch: inputs that are NaN, a mean over nothing, a log of 0, an overflow.
    Parameters that an earlier step made NaN are reported as that step's fault instead.
    """

    slug = "nonfinite-loss"
    severity = "error"
    watches = (ev.BackwardEnded, ev.OptimizerStepped, ev.ParametersEdited, ev.GradsZeroed, ev.NonfiniteOrigin)

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        fault = self.faults.get("first")
        if isinstance(event, ev.BackwardEnded) and not event.value_finite:
            yield from self._suspect(event, change, ledger)
        elif fault is None or fault.status != "suspected":
            return
        elif isinstance(event, (ev.OptimizerStepped, ev.ParametersEdited)) and not fault.ids.keys().isdisjoint(
            change.consumed
        ):
            fault.become("confirmed", "error")
            fault.words["consumer"] = call(event.site, "a step")
            fault.relate(event.site)
            self._suspects(fault, ledger)
            yield from self.tell(fault, ledger)
        elif isinstance(event, ev.GradsZeroed) and not fault.ids.keys().isdisjoint(event.parameters):
            fault.become("withdrawn")
            yield from self.tell(fault, ledger)
        elif isinstance(event, ev.NonfiniteOrigin) and event.forward is not None and not fault.words.get("op"):
            fault.words.update(op=event.op, cause=event.cause)
            backward, fault.site = fault.site, event.forward
            fault.relate(backward)

    def _suspect(self, event: ev.BackwardEnded, change: Change, ledger: Ledger) -> Iterator[Finding]:
        fault = self.faults.get("first")
        if fault is not None and fault.status == "withdrawn":
            handled = fault.count
            self.faults.clear()
            fault = None
        else:
            handled = 0
        if fault is None:
            fault = self.fault("first", "backward", event.ordinal, event.seq, event.site)
            fault.count = handled
            fault.words["loss"] = event.loss
            fault.facts["value"] = event.value if event.value is not None else float("nan")
            fault.add(change.nonfinite or change.landed)
        fault.count += 1
        fault.seq = event.seq
        yield from self.tell(fault, ledger)

    def finish(self, ledger: Ledger, ending: Ending) -> None:
        fault = self.faults.get("first")
        if fault is not None and fault.status != "confirmed":
            fault.become("confirmed", "info")

    def _suspects(self, fault: Fault, ledger: Ledger) -> None:
        """Without a known origin: lines that divide by a sum, take a root or a logarithm."""
        if not fault.words.get("op") and "risky" not in fault.words:
            lines = self.sources.risky(ledger)
            fault.words["risky"] = " or ".join(call(site, "") for site in lines)
            fault.relate(*lines)

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        loss = loss_of(fault.words.get("loss", ""))
        value = number(fault.facts["value"]) if "value" in fault.facts else "not finite"
        message = f"{loss[:1].upper() + loss[1:]} was {value} at backward {fault.first.ordinal:,} ({plural(fault.count, 'backward')} in all)"
        if fault.status == "confirmed" and fault.severity == "error":
            message += f", and {fault.words.get('consumer', 'a step')} used its gradients."
        else:
            message += "; no step used its gradients."
        fix = "Look at the forward pass of that batch: NaN inputs, a mean over nothing, a log of 0, an overflow."
        if fault.words.get("risky") and not fault.words.get("op"):
            fix += f" Likely: {fault.words['risky']}."
        if fault.words.get("op"):
            cause = f": {fault.words['cause']}" if fault.words.get("cause") else ""
            fix = f"Mend the operation at {line(fault.site)} ({fault.words['op']}{cause})."
        return Said(message, fix, (Evidence("loss", value, "finite"),))
