"""A scaler steps on gradients of a loss that it did not scale."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.ledger.state import BackwardRecord
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.rule import Fault, Rule, Said, line_key
from gradtui.rules.wording import line, loss_of, number, them, times


class UnscaledBackward(Rule):
    """A GradScaler stepped an optimizer whose gradients came from a loss that the scaler had not scaled.

    What it means: `scaler.step` divides the gradients by the scale, but the backward ran on the plain loss.

    Why it matters: the step is as many times too small as the scale says; in half precision small gradients vanish as well.

    What to do: call `scaler.scale(loss).backward()`.
    """

    slug = "unscaled-backward"
    severity = "error"
    watches = (ev.OptimizerStepped, ev.ScalerStepped, ev.CallRaised)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._plain: dict[int, BackwardRecord] = {}
        """By optimizer: an unscaled backward that went into its last step."""

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if isinstance(event, ev.OptimizerStepped) and event.by_scaler:
            self._plain.pop(event.optimizer, None)
            plain = [record for record in change.window if record.scale == 1.0]
            if plain:
                self._plain[event.optimizer] = plain[0]
        elif isinstance(event, ev.ScalerStepped) and event.ran and event.scale != 1.0:
            record = self._plain.pop(event.optimizer, None)
            if record is not None:
                yield from self._found(record, event.scale, event, ledger)
        elif isinstance(event, ev.CallRaised) and "scaler.scale" in event.message and "did not use" in event.message:
            record = next(reversed(ledger.backwards.values()), None)
            if record is not None:
                yield from self._found(record, 0.0, event, ledger)

    def _found(
        self, record: BackwardRecord, scale: float, event: ev.ScalerStepped | ev.CallRaised, ledger: Ledger
    ) -> Iterator[Finding]:
        fault = self.fault(line_key(record.site), "backward", record.ordinal, record.seq, record.site)
        fault.words["loss"] = record.loss
        fault.facts["scale"] = scale
        fault.relate(event.site)
        fault.hit(event.seq)
        fault.add(record.parameters)
        if fault.count >= 2 or not scale:
            fault.become("confirmed")
        yield from self.tell(fault, ledger)

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        loss, scale = loss_of(fault.words.get("loss", "")), number(fault.facts.get("scale", 0.0))
        done = f"divided its gradients of {them(fault.ids, ledger)} by {scale} ({times(fault.count)})"
        refused = f"was asked to step on its gradients of {them(fault.ids, ledger)}, which torch refuses"
        message = f"The backward of {loss} at {line(fault.site)} was not scaled, yet the scaler {refused if scale == '0' else done}."
        fix = f"Call `scaler.scale({fault.words.get('loss') or 'loss'}).backward()` at {line(fault.site)}."
        return Said(message, fix, (Evidence("scale of the loss", "1", "the scaler's" if scale == "0" else scale),))
