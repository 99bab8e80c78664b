"""Data-parallel ranks hold different gradients at the same step."""

from __future__ import annotations

from collections.abc import Iterator
from math import isclose, isfinite

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.rules.across import RunRule
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.rule import Fault, Said
from gradtui.rules.wording import line, number, them, times

_REMEMBERED = 64
"""Steps by which one rank may be ahead of another and still be compared."""


class ReplicasDiverge(RunRule):
    """Data-parallel ranks stepped on different gradients.

    What it means: after DistributedDataParallel has averaged them, every rank holds the same gradients. Here they differ
    at the same step: the forward went around the wrapper (`model.module(x)`), the hooks were lost, or one rank clipped or
    edited its gradients alone.

    Why it matters: the replicas drift apart; each trains on its own share of the data, and the saved one is rank 0's.

    What to do: call the wrapped model itself, and treat gradients alike on every rank.
    """

    slug = "replicas-diverge"
    severity = "error"
    watches = (ev.OptimizerStepped,)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self._steps: dict[int, dict[int, tuple[tuple[int, float], ...]]] = {}
        """By step, then rank: norms of what was used, by position in the optimizer."""

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if not isinstance(event, ev.OptimizerStepped) or ledger.process is None or ledger.process.world_size < 2:
            return
        norms = tuple((i, ledger.parameter(n).norm) for i, n in enumerate(event.used[:200]))
        ranks = self._steps.setdefault(event.ordinal, {})
        for rank, other in ranks.items():
            differing = _differing(norms, other)
            if differing:
                yield from self._found(event, change, differing, norms, other, rank, ledger)
                break
        ranks[ledger.process.rank] = norms
        while len(self._steps) > _REMEMBERED:
            del self._steps[next(iter(self._steps))]

    def _found(
        self,
        event: ev.OptimizerStepped,
        change: Change,
        differing: list[int],
        norms: tuple[tuple[int, float], ...],
        other: tuple[tuple[int, float], ...],
        rank: int,
        ledger: Ledger,
    ) -> Iterator[Finding]:
        fault = self.fault("ranks", "step", event.ordinal, event.seq, event.site)
        if not fault.count:
            index = differing[0]
            fault.facts.update(here=norms[index][1], there=other[index][1], rank=rank)
            fault.facts["own"] = ledger.process.rank if ledger.process is not None else 0
            fault.relate(change.window[-1].site if change.window else None)
            fault.add(event.used[i] for i in differing)
        fault.hit(event.seq)
        if fault.count >= 2:
            fault.become("confirmed")
        yield from self.tell(fault, ledger)

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        facts = fault.facts
        message = (
            f"Ranks {int(facts['own'])} and {int(facts['rank'])} stepped on different gradients of {them(fault.ids, ledger)} at {line(fault.site)} "
            f"({times(fault.count)})."
        )
        evidence = Evidence(
            "norm of the first that differs", f"{number(facts['here'])} and {number(facts['there'])}", "equal"
        )
        return Said(
            message,
            "Call the DistributedDataParallel model itself, not `.module`, and clip or edit gradients alike on every rank.",
            (evidence,),
        )


def _differing(one: tuple[tuple[int, float], ...], other: tuple[tuple[int, float], ...]) -> list[int]:
    if len(one) != len(other):
        return []
    return [
        i
        for (i, a), (_, b) in zip(one, other, strict=True)
        if isfinite(a) and isfinite(b) and not isclose(a, b, rel_tol=1e-3, abs_tol=1e-12)
    ]
