"""A parameter's gradient is exactly zero in every one of its backwards."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.ledger.state import ParameterState
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.rule import Ending, Fault, Rule, Said
from gradtui.rules.wording import line, plural, them


class DeadGradient(Rule):
    """The gradient of whole modules is exactly zero, backward after backward.

    What it means: the graph reaches them, but the slope on the way is zero for every sample: a ReLU that is off
    everywhere, a weight initialised to zero behind one, a clamp outside its range.

    Why it matters: they can never recover by themselves, since a zero gradient changes nothing.

    What to do: use an activation with a slope everywhere (softplus, leaky ReLU), another initialisation, or no activation
    on the output. Exact zeros for a while are right in LoRA and behind zero-initialised heads.
    """

    slug = "dead-gradient"
    severity = "warning"
    watches = (ev.BackwardEnded,)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._zero: dict[int, int] = {}
        """Backwards with an exactly zero gradient, by parameter, while there was nothing else."""

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if isinstance(event, ev.BackwardEnded) and 0.0 in event.contributions.incoming:
            yield from self._count(event, ledger)

    def _count(self, event: ev.BackwardEnded, ledger: Ledger) -> Iterator[Finding]:
        added = event.contributions
        dead = []
        for n, norm in zip(added.parameters, added.incoming, strict=False):
            if norm == 0.0:
                p = ledger.parameter(n)
                count = self._zero[n] = self._zero.get(n, 0) + 1
                if count == p.backwards and p.owners:
                    dead.append(n)
        if not dead:
            return
        fault = self.fault("dead", "backward", event.ordinal, event.seq, event.site)
        fault.hit(event.seq)
        fault.add(dead)
        fault.facts["reached"] = len(added.parameters)
        if fault.count >= self.thresholds.dead_backwards and fault.status == "suspected":
            self._settle(fault, ledger)
        yield from self.tell(fault, ledger)

    def _settle(self, fault: Fault, ledger: Ledger) -> None:
        """Keep what has been zero in all of at least eight backwards; speak up only for whole modules."""
        least = self.thresholds.dead_backwards
        always = {
            n: None for n in fault.ids if self._zero[n] == ledger.parameter(n).backwards and self._zero[n] >= least
        }
        if not always:
            return
        fault.ids = always
        reached = [p for p in ledger.parameters.values() if p.owners and p.backwards]
        if len(always) >= len(reached):
            fault.become("confirmed", "error")
        else:
            whole = self._whole_modules(always, reached)
            fault.become("confirmed", "warning" if whole else "info")
            if whole:
                fault.ids = {n: None for n in always if _module(ledger, n) in whole}
        if fault.severity != "info":
            for site in self.sources.rectified_outputs(ledger):
                fault.relate(site)

    @staticmethod
    def _whole_modules(always: dict[int, None], reached: list[ParameterState]) -> set[str]:
        dead: dict[str, int] = {}
        total: dict[str, int] = {}
        for p in reached:
            info = p.info
            module = info.name.rpartition(".")[0]
            total[module] = total.get(module, 0) + 1
            dead[module] = dead.get(module, 0) + (info.id in always)
        return {module for module in total if dead[module] == total[module] and (total[module] > 1)}

    def finish(self, ledger: Ledger, ending: Ending) -> None:
        for fault in self.faults.values():
            if fault.status == "confirmed":
                self._settle(fault, ledger)
                alive = [n for n in fault.ids if self._zero[n] != ledger.parameter(n).backwards]
                for n in alive:
                    del fault.ids[n]
                if not fault.ids:
                    fault.become("withdrawn")
            elif fault.status == "suspected":
                fault.become("withdrawn")

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        whole = " Nothing in the model is trained." if fault.severity == "error" else ""
        message = (
            f"The gradient of {them(fault.ids, ledger)} was exactly zero in all of {plural(fault.count, 'backward')} "
            f"({line(fault.site)}).{whole}"
        )
        off = fault.related[0] if fault.related else None
        fix = (
            f"Look at {line(off)}: a ReLU on the output that is off for every sample has no slope; use softplus or no activation there."
            if off is not None
            else "Look for a ReLU or clamp that is off for every sample, or a zero initialisation behind one."
        )
        evidence = Evidence(
            "backwards with a gradient of exactly zero",
            f"all of {fault.count:,}",
            f"fewer than {int(self.thresholds.dead_backwards)} in a row",
        )
        return Said(message, fix, (evidence,))


def _module(ledger: Ledger, number: int) -> str:
    return ledger.parameter(number).info.name.rpartition(".")[0]
