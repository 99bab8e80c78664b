"""Parameters that an optimizer owns and no backward ever reaches."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.ledger.state import OptimizerState
from gradtui.rules.finding import Evidence, Finding, Severity
from gradtui.rules.reading import first_backward, without_gradient
from gradtui.rules.rule import Ending, Fault, Rule, Said
from gradtui.rules.wording import call, plural, them


class OwnedWithoutGradient(Rule):
    """An optimizer owns trainable parameters that no backward has ever written to.

    What it means: the graph from the loss ends before it gets to these parameters (`detach()`, `.data`, `no_grad()`, numpy,
    `argmax` on the way), or the part of the model they belong to is never used in forward.

    Why it matters: they stay as they were initialised, whatever the loss says.

    What to do: remove the cut, use the module in forward, or set `requires_grad=False` if they are meant to stay.
    """

    slug = "owned-without-gradient"
    severity = "warning"
    watches = (ev.OptimizerStepped,)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._settled: set[int] = set()

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if isinstance(event, ev.OptimizerStepped) and change.optimizer is not None:
            number = change.optimizer.info.id
            if number not in self._settled:
                yield from self._look(change.optimizer, event, ledger)

    def _look(self, optimizer: OptimizerState, event: ev.OptimizerStepped, ledger: Ledger) -> Iterator[Finding]:
        number = optimizer.info.id
        missing = without_gradient(optimizer, ledger, event.frozen)
        key = str(number)
        if not missing:
            self._settled.add(number)
            if key in self.faults:
                self.faults[key].become("withdrawn")
                yield from self.tell(self.faults[key], ledger)
            return
        record = first_backward(optimizer, ledger)
        fault = self.faults.get(key)
        if fault is None:
            if record is None:
                return
            fault = self.fault(key, "backward", record.ordinal, record.seq, record.site)
            fault.words["loss"] = record.loss
            fault.own(optimizer)
            fault.relate(event.site)
        fault.ids = dict.fromkeys(missing)
        fault.count = optimizer.steps
        fault.facts.update(steps=optimizer.steps, owned=len(optimizer.info.parameters))
        fault.seq = event.seq
        if optimizer.steps >= self.thresholds.first_windows:
            self._settled.add(number)
            self._point(fault, ledger)
            fault.become("confirmed", self._grave(optimizer, missing, ledger))
            fault.dirty = True
        yield from self.tell(fault, ledger)

    def _point(self, fault: Fault, ledger: Ledger) -> None:
        """Lines that may cut the graph, read from the source."""
        if "cut" not in fault.words:
            cuts = self.sources.cuts(ledger, {ledger.parameter(n).info.module for n in fault.ids})
            fault.words["cut"] = " or ".join(call(site, "") for site in cuts)
            fault.relate(*cuts)

    @staticmethod
    def _grave(optimizer: OptimizerState, missing: list[int], ledger: Ledger) -> Severity:
        trainable = [n for n in optimizer.info.parameters if ledger.parameter(n).info.requires_grad]
        return "error" if len(missing) >= len(trainable) else "warning"

    def finish(self, ledger: Ledger, ending: Ending) -> None:
        for key, fault in self.faults.items():
            optimizer = ledger.optimizers.get(int(key))
            missing = without_gradient(optimizer, ledger, ()) if optimizer is not None else []
            if optimizer is None or not missing:
                fault.become("withdrawn")
                continue
            fault.ids = dict.fromkeys(missing)
            fault.count = optimizer.steps
            fault.facts.update(steps=optimizer.steps, owned=len(optimizer.info.parameters))
            if optimizer.steps >= 2 or ending.orderly:
                self._point(fault, ledger)
                fault.become("confirmed", self._grave(optimizer, missing, ledger))
            else:
                fault.become("withdrawn")

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        name = fault.words.get("name", "the optimizer")
        owned = int(fault.facts.get("owned", 0))
        message = (
            f"`{name}` owns {them(fault.ids, ledger)} that no backward has reached in its "
            f"{plural(int(fault.facts.get('steps', 1)), 'step')}: their gradient stays None."
        )
        cut = fault.words.get("cut")
        fix = (
            f"Look at {cut}: that cuts the graph. Set `requires_grad=False` if they are meant to stay."
            if cut
            else (
                "Look for `detach()`, `.data`, `no_grad()` or numpy between them and the loss, or a module that forward never calls; "
                "set `requires_grad=False` if they are meant to stay."
            )
        )
        evidence = Evidence("owned parameters without a gradient", f"{len(fault.ids):,} of {owned:,}", "0")
        return Said(message, fix, (evidence,))
