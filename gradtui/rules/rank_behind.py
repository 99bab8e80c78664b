"""Ranks disagree about how many backwards or steps have been made."""

from __future__ import annotations

from gradtui.ledger import Ledger
from gradtui.rules.across import RunRule, last_step_site
from gradtui.rules.finding import Evidence
from gradtui.rules.rule import Ending, Fault, Said


class RankBehind(RunRule):
    """Data-parallel ranks made different numbers of backwards or steps.

    What it means: one rank had more batches, skipped one, or left its loop early.

    Why it matters: collective operations wait for every rank: the run hangs, or pairs the wrong batches.

    What to do: give every rank the same number of batches (`DistributedSampler(drop_last=True)`, `Join`).
    """

    slug = "rank-behind"
    severity = "warning"
    watches = ()

    def finish(self, ledger: Ledger, ending: Ending) -> None:
        ranks = self.ranks()
        for kind in ("backward", "step"):
            counts = {rank: getattr(self.run.processes[n].counts, kind) for rank, n in ranks.items()}
            if not counts or max(counts.values()) == min(counts.values()):
                continue
            behind = min(counts, key=lambda rank: counts[rank])
            fault = self.fault(kind, "end", 1, ledger.seq, last_step_site(self.run.processes[ranks[behind]]))
            fault.facts.update(least=min(counts.values()), most=max(counts.values()), rank=behind)
            fault.words["kind"] = kind
            fault.become("confirmed")
            fault.hit(ledger.seq)
            return

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        facts, kind = fault.facts, fault.words.get("kind", "backward")
        message = f"Rank {int(facts['rank'])} made {int(facts['least']):,} {kind}s where another rank made {int(facts['most']):,}."
        fix = "Give every rank the same number of batches (`DistributedSampler(drop_last=True)`), and skip steps on all ranks or none."
        return Said(
            message,
            fix,
            (
                Evidence(
                    f"{kind}s, least and most over the ranks",
                    f"{int(facts['least']):,} and {int(facts['most']):,}",
                    "equal",
                ),
            ),
        )
