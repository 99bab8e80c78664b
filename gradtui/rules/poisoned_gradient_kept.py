"""Non-finite gradients survive a skipped step, and later backwards add onto them."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.rule import Ending, Fault, Rule, Said
from gradtui.rules.wording import line, plural, them


class PoisonedGradientKept(Rule):
    """NaN or infinite gradients were kept after a skipped step, and later backwards added onto them.

    What it means: the program (or a GradScaler) saw that the gradients were not finite and skipped the step, but nothing
    cleared them. NaN plus anything is NaN, so no later batch can be used either.

    Why it matters: from that batch on every step is skipped; the log looks as if training had simply stopped.

    What to do: call `zero_grad()` in the branch that skips the step too.
    """

    slug = "poisoned-gradient-kept"
    severity = "error"
    watches = (
        ev.BackwardEnded,
        ev.BackwardProgressed,
        ev.ScalerStepped,
        ev.GradsClipped,
        ev.GradsZeroed,
        ev.OptimizerStepped,
    )

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._poisoned: dict[int, None] = {}
        self._since = 0
        """Event of the backward that brought the poison."""
        self._looked = False
        """The gradients were measured, or a scaler skipped, since then."""

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if change.onto_poisoned and change.record is not None:
            yield from self._added(change, ledger)
        if change.nonfinite and change.record is not None:
            if not self._poisoned:
                self._since, self._looked = event.seq, False
                if "kept" not in self.faults or self.faults["kept"].status == "withdrawn":
                    self.faults.clear()
                    self.fault("kept", "backward", change.record.ordinal, event.seq, change.record.site)
            self._poisoned.update(dict.fromkeys(change.nonfinite))
        if not self._poisoned:
            return
        if (isinstance(event, ev.ScalerStepped) and not event.ran) or isinstance(event, ev.GradsClipped):
            self._looked = True
        elif isinstance(event, (ev.GradsZeroed, ev.OptimizerStepped)):
            yield from self._over(event, ledger)

    def _added(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        record = change.record
        fault = self.faults.get("kept")
        if record is None or fault is None:
            return
        if not self._beyond_window(change, ledger):
            return
        if fault.status == "suspected":
            fault.site = record.site
            fault.words["loss"] = record.loss
            fault.facts["bad"] = fault.first.ordinal
            fault.relate(next((o.site for o in ledger.optimizers.values() if o.site is not None), None))
        fault.become("confirmed")
        fault.hit(change.event.seq, tuple(self._poisoned))
        yield from self.tell(fault, ledger)

    def _beyond_window(self, change: Change, ledger: Ledger) -> bool:
        """A step was due between the poison and this backward, and was skipped."""
        record = change.record
        assert record is not None
        windows = [size for owner in record.owners for size in ledger.optimizers[owner].windows if size]
        sizes = [len(ledger.optimizers[owner].window) for owner in record.owners]
        if any(ledger.optimizers[owner].skipped for owner in record.owners):
            return True
        if windows:
            return max(sizes, default=0) > max(windows)
        return self._looked

    def _over(self, event: ev.GradsZeroed | ev.OptimizerStepped, ledger: Ledger) -> Iterator[Finding]:
        gone = event.parameters if isinstance(event, ev.GradsZeroed) else event.used
        for number in gone:
            self._poisoned.pop(number, None)
        fault = self.faults.get("kept")
        if not self._poisoned and fault is not None and fault.status == "suspected":
            fault.become("withdrawn")
        yield from ()

    def finish(self, ledger: Ledger, ending: Ending) -> None:
        fault = self.faults.get("kept")
        if fault is not None and fault.status == "suspected":
            fault.become("withdrawn")

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        bad = int(fault.facts.get("bad", fault.first.ordinal))
        message = (
            f"Backward {bad:,} left NaN or infinite gradients in {them(fault.ids, ledger)}; the step was skipped but nothing cleared "
            f"them, and {plural(fault.count, 'later backward')} added onto them."
        )
        fix = f"Call `zero_grad()` in the branch that skips the step, before the next backward at {line(fault.site)}."
        return Said(message, fix, (Evidence("backwards lost since", f"{fault.count:,}", "0"),))
