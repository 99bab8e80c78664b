"""Early layers receive almost nothing of the gradient that late ones receive."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite, prod, sqrt
from statistics import median

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.rule import Ending, Fault, Rule, Said
from gradtui.rules.wording import line, number, them

_LOOKS = 5
"""Backwards in a row that must show it."""


class VanishingGradient(Rule):
    """The first layers receive a gradient many orders of magnitude below that of the last ones.

    What it means: on the way back each layer shrinks the gradient (sigmoid, tanh in saturation, small weights), and after
    many layers nothing is left.

    Why it matters: the first layers do not learn; the model is as deep as its last layers only.

    What to do: use ReLU-like activations, residual connections or normalisation, and an initialisation that fits them.
    """

    slug = "vanishing-gradient"
    severity = "warning"
    watches = (ev.BackwardEnded,)

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if not isinstance(event, ev.BackwardEnded) or len(change.landed) < 4:
            return
        fault = self.faults.get("first")
        if fault is not None and fault.status in ("confirmed", "withdrawn"):
            return
        if fault is None and event.ordinal > 50 and event.ordinal & (event.ordinal - 1):
            return
        found = self._fading(event, ledger)
        if found is None:
            if fault is not None:
                fault.become("withdrawn")
                yield from self.tell(fault, ledger)
            return
        numbers, ratio = found
        fault = self.fault("first", "backward", event.ordinal, event.seq, event.site)
        fault.facts["ratio"] = max(fault.facts.get("ratio", 0.0), ratio)
        fault.add(numbers)
        fault.hit(event.seq)
        if fault.count >= _LOOKS:
            fault.become("confirmed")
        yield from self.tell(fault, ledger)

    def _fading(self, event: ev.BackwardEnded, ledger: Ledger) -> tuple[list[int], float] | None:
        """(weights that receive next to nothing, early over late per element), when the first quarter fades altogether."""
        added = event.contributions
        sizes = []
        for n, norm in zip(added.parameters, added.incoming, strict=False):
            info = ledger.parameter(n).info
            if len(info.shape) >= 2 and info.is_parameter and ledger.parameter(n).owners and isfinite(norm):
                sizes.append((n, norm / sqrt(max(prod(info.shape), 1))))
        sizes.sort()  # numbers follow the order of the model's own parameters()
        if len(sizes) < 4:
            return None
        quarter = max(1, len(sizes) // 4)
        late = median(size for _, size in sizes[-quarter:])
        early = max(size for _, size in sizes[:quarter])
        if not late or not early or early / late >= self.thresholds.vanishing_ratio:
            return None
        return [n for n, size in sizes if size < 1e3 * self.thresholds.vanishing_ratio * late], early / late

    def finish(self, ledger: Ledger, ending: Ending) -> None:
        for fault in self.faults.values():
            if fault.status == "suspected":
                fault.become("withdrawn")

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        ratio = fault.facts.get("ratio", 0.0)
        message = (
            f"The gradient vanishes on its way back: {them(fault.ids, ledger)} receive about {number(ratio)} of what the last layers receive "
            f"(backward at {line(fault.site)})."
        )
        evidence = Evidence(
            "early over late gradient, per element", number(ratio), f"above {number(self.thresholds.vanishing_ratio)}"
        )
        return Said(
            message, "Use ReLU-like activations, residual connections or normalisation between the layers.", (evidence,)
        )
