"""Rules that look at several processes of one run together: data-parallel ranks that should agree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from gradtui.events import CallSite
from gradtui.ledger import Change, Ledger, RunLedger
from gradtui.rules.finding import Finding
from gradtui.rules.rule import Ending, Rule


class RunRule(Rule):
    """A rule over all processes of a run. Its findings belong to the process of the first sign."""

    across: ClassVar[bool] = True

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self.run = RunLedger()
        """Set by the judge to the run's own."""

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        """Look at one event of any process."""
        yield from ()

    def finish(self, ledger: Ledger, ending: Ending) -> None:
        """The run is over; called once, with the first process's ledger."""

    def ranks(self) -> dict[int, int]:
        """Process by rank, of those that belong to one data-parallel group; empty when there are not several."""
        joined = {n: each.process for n, each in self.run.processes.items() if each.process is not None}
        world = {n: p for n, p in joined.items() if p.world_size > 1}
        return {p.rank: n for n, p in world.items()} if len(world) > 1 else {}


def last_step_site(ledger: Ledger) -> CallSite | None:
    """Line of the last step of any optimizer."""
    last = max(ledger.optimizers.values(), key=lambda o: o.last_step, default=None)
    return last.site if last is not None else None


__all__ = ["RunRule", "last_step_site"]
