"""Left-over micro-batches leak into the next window."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.rule import Ending, Fault, Rule, Said
from gradtui.rules.wording import line, plural, times


class IrregularWindow(Rule):
    """One step used more backwards than the steps before and after it.

    What it means: after regular windows of N backwards one step used more: batches left over at an epoch's end were
    neither stepped nor cleared and went into the next epoch's first window.

    Why it matters: that step is too large, and mixes epochs; with losses divided by N the sum weighs more than 1.

    What to do: step (and clear) at the end of the epoch when batches are left over, or drop them with `zero_grad()`.
    """

    slug = "irregular-window"
    severity = "warning"
    watches = (ev.OptimizerStepped,)

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event, optimizer = change.event, change.optimizer
        if not isinstance(event, ev.OptimizerStepped) or optimizer is None or event.closure or change.window_size < 2:
            return
        key = str(optimizer.info.id)
        fault = self.faults.get(key)
        regular = self._regular(optimizer.windows)
        if regular >= 2 and regular < change.window_size < 2 * regular:
            yield from self._leak(key, regular, event, change, ledger)
        elif fault is not None and fault.status == "suspected" and change.window_size == fault.facts["regular"]:
            fault.become("confirmed")
            yield from self.tell(fault, ledger)

    def _regular(self, windows: object) -> int:
        """The size that windows began with and mostly have; 0 without one."""
        sizes = [size for size in windows if size][:-1]  # type: ignore[attr-defined]
        start = sizes[: int(self.thresholds.regular_windows)]
        if len(start) < self.thresholds.regular_windows or len(set(start)) != 1:
            return 0
        size, count = Counter(sizes).most_common(1)[0]
        return size if size == start[0] and count * 2 > len(sizes) else 0

    def _leak(
        self, key: str, regular: int, event: ev.OptimizerStepped, change: Change, ledger: Ledger
    ) -> Iterator[Finding]:
        members = change.window
        fault = self.fault(key, "step", event.ordinal, event.seq, event.site)
        if not fault.count:
            fault.facts.update(regular=regular, size=change.window_size)
            fault.own(change.optimizer)
            fault.relate(members[0].site if members else None)
        fault.hit(event.seq, event.used)
        yield from self.tell(fault, ledger)

    def finish(self, ledger: Ledger, ending: Ending) -> None:
        """A size that changed for good is a schedule; sizes of many kinds are free windows."""
        for fault in self.faults.values():
            optimizer = ledger.optimizers.get(int(fault.key))
            sizes = [size for size in optimizer.windows if size] if optimizer is not None else []
            regular = sizes.count(int(fault.facts["regular"])) * 2 >= len(sizes)
            if fault.status == "suspected" or not regular or len(set(sizes)) > 4:
                fault.become("withdrawn")

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        regular, size = int(fault.facts.get("regular", 0)), int(fault.facts.get("size", 0))
        backward = fault.related[0] if fault.related else None
        message = (
            f"A step of `{fault.words.get('name', 'the optimizer')}` used {size} backwards where {regular} make a window: "
            f"{plural(size - regular, 'left-over backward')} leaked into it ({times(fault.count)})."
        )
        fix = f"Step or clear what is left over at the end of an epoch, so that the window at {line(backward)} starts empty."
        return Said(message, fix, (Evidence("backwards in the step", str(size), str(regular)),))
