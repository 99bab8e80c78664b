"""The same gradient, bit for bit, comes again and again."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.rule import Ending, Fault, Rule, Said, line_key
from gradtui.rules.wording import line, plural, times


class SameGradientAgain(Rule):
    """Successive backwards from one line added exactly the same gradients.

    What it means: nothing changed between them: the same batch (`next(iter(loader))` starts the loader anew each time),
    or parameters that do not move.

    Why it matters: accumulating one batch N times is no larger batch, and training on one batch learns that batch.

    What to do: make the iterator once, outside the loop, and take the next batch from it.
    """

    slug = "same-gradient-again"
    severity = "warning"
    watches = (ev.BackwardEnded,)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._last: dict[str, tuple[float, ...]] = {}

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if not isinstance(event, ev.BackwardEnded) or len(change.landed) < 2 or event.parent:
            return
        key = line_key(event.site)
        incoming = event.contributions.incoming
        if self._last.get(key) != incoming:
            if len(self._last) > 200:
                self._last.clear()
            self._last[key] = incoming
            return
        if event.value == 0.0 or not any(norm > 0.0 for norm in incoming) or event.retain_graph:
            return
        fault = self.fault(key, "backward", event.ordinal, event.seq, event.site)
        fault.hit(event.seq, change.landed)
        fault.words["loss"] = event.loss
        if fault.count >= self.thresholds.same_gradient:
            fault.become("confirmed")
        yield from self.tell(fault, ledger)

    def finish(self, ledger: Ledger, ending: Ending) -> None:
        """Now and then is chance or evaluation; it must be common, and what it gives must be used."""
        for fault in self.faults.values():
            site = fault.site
            tally = ledger.lines["backward"].get((site.file, site.line) if site else ("", 0))
            total = tally.count if tally is not None else 0
            fault.facts["total"] = total
            stepped = any(ledger.parameter(n).steps for n in list(fault.ids)[:4])
            wanted = fault.status == "confirmed" and fault.count * 3 >= total and stepped
            fault.become("confirmed" if wanted else "withdrawn")

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        total = int(fault.facts.get("total", 0))
        of = f" in {plural(total, 'backward')}" if total else ""
        message = (
            f"Backwards at {line(fault.site)} added exactly the same gradients as the one before, {times(fault.count)}{of}: "
            "the batch does not change."
        )
        fix = "Make the iterator once, outside the loop, and take the next batch from it."
        return Said(message, fix, (Evidence("identical to the backward before", f"{fault.count:,}", "0"),))
