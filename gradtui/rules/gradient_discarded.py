"""A backward whose every contribution was cleared before anything used it."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.ledger.state import BackwardRecord
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.rule import Ending, Fault, Rule, Said, line_key
from gradtui.rules.wording import call, line, loss_of, plural, them

MEASURING = 16
"""Backwards thrown away for each step that follows, above which the program measures gradients (Fisher information, norms)
and does not train with that line."""


class GradientDiscarded(Rule):
    """Gradients were computed and then cleared before any step used them.

    What it means: everything one `backward()` added was wiped by `zero_grad()` (or by hand) and no step, no hand-written
    update ever read it.

    Why it matters: that loss, or those micro-batches, have no effect on the model at all; only the time is spent.

    What to do: clear once per step, before the first backward of the window or after the step; never between a backward
    and the step that should use it, between two losses of one step, or inside the micro-batch loop.
    """

    slug = "gradient-discarded"
    severity = "error"
    watches = (ev.GradsZeroed, ev.OptimizerStepped, ev.ParametersEdited)

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if change.discarded and isinstance(event, ev.GradsZeroed):
            for record in change.discarded:
                if self._counts(record, change, ledger):
                    yield from self._suspect(record, change, ledger)
        elif isinstance(event, ev.OptimizerStepped) and self.faults:
            yield from self._judge(change, ledger)
        elif isinstance(event, ev.ParametersEdited) and self.faults and not ledger.optimizers and not event.rebound:
            yield from self._updated_by_hand(event, change, ledger)

    def _counts(self, record: BackwardRecord, change: Change, ledger: Ledger) -> bool:
        """It is a loss: nobody skipped a bad step, attacked an input, went on from the gradient itself, or wanted no update at all."""
        if not record.parameters or not record.finite or record.create_graph or change.poisoned_cleared:
            return False
        if record.owned:
            return not record.inputs
        return not ledger.optimizers  # all of it is updated by hand, if at all: a later update decides

    def _suspect(self, record: BackwardRecord, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        site = record.first_clear_site or event.site
        key = f"{line_key(site)} {line_key(record.site)}"
        fault = self.fault(key, "zero_grad", record.first_clear[1] or event.ordinal, record.first_clear[0], site)
        facts = fault.facts
        facts["waiting"] = facts.get("waiting", 0) + 1
        facts["all"] = facts.get("all", 0) + 1
        facts["clipped"] = facts.get("clipped", 0) + change.clipped_cleared
        facts["in window"] = max(facts.get("in window", 0), 1)
        if fault.facts.get("owner id") is None and record.owners:
            facts["owner id"] = record.owners[0]
        fault.words["loss"] = record.loss
        fault.words["backward"] = line_key(record.site)
        fault.words["owners"] = " ".join(map(str, record.owners))
        fault.seq = event.seq
        if id(record.parameters) != fault.merged:
            fault.merged = id(record.parameters)
            fault.add(record.parameters)
        fault.relate(record.site)
        if fault.status == "suspected":
            yield from self.tell(fault, ledger)

    def _judge(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        """A step of an optimizer whose gradients were thrown away: what came of it?"""
        assert change.optimizer is not None
        number = str(change.optimizer.info.id)
        for fault in self.faults.values():
            waiting = fault.facts.get("waiting", 0)
            if number not in fault.words["owners"].split():
                continue
            fault.words["gaps"] = (fault.words.get("gaps", "") + f" {int(waiting)}")[-400:]
            if not waiting:
                continue
            fault.facts["waiting"] = 0
            if change.by_hand:
                fault.facts["excused"] = fault.facts.get("excused", 0) + waiting
                fault.become("withdrawn")
                yield from self.tell(fault, ledger)
                continue
            self._weigh(fault, int(waiting), change)
            if fault.status == "confirmed":
                yield from self.tell(fault, ledger)

    def _updated_by_hand(self, event: ev.ParametersEdited, change: Change, ledger: Ledger) -> Iterator[Finding]:
        """The program updates its parameters itself, right after their gradients were thrown away."""
        for fault in self.faults.values():
            waiting = int(fault.facts.get("waiting", 0))
            if waiting and not fault.ids.keys().isdisjoint(event.parameters) and not change.consumed:
                fault.facts["waiting"] = 0
                self._weigh(fault, waiting, change)
                yield from self.tell(fault, ledger)

    def _weigh(self, fault: Fault, waiting: int, change: Change) -> None:
        facts = fault.facts
        facts["steps"] = facts.get("steps", 0) + 1
        fault.count += waiting
        same_line = any(line_key(record.site) == fault.words["backward"] for record in change.window)
        facts["same"] = facts.get("same", 0) + same_line
        facts["empty"] = facts.get("empty", 0) + (not change.consumed)
        fault.relate(change.event.site)
        per_step = facts["all"] / facts["steps"]
        if facts["steps"] == 1 and facts["empty"]:
            return  # one clear too many at the start of a run harms nothing yet
        certain = facts["empty"] >= 2 or (facts["same"] > 0 and fault.count >= 2) or facts["steps"] >= 3
        if certain and (facts["same"] or facts["empty"] or per_step <= MEASURING):
            fault.become("confirmed")

    def finish(self, ledger: Ledger, ending: Ending) -> None:
        for fault in self.faults.values():
            facts = fault.facts
            owner = ledger.optimizers.get(int(facts.get("owner id", 0)))
            if fault.status == "suspected" and owner is not None and not owner.steps and facts["all"] >= 2:
                fault.count = int(facts["all"])
                fault.words["never"] = owner.info.name
                fault.become("confirmed")
                for tally in ledger.lines["scheduler"].values():
                    fault.relate(tally.site)
            elif fault.status == "confirmed" and self._guarded(fault, ledger):
                fault.become("confirmed", "info")
            elif fault.status == "suspected":
                fault.become("withdrawn")

    def _guarded(self, fault: Fault, ledger: Ledger) -> bool:
        """The program looks at each gradient and decides now and then not to step (a spike, an opponent grown too strong)."""
        facts = fault.facts
        if facts["empty"] or not facts["same"]:
            return False
        seen = ledger.lines["backward"].values()
        total = sum(tally.count for tally in seen if line_key(tally.site) == fault.words["backward"])
        if facts["clipped"] >= facts["all"] and facts["all"] * 4 <= total:
            return True
        owner = ledger.optimizers.get(int(facts.get("owner id", 0)))
        single = owner is not None and sum(size > 1 for size in owner.windows) * 4 <= len(owner.windows)
        gaps = [int(gap) for gap in fault.words.get("gaps", "").split()]
        return single and gaps.count(0) * 2 >= len(gaps) and facts["all"] * 2 <= total

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        loss = loss_of(fault.words.get("loss", ""))
        backward = fault.related[0] if fault.related else None
        count = fault.count or int(fault.facts.get("all", 1))
        message = (
            f"{call(fault.site, 'A clear')} wiped the gradients of {loss} for {them(fault.ids, ledger)} before any step used "
            f"them ({plural(count, 'backward')} lost)."
        )
        never = fault.words.get("never")
        if never:
            message += f" `{never}` never stepped in the whole run."
            fix = f"Call `{never}.step()` after the backward at {line(backward)}."
        elif fault.facts.get("empty"):
            fix = f"Move the clear at {line(fault.site)} before the backward at {line(backward)}, so that it does not stand between backward and step."
        else:
            fix = f"Clear once per step: move or remove the clear at {line(fault.site)}."
        evidence = (
            Evidence("backwards thrown away", f"{int(fault.facts.get('all', 1)):,}", "0"),
            Evidence("of their contributions used", "0", "at least 1"),
        )
        return Said(message, fix, evidence)
