"""A GradScaler steps and is not updated before it steps again."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.events import CallSite
from gradtui.ledger import Change, Ledger
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.rule import Ending, Fault, Rule, Said, line_key
from gradtui.rules.wording import line


class ScalerNeverUpdated(Rule):
    """A GradScaler stepped an optimizer, and `update()` was not called before the next iteration.

    What it means: `scaler.step` remembers that it has run; only `scaler.update()` makes it ready for the next step and
    adjusts the scale.

    Why it matters: torch raises "step() has already been called since the last update()" at the next step.

    What to do: call `scaler.update()` once per iteration, after the last `scaler.step`.
    """

    slug = "scaler-never-updated"
    severity = "error"
    watches = (ev.ScalerStepped, ev.ScalerUpdated, ev.BackwardEnded, ev.CallRaised)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._stepped: dict[int, CallSite | None] = {}
        """Optimizers that the scaler has stepped since it was last updated."""

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if isinstance(event, ev.ScalerStepped):
            if event.optimizer in self._stepped:
                yield from self._confirm(event, ledger)
            self._stepped[event.optimizer] = event.site
        elif isinstance(event, ev.ScalerUpdated):
            self._stepped.clear()
            for fault in self.faults.values():
                if fault.status == "suspected":
                    fault.become("withdrawn")
                    yield from self.tell(fault, ledger)
        elif not self._stepped:
            return
        elif isinstance(event, ev.BackwardEnded) and event.scale != 1.0 and change.record is not None:
            for owner in change.record.owners:
                if owner in self._stepped:
                    yield from self._suspect(owner, event, ledger)
        elif isinstance(event, ev.CallRaised) and "since the last update" in event.message:
            yield from self._confirm(event, ledger)

    def _suspect(self, owner: int, event: ev.BackwardEnded, ledger: Ledger) -> Iterator[Finding]:
        site = self._stepped[owner]
        key = line_key(site)
        known = self.faults.get(key)
        if known is not None and known.status == "withdrawn":
            del self.faults[key]
        fault = self.fault(key, "backward", event.ordinal, event.seq, site)
        fault.own(ledger.optimizers[owner])
        fault.add(ledger.optimizers[owner].info.parameters)
        fault.relate(event.site)
        yield from self.tell(fault, ledger)

    def _confirm(self, event: ev.ScalerStepped | ev.CallRaised, ledger: Ledger) -> Iterator[Finding]:
        for fault in self.faults.values():
            if fault.status != "withdrawn":
                fault.become("confirmed")
                fault.hit(event.seq)
                yield from self.tell(fault, ledger)

    def finish(self, ledger: Ledger, ending: Ending) -> None:
        for fault in self.faults.values():
            if fault.status == "suspected":
                fault.become("confirmed" if not ledger.counts.scaler_update else "withdrawn")

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        message = (
            f"The scaler stepped `{fault.words.get('name', 'the optimizer')}` at {line(fault.site)} and a new scaled backward began without "
            "`scaler.update()` between."
        )
        evidence = Evidence("updates of the scaler", f"{ledger.counts.scaler_update:,}", "one an iteration")
        return Said(message, f"Add `scaler.update()` after the scaler's step at {line(fault.site)}.", (evidence,))
