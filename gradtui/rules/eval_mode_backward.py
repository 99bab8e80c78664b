"""The model is trained while it is in eval mode."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.ledger.state import BackwardRecord
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.rule import Ending, Fault, Rule, Said, line_key
from gradtui.rules.wording import line, loss_of, plural, some, times


class EvalModeBackward(Rule):
    """A model with dropout or batch-norm was trained in eval mode.

    What it means: `model.eval()` was called (before a validation, say) and `model.train()` never after it. Dropout is off,
    batch-norm uses its running statistics and no longer updates them.

    Why it matters: the model trains without its regularisation and on stale statistics; no error says so.

    What to do: call `model.train()` at the start of each epoch, or right after the validation.
    """

    slug = "eval-mode-backward"
    severity = "warning"
    watches = (ev.OptimizerStepped,)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._lines: dict[str, list[int]] = {}
        """By line: steps that used a backward in eval mode, in train mode."""

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if not isinstance(event, ev.OptimizerStepped) or not change.consumed:
            return
        for record in change.window[-1:]:
            seen = self._lines.setdefault(line_key(record.site), [0, 0])
            if record.training == "eval" and record.eval_modules:
                seen[0] += 1
                yield from self._found(record, event, ledger)
            else:
                seen[1] += 1

    def _found(self, record: BackwardRecord, event: ev.OptimizerStepped, ledger: Ledger) -> Iterator[Finding]:
        fault = self.fault(line_key(record.site), "backward", record.ordinal, record.seq, record.site)
        if not fault.count:
            fault.words["loss"] = record.loss
            fault.words["modules"] = some(record.eval_modules)
            fault.facts["modules"] = len(record.eval_modules)
            inside = [
                n for n in record.parameters if ledger.parameter(n).info.name.rpartition(".")[0] in record.eval_modules
            ]
            fault.add(inside or record.parameters)
            fault.relate(event.site)
        fault.hit(event.seq)
        if fault.count >= self.thresholds.eval_backwards:
            fault.become("confirmed")
        yield from self.tell(fault, ledger)

    def finish(self, ledger: Ledger, ending: Ending) -> None:
        for key, fault in self.faults.items():
            evaluated, trained = self._lines.get(key, [0, 0])
            fault.facts.update(evaluated=evaluated, trained=trained)
            if fault.status == "suspected":
                fault.become("withdrawn")

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        facts = fault.facts
        modules = plural(int(facts.get("modules", 1)), "dropout or batch-norm module")
        message = (
            f"The backward of {loss_of(fault.words.get('loss', ''))} at {line(fault.site)} ran with the model in eval mode from backward "
            f"{fault.first.ordinal:,} on, and steps used it ({times(fault.count)}): {modules} ({fault.words.get('modules', '')}) did not train."
        )
        fix = "Call `model.train()` after the validation, or at the start of each epoch, before this backward's forward pass."
        evidence = Evidence("steps on gradients of eval mode", f"{fault.count:,}", "0")
        return Said(message, fix, (evidence,))
