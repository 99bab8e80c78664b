"""A GradScaler skips every step."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.events import CallSite
from gradtui.ledger import Change, Ledger
from gradtui.ledger.state import BackwardRecord
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.rule import Ending, Fault, Rule, Said
from gradtui.rules.wording import line, number, plural, some, them


class ScalerAlwaysSkips(Rule):
    """A GradScaler skipped many steps in a row because gradients were not finite.

    What it means: a few skips are normal while the scale calibrates. After this many the scale is not to blame: the
    gradients are NaN or infinite at any scale.

    Why it matters: nothing is trained, and nothing says so; only the scale falls towards zero.

    What to do: find where the first non-finite gradient comes from and mend that operation.
    """

    slug = "scaler-always-skips"
    severity = "error"
    watches = (ev.BackwardEnded, ev.BackwardProgressed, ev.NonfiniteOrigin, ev.ScalerStepped)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._bad: dict[int, tuple[BackwardRecord, tuple[int, ...]]] = {}
        """By optimizer: the first non-finite backward since its last step that ran."""
        self._origin: tuple[str, CallSite | None] = ("", None)

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if change.nonfinite and change.record is not None:
            for owner in change.record.owners:
                self._bad.setdefault(owner, (change.record, change.nonfinite))
        elif isinstance(event, ev.NonfiniteOrigin) and not self._origin[0]:
            self._origin = (event.op, event.forward)
        elif isinstance(event, ev.ScalerStepped) and change.optimizer is not None:
            if event.ran:
                self._bad.pop(event.optimizer, None)
            elif change.optimizer.skipped >= self.thresholds.scaler_skips and event.optimizer in self._bad:
                yield from self._found(event, change, ledger)

    def _found(self, event: ev.ScalerStepped, change: Change, ledger: Ledger) -> Iterator[Finding]:
        assert change.optimizer is not None
        record, numbers = self._bad[event.optimizer]
        fault = self.fault(str(event.optimizer), "backward", record.ordinal, record.seq, event.site)
        fault.become("confirmed")
        fault.own(change.optimizer)
        fault.facts.update(skipped=change.optimizer.skipped, scale=event.scale)
        fault.count = change.optimizer.skipped
        fault.seq = event.seq
        fault.add(numbers)
        fault.relate(self._origin[1], record.site)
        yield from self.tell(fault, ledger)

    def finish(self, ledger: Ledger, ending: Ending) -> None:
        for fault in self.faults.values():
            fault.relate(self._origin[1])

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        facts = fault.facts
        message = (
            f"The scaler skipped {plural(int(facts.get('skipped', 0)), 'step')} of `{fault.words.get('name', 'the optimizer')}` in a row: since backward "
            f"{fault.first.ordinal:,} the gradients of {them(fault.ids, ledger)} are NaN or infinite at any scale."
        )
        evidence = (
            Evidence(
                "steps skipped in a row",
                f"{int(facts.get('skipped', 0)):,}",
                f"fewer than {int(self.thresholds.scaler_skips)}",
            ),
            Evidence("loss scale by now", number(facts.get("scale", 0.0))),
        )
        op, forward = self._origin
        if forward is not None:
            fix = f"Mend the operation at {line(forward)} whose backward is {op}."
        else:
            fix = f"Start near {some(ledger.names(list(fault.ids)[-1:]))}, the one next to the loss; `--find-origin` names the operation."
        return Said(message, fix, evidence)
