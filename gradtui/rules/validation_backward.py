"""A backward of the validation pass ends up in a training step."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.rule import Fault, Rule, Said, line_key
from gradtui.rules.wording import call, line, loss_of, them, times


class ValidationBackward(Rule):
    """A backward that ran in eval mode was used by a training step.

    What it means: the whole model was in eval mode during one backward (a validation loop, most likely) and in train mode
    during another, and one step used both.

    Why it matters: the model is trained on validation data, and every validation score after it is too good.

    What to do: remove that backward, or put the validation under `torch.no_grad()`; if it is meant, clear the gradients after it.
    """

    slug = "validation-backward"
    severity = "error"
    watches = (ev.OptimizerStepped,)

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if not isinstance(event, ev.OptimizerStepped) or len(change.window) < 2:
            return
        trained = next((record for record in change.window if record.training == "train"), None)
        if trained is None:
            return
        reached = set(trained.parameters)
        for record in change.window:
            if record.training == "eval" and not reached.isdisjoint(record.parameters):
                fault = self.fault(line_key(record.site), "backward", record.ordinal, record.seq, record.site)
                fault.words["loss"] = record.loss
                fault.become("confirmed")
                fault.hit(event.seq)
                fault.add(n for n in record.parameters if n in reached)
                fault.relate(event.site, trained.site)
                yield from self.tell(fault, ledger)

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        step = fault.related[0] if fault.related else None
        message = (
            f"The backward of {loss_of(fault.words.get('loss', ''))} at {line(fault.site)} ran with the model in eval mode, and "
            f"{call(step, 'a training step')} used what it left in {them(fault.ids, ledger)} ({times(fault.count)})."
        )
        fix = f"Remove the backward at {line(fault.site)} or put the validation under `torch.no_grad()`."
        return Said(
            message, fix, (Evidence("mode of the model", "eval in one backward, train in another", "train in all"),)
        )
