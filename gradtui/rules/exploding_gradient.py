"""Gradients far above their own history, or above anything ordinary, and harm that follows."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from math import hypot, isfinite
from statistics import median

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.rule import Ending, Fault, Rule, Said
from gradtui.rules.wording import line, loss_of, number, them

_LOOK_AHEAD = 20
"""Backwards within which an explosion must do harm to be one."""
_MAIN = 1e-3
"""A parameter belongs to an explosion when its norm is at least this share of the largest one's."""


class ExplodingGradient(Rule):
    """The gradient became enormous, a step used it, and the run went wrong from there.

    What it means: gradients grew from layer to layer (or time step to time step) by a factor above one, or the steps
    themselves drove the loss up.

    Why it matters: one such step throws the parameters far away; NaN usually follows within a few steps.

    What to do: clip (`clip_grad_norm_` between backward and step), lower the learning rate, or bound the recurrence (tanh,
    orthogonal initialisation, normalisation).
    """

    slug = "exploding-gradient"
    severity = "warning"
    watches = (ev.BackwardEnded, ev.GradsClipped, ev.OptimizerStepped)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._norms: dict[str, deque[float]] = {}
        self._watched = 0
        """Backwards left in which harm would confirm a suspicion."""

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if isinstance(event, ev.BackwardEnded) and change.landed:
            yield from self._backward(event, ledger)
        elif (
            isinstance(event, ev.GradsClipped) and "first" in self.faults and self.faults["first"].status == "suspected"
        ):
            fault = self.faults["first"]
            if (
                not fault.facts.get("used")
                and not fault.ids.keys().isdisjoint(event.parameters)
                and isfinite(event.limit)
            ):
                fault.become("withdrawn")
                yield from self.tell(fault, ledger)
        elif isinstance(event, ev.OptimizerStepped) and "first" in self.faults:
            fault = self.faults["first"]
            if not fault.facts.get("used") and not fault.ids.keys().isdisjoint(change.consumed):
                fault.facts["used"] = 1
                fault.relate(event.site)

    def _backward(self, event: ev.BackwardEnded, ledger: Ledger) -> Iterator[Finding]:
        fault = self.faults.get("first")
        norm = hypot(*(n for n in event.contributions.incoming if n == n)) / (event.scale or 1.0)
        if fault is not None and fault.status == "suspected":
            yield from self._harm(fault, norm, event, ledger)
            if self.faults["first"].status != "withdrawn":
                return
        norms = self._norms.setdefault(event.loss, deque(maxlen=32))
        if (
            (fault is None or fault.status == "withdrawn")
            and isfinite(norm)
            and event.value_finite
            and self._is_huge(norm, norms, event)
        ):
            yield from self._suspect(norm, norms, event, ledger)
        if isfinite(norm) and len(self._norms) < 200:
            norms.append(norm)

    def _is_huge(self, norm: float, norms: deque[float], event: ev.BackwardEnded) -> bool:
        limits = self.thresholds
        if len(norms) >= 8:
            return norm > limits.explosion_history * median(norms) and norm > 10.0
        value = abs(event.value) / (event.scale or 1.0) if event.value is not None and isfinite(event.value) else 1.0
        return norm > limits.explosion_scale and norm > 10.0 * value

    def _suspect(self, norm: float, norms: deque[float], event: ev.BackwardEnded, ledger: Ledger) -> Iterator[Finding]:
        self.faults.clear()
        fault = self.fault("first", "backward", event.ordinal, event.seq, event.site)
        added = event.contributions
        largest = max((n for n in added.incoming if isfinite(n)), default=0.0)
        fault.add(self._carriers(added, largest, ledger))
        fault.facts.update(norm=norm, median=median(norms) if norms else 0.0, value=event.value or 0.0)
        fault.words["loss"] = event.loss
        fault.hit(event.seq)
        self._watched = _LOOK_AHEAD
        yield from self.tell(fault, ledger)

    @staticmethod
    def _carriers(added: ev.Contributions, largest: float, ledger: Ledger) -> list[int]:
        """Parameters with a share in it, without modules whose bias says that what came to them was still ordinary."""
        big = [n for n, norm in zip(added.parameters, added.incoming, strict=False) if norm >= _MAIN * largest]
        names = {ledger.parameter(n).info.name for n in added.parameters}
        grown = {ledger.parameter(n).info.name for n in big}

        def ordinary(name: str) -> bool:
            bias = name.rpartition(".")[0] + ".bias"
            return bias in names and bias not in grown

        return [n for n in big if not ordinary(ledger.parameter(n).info.name)] or big

    def _harm(self, fault: Fault, norm: float, event: ev.BackwardEnded, ledger: Ledger) -> Iterator[Finding]:
        """Used, and then worse: NaN, or a loss far above what it was."""
        self._watched -= 1
        before = abs(fault.facts["value"])
        worse = not event.value_finite or not all(event.contributions.finite) or not isfinite(norm)
        worse |= event.value is not None and before > 0 and abs(event.value) > 10.0 * before
        worse |= norm > 10.0 * fault.facts["norm"]
        if fault.facts.get("used") and worse:
            fault.become("confirmed")
            yield from self.tell(fault, ledger)
        elif self._watched <= 0:
            fault.become("withdrawn")
            yield from self.tell(fault, ledger)

    def finish(self, ledger: Ledger, ending: Ending) -> None:
        for fault in self.faults.values():
            if fault.status == "suspected":
                fault.become("withdrawn")

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        facts = fault.facts
        message = (
            f"Backward {fault.first.ordinal:,} of {loss_of(fault.words.get('loss', ''))} gave a gradient of norm {number(facts['norm'])}, "
            f"largest in {them(fault.ids, ledger)}; a step used it and the run went wrong from there."
        )
        if facts["median"]:
            evidence = Evidence(
                "total gradient norm", number(facts["norm"]), f"{number(facts['median'])} in the middle before"
            )
        else:
            evidence = Evidence(
                "total gradient norm at a first backward",
                number(facts["norm"]),
                f"below {number(self.thresholds.explosion_scale)}",
            )
        fix = f"Clip between the backward at {line(fault.site)} and its step, lower the learning rate, or bound what is multiplied again and again."
        return Said(message, fix, (evidence, Evidence("loss", number(facts["value"]))))
