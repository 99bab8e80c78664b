"""Every clip shrinks the gradients, and by far."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from math import isfinite
from statistics import median

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.rule import Ending, Fault, Rule, Said, line_key
from gradtui.rules.wording import line, number, plural


class ClipAlwaysActive(Rule):
    """Every single clip shrank the gradients, usually more than tenfold.

    What it means: the limit lies far below the ordinary norm, so each step has the same length whatever the gradient.

    Why it matters: the clip acts as a normalisation and hides the scale of the loss; the learning rate alone sets the step.

    What to do: nothing, if that is meant; else raise the limit to about the ordinary norm.
    """

    slug = "clip-always-active"
    severity = "info"
    watches = (ev.GradsClipped,)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._shrinks: dict[str, deque[float]] = {}
        self._idle: set[str] = set()

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if not isinstance(event, ev.GradsClipped) or event.method != "norm" or event.limit <= 0 or not event.parameters:
            return
        key = line_key(event.site)
        if key in self._idle or not isfinite(event.norm):
            return
        if event.norm <= event.limit:
            self._idle.add(key)
            if key in self.faults:
                self.faults[key].become("withdrawn")
                yield from self.tell(self.faults[key], ledger)
            return
        shrinks = self._shrinks.setdefault(key, deque(maxlen=200))
        shrinks.append(event.norm / event.limit)
        if len(shrinks) >= self.thresholds.always_clipped:
            fault = self.fault(key, "clip", max(event.ordinal - len(shrinks) + 1, 1), event.seq, event.site)
            fault.facts.update(limit=event.limit)
            fault.hit(event.seq, event.parameters)
            yield from self.tell(fault, ledger)

    def finish(self, ledger: Ledger, ending: Ending) -> None:
        for key, fault in self.faults.items():
            middle = median(self._shrinks[key]) if self._shrinks.get(key) else 0.0
            fault.facts["shrink"] = middle
            wanted = key not in self._idle and middle > self.thresholds.clip_shrink
            fault.become("confirmed" if wanted else "withdrawn")

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        shrink, limit = fault.facts.get("shrink", 0.0), fault.facts.get("limit", 0.0)
        by = f", by {number(shrink)}× in the middle" if shrink else ""
        message = f"Every clip at {line(fault.site)} was active{by} ({plural(fault.count, 'clip')} seen beyond the first ones)."
        ordinary = number(limit * shrink) if shrink else "the ordinary norm"
        return Said(
            message,
            f"If it is not meant, raise the limit from {number(limit)} towards {ordinary}.",
            (Evidence("median shrink", f"{number(shrink)}×", f"{number(self.thresholds.clip_shrink)}×"),),
        )
