"""Half-precision gradients vanish below the smallest number the type can hold."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.rule import Ending, Fault, Rule, Said, line_key
from gradtui.rules.wording import line, loss_of, number, them, times

_SMALLEST = {"float16": 5.96e-8, "bfloat16": 9.2e-41}
"""Smallest positive (subnormal) number of each type."""


class Fp16Underflow(Rule):
    """Half-precision gradients fell below the smallest number the type can hold.

    What it means: most elements of these gradients are exact zeros (or subnormal, with a digit or two left), although the
    loss is not zero and nothing scales it.

    Why it matters: the parameters do not move, and no error says so.

    What to do: keep the parameters in float32 and use `torch.autocast` with a GradScaler, or use bfloat16.
    """

    slug = "fp16-underflow"
    severity = "warning"
    watches = (ev.BackwardEnded,)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._before: dict[int, float] = {}
        """Largest share of ordinary elements seen so far, by parameter."""

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if not isinstance(event, ev.BackwardEnded) or not change.landed:
            return
        half = [n for n in change.landed if ledger.parameter(n).info.dtype in _SMALLEST]
        if not half:
            return
        lost = self._all_zero(event, half) or self._shrunk(event)
        if lost and event.value_finite and event.value != 0.0:
            yield from self._found(tuple(lost), event, ledger)

    @staticmethod
    def _all_zero(event: ev.BackwardEnded, half: list[int]) -> list[int]:
        """Every gradient of the backward is exactly zero."""
        added = event.contributions
        if len(half) < len(added.parameters) or any(norm != 0.0 for norm in added.incoming):
            return []
        return half

    def _shrunk(self, event: ev.BackwardEnded) -> list[int]:
        """Gradients of which most is gone now that was not before."""
        lost = []
        for number_, tiny in zip(event.contributions.parameters, event.contributions.tiny, strict=False):
            ordinary = 1.0 - tiny
            best = self._before.get(number_, 0.0)
            if tiny > self.thresholds.tiny_share and best > self.thresholds.tiny_share:
                lost.append(number_)
            self._before[number_] = max(best, ordinary)
        return lost

    def _found(self, lost: tuple[int, ...], event: ev.BackwardEnded, ledger: Ledger) -> Iterator[Finding]:
        fault = self.fault(line_key(event.site), "backward", event.ordinal, event.seq, event.site)
        dtype = ledger.parameter(lost[0]).info.dtype
        fault.words.update(loss=event.loss, dtype=dtype)
        fault.facts.update(value=event.value if event.value is not None else float("nan"), scale=event.scale)
        fault.hit(event.seq)
        fault.add(lost)
        if fault.count >= 3:
            fault.become("confirmed")
        yield from self.tell(fault, ledger)

    def finish(self, ledger: Ledger, ending: Ending) -> None:
        for fault in self.faults.values():
            alive = [n for n in fault.ids if any(norm > 0.0 for norm in ledger.parameter(n).history)]
            if len(alive) == len(fault.ids) and fault.count * 2 < ledger.parameter(next(iter(fault.ids))).backwards:
                fault.become("withdrawn")
            for optimizer in ledger.optimizers.values():
                fault.relate(optimizer.info.made)

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        dtype = fault.words.get("dtype", "float16")
        message = (
            f"Most of the {dtype} gradients of {them(fault.ids, ledger)} vanished in the backward of {loss_of(fault.words.get('loss', ''))} at "
            f"{line(fault.site)}, although the loss is {number(fault.facts.get('value', 0.0))} ({times(fault.count)})."
        )
        evidence = (
            Evidence(f"smallest {dtype}", number(_SMALLEST.get(dtype, 0.0))),
            Evidence("loss scale", number(fault.facts.get("scale", 1.0)), "2^16 to begin with"),
        )
        return Said(
            message, "Keep the parameters in float32 and use autocast with a GradScaler, or use bfloat16.", evidence
        )
