"""A backward whose graph reaches no parameter."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.rule import Ending, Fault, Rule, Said, line_key
from gradtui.rules.wording import call, line, loss_of, plural, them, times


class BackwardReachesNothing(Rule):
    """A backward ran and reached no parameter at all.

    What it means: the loss has no history: it was wrapped anew (`torch.tensor(loss)`), or an output was detached on the
    way and `requires_grad_()` on the loss only silenced torch's error.

    Why it matters: nothing is trained.

    What to do: remove `requires_grad_()` from the loss and let torch say where the graph ends; then mend that line.
    """

    slug = "backward-reaches-nothing"
    severity = "error"
    watches = (ev.BackwardEnded, ev.CallRaised, ev.OptimizerStepped)

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if isinstance(event, ev.BackwardEnded) and ledger.optimizers and self._reaches_nothing(event, change, ledger):
            yield from self._suspect(event, ledger)
        elif isinstance(event, ev.CallRaised) and event.kind == "backward" and "does not require grad" in event.message:
            yield from self._raised(event, ledger)
        elif isinstance(event, ev.OptimizerStepped) and self.faults and not change.consumed:
            for fault in self.faults.values():
                if fault.status == "suspected":
                    fault.become("confirmed")
                    fault.relate(event.site)
                    yield from self.tell(fault, ledger)

    @staticmethod
    def _reaches_nothing(event: ev.BackwardEnded, change: Change, ledger: Ledger) -> bool:
        if event.root or event.reached > 1:
            return False
        return all(
            not (p := ledger.parameter(n)).owners and not p.info.is_parameter and not p.steps for n in change.landed
        )

    def _suspect(self, event: ev.BackwardEnded, ledger: Ledger) -> Iterator[Finding]:
        fault = self.fault(line_key(event.site), "backward", event.ordinal, event.seq, event.site)
        if not fault.count:
            fault.words["loss"] = event.loss
            self._blame(fault, ledger)
        fault.hit(event.seq)
        yield from self.tell(fault, ledger)

    def _raised(self, event: ev.CallRaised, ledger: Ledger) -> Iterator[Finding]:
        fault = self.fault(line_key(event.site), "backward", event.ordinal, event.seq, event.site)
        fault.words["loss"] = event.site.expression if event.site is not None else ""
        fault.words["raised"] = "yes"
        self._blame(fault, ledger)
        fault.hit(event.seq)
        fault.become("confirmed")
        yield from self.tell(fault, ledger)

    def _blame(self, fault: Fault, ledger: Ledger) -> None:
        owned = [n for o in ledger.optimizers.values() for n in o.info.parameters]
        fault.add(n for n in owned if ledger.parameter(n).info.requires_grad)
        silenced = self.sources.requires_grad_set(fault.site)
        cuts = self.sources.cuts(ledger, {ledger.parameter(n).info.module for n in fault.ids})
        if silenced is not None:
            backward, fault.site = fault.site, silenced
            fault.words["silenced"] = "yes"
            fault.relate(backward)
        fault.relate(*cuts)

    def finish(self, ledger: Ledger, ending: Ending) -> None:
        for fault in self.faults.values():
            if fault.status == "suspected":
                fault.become("withdrawn")

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        loss = loss_of(fault.words.get("loss", ""))
        what = (
            "could not run: the loss has no history"
            if fault.words.get("raised")
            else "reached no parameter: the loss has no history"
        )
        message = (
            f"The backward of {loss} {what}, so {them(fault.ids, ledger)} received nothing ({times(fault.count)})."
        )
        cut = next(
            (
                site
                for site in fault.related
                if any(word in site.source for word in (".data", "detach", "no_grad", "item", "numpy", "tensor("))
            ),
            None,
        )
        fix = (
            f"Mend the line that cuts the graph: {call(cut, '')}."
            if cut is not None
            else (
                "Look for `.data`, `detach()`, `no_grad()`, numpy or `torch.tensor(...)` between the model's output and the loss."
            )
        )
        if fault.words.get("silenced"):
            fix = f"Remove `requires_grad_()` at {line(fault.site)}: it only hides that the graph is cut. {fix}"
        return Said(message, fix, (Evidence("parameters reached", "0", plural(len(fault.ids), "parameter")),))
