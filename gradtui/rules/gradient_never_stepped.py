"""Backwards whose contributions never reached a step by the end of the run."""

from __future__ import annotations

from gradtui.ledger import Ledger
from gradtui.ledger.state import BackwardRecord
from gradtui.rules.finding import Evidence
from gradtui.rules.rule import Ending, Fault, Rule, Said, line_key
from gradtui.rules.wording import line, loss_of, plural, them


class GradientNeverStepped(Rule):
    """At the end of the run gradients were waiting for a step that never came.

    What it means: the last backwards of a line were left without a step, while earlier ones from the same line were used:
    the last, incomplete accumulation window was dropped.

    Why it matters: the last batches of the run had no effect on the model.

    What to do: step once more after the loop when gradients are waiting, or make the window divide the number of batches.
    """

    slug = "gradient-never-stepped"
    severity = "warning"
    watches = ()

    def finish(self, ledger: Ledger, ending: Ending) -> None:
        if not ending.orderly:
            return
        waiting: dict[str, list[BackwardRecord]] = {}
        used: dict[str, int] = {}
        for record in ledger.backwards.values():
            key = line_key(record.site)
            if record.used:
                used[key] = used.get(key, 0) + 1
            elif (
                record.owned
                and not record.inputs
                and record.pending >= record.owned
                and self._still_there(record, ledger)
            ):
                waiting.setdefault(key, []).append(record)
        for key, records in waiting.items():
            self._report(key, records, used.get(key, 0), ledger)

    @staticmethod
    def _still_there(record: BackwardRecord, ledger: Ledger) -> bool:
        states = [ledger.parameters.get(n) for n in record.parameters]
        return any(p is not None and p.owners and p.waiting for p in states)

    def _report(self, key: str, records: list[BackwardRecord], used: int, ledger: Ledger) -> None:
        steps = sum(ledger.optimizers[o].steps for o in records[0].owners if o in ledger.optimizers)
        first = records[0]
        fault = self.fault(key, "end", 1, ledger.seq, first.site, "warning" if used and steps else "info")
        fault.become("confirmed")
        fault.count = len(records)
        fault.seq = ledger.seq
        fault.facts["used"] = used
        fault.words["loss"] = first.loss
        fault.add(first.parameters)
        for owner in first.owners:
            if owner in ledger.optimizers:
                fault.relate(ledger.optimizers[owner].site)

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        loss = loss_of(fault.words.get("loss", ""))
        message = (
            f"The run ended with {plural(fault.count, 'backward')} of {loss} ({line(fault.site)}) waiting for a step: "
            f"{them(fault.ids, ledger)} never received {'it' if fault.count == 1 else 'them'}."
        )
        step = line(fault.related[0]) if fault.related else "the step"
        evidence = Evidence("backwards left over", f"{fault.count:,}", "0")
        return Said(message, f"Step once more after the loop, or let the last window step too ({step}).", (evidence,))
