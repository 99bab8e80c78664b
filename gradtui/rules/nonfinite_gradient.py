"""NaN or Inf in a gradient that something goes on to use."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.rule import Ending, Fault, Rule, Said
from gradtui.rules.wording import call, line, loss_of, number, some, them


class NonfiniteGradient(Rule):
    """A gradient held NaN or infinity, and a step used it.

    What it means: during a backward some gradient became NaN or infinite. One such number in a step makes the parameters
    NaN, and everything after it.

    Why it matters: the model is lost from that step on, even if the loss of that very batch still looked fine.

    What to do: mend the operation that has no finite slope there: a square root or norm at 0, a log of 0, 0·∞ behind
    `torch.where`, a division by an empty count, an overflow in `exp` or in half precision. `--watch ops` (or
    `check --find-origin`) names the operation, its module and its line.
    """

    slug = "nonfinite-gradient"
    severity = "error"
    watches = (
        ev.BackwardEnded,
        ev.BackwardProgressed,
        ev.NonfiniteOrigin,
        ev.OptimizerStepped,
        ev.ParametersEdited,
        ev.GradsZeroed,
    )

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._open: set[int] = set()
        """Parameters whose gradient is not finite now."""
        self._settled = False

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if isinstance(event, ev.NonfiniteOrigin):
            yield from self._origin(event, ledger)
        if change.nonfinite:
            yield from self._suspect(change, ledger)
        if not self._open:
            return
        if isinstance(event, (ev.OptimizerStepped, ev.ParametersEdited)):
            yield from self._used(change, ledger)
        elif isinstance(event, ev.GradsZeroed):
            self._open.difference_update(event.parameters)
            if not self._open:
                yield from self._handled(ledger)

    def _suspect(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        record = change.record
        assert record is not None
        self._open.update(change.nonfinite)
        fault = self.faults.get("first")
        if fault is not None and fault.status != "withdrawn":
            if fault.first.seq == change.event.seq or fault.facts["backward"] == record.ordinal:
                fault.add(change.nonfinite)
            return
        handled = fault.facts.get("handled", 0) if fault is not None else 0
        self.faults.clear()
        fault = self.fault("first", "backward", record.ordinal, change.event.seq, record.site)
        fault.facts.update(backward=record.ordinal, scale=record.scale, handled=handled)
        fault.facts["reached"] = len(record.parameters)
        if record.value is not None:
            fault.facts["value"] = record.value
        fault.words["loss"] = record.loss
        fault.words["finite"] = "yes" if record.value_finite else ""
        fault.add(change.nonfinite)
        yield from self.tell(fault, ledger)

    def _used(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        if not self._open.intersection(change.consumed):
            return
        fault = self.faults["first"]
        fault.become("confirmed", "error")
        fault.hit(change.event.seq)
        if fault.count == 1:
            fault.words["consumer"] = call(change.event.site, "the next step")
            fault.relate(change.event.site)
            self._suspects(fault, ledger)
        yield from self.tell(fault, ledger)

    def _handled(self, ledger: Ledger) -> Iterator[Finding]:
        fault = self.faults.get("first")
        if fault is not None and fault.status == "suspected":
            fault.facts["handled"] = fault.facts.get("handled", 0) + 1
            fault.become("withdrawn", "error")
            yield from self.tell(fault, ledger)

    def _origin(self, event: ev.NonfiniteOrigin, ledger: Ledger) -> Iterator[Finding]:
        fault = self.faults.get("first")
        if fault is None:
            fault = self.fault("first", "backward", max(event.ordinal, 1), event.seq, event.site)
            fault.facts["backward"] = event.ordinal
            fault.words["finite"] = "yes"
        if fault.words.get("op") or (event.ordinal and event.ordinal != fault.facts["backward"]):
            return
        fault.words.update(op=event.op, module=event.module, cause=event.cause)
        if event.forward is not None:
            backward, fault.site = fault.site, event.forward
            fault.words["forward"] = "yes"
            fault.relate(backward)
        fault.dirty = True
        if fault.ids:
            yield from self.tell(fault, ledger)

    def finish(self, ledger: Ledger, ending: Ending) -> None:
        """What the program handled is worth a word and no more."""
        fault = self.faults.get("first")
        if fault is None:
            return
        if not fault.ids:
            self.faults.clear()
        elif fault.status != "confirmed":
            fault.count = max(int(fault.facts.get("handled", 0)), 1)
            fault.become("confirmed", "info")

    def _suspects(self, fault: Fault, ledger: Ledger) -> None:
        """Without a known origin: lines that divide by a sum, take a root or a logarithm."""
        if not fault.words.get("op") and "risky" not in fault.words:
            lines = self.sources.risky(ledger)
            fault.words["risky"] = " or ".join(call(site, "") for site in lines)
            fault.relate(*lines)

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        words = fault.words
        backward = int(fault.facts.get("backward", 0))
        loss = loss_of(words.get("loss", ""))
        still = " although the loss was still finite" if words.get("finite") else ""
        message = (
            f"Backward {backward:,} of {loss} made the gradients of {them(fault.ids, ledger)} NaN or infinite{still}"
        )
        message += f"; {self._fate(fault)}"
        evidence = [
            Evidence("parameters not finite", f"{len(fault.ids):,} of {int(fault.facts.get('reached', 0)):,}", "0")
        ]
        if "value" in fault.facts:
            evidence.append(Evidence("loss", number(fault.facts["value"])))
        if fault.facts.get("scale", 1.0) != 1.0:
            evidence.append(Evidence("loss scale", number(fault.facts["scale"])))
        if words.get("op"):
            evidence.append(
                Evidence("first operation", words["op"] + (f" in {words['module']}" if words["module"] else ""))
            )
        return Said(message, self._fix(fault, ledger), tuple(evidence))

    @staticmethod
    def _fate(fault: Fault) -> str:
        if fault.status == "confirmed" and fault.severity == "error":
            return f"{fault.words.get('consumer', 'the next step')} used them."
        if fault.severity == "info" or fault.status == "withdrawn":
            return "no step used them, so the program handled it."
        return "nothing has used them yet."

    @staticmethod
    def _fix(fault: Fault, ledger: Ledger) -> str:
        words = fault.words
        if words.get("op"):
            cause = f": {words['cause']}" if words.get("cause") else ""
            where = f" at {line(fault.site)}" if words.get("forward") else ""
            return f"Mend the operation{where} whose backward is {words['op']}{cause}."
        first = some(ledger.names(list(fault.ids)[-1:]))
        guess = f" Likely: {words['risky']}." if words.get("risky") else ""
        return f"Start near {first}, the one next to the loss; `--find-origin` names the operation and its line.{guess}"
