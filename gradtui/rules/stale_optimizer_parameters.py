"""An optimizer holds tensors that the model no longer uses."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.ledger.state import OptimizerState, ParameterState
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.reading import first_backward, without_gradient
from gradtui.rules.rule import Ending, Fault, Rule, Said
from gradtui.rules.wording import line, some, them


class StaleOptimizerParameters(Rule):
    """An optimizer holds tensors that the model no longer uses, while their replacements receive the gradients.

    What it means: a layer was swapped, the model was copied, or a parameter was created anew after the optimizer was built.
    The optimizer still owns the old tensors, which no backward reaches.

    Why it matters: the new parameters never learn.

    What to do: build the optimizer after the model has its final form, and keep parameters instead of re-creating them
    (copy values in place under `torch.no_grad()`).
    """

    slug = "stale-optimizer-parameters"
    severity = "error"
    watches = (ev.OptimizerStepped,)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._settled: dict[int, int] = {}

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event, optimizer = change.event, change.optimizer
        if not isinstance(event, ev.OptimizerStepped) or optimizer is None:
            return
        if optimizer.steps > 8 and optimizer.steps & (optimizer.steps - 1):
            return
        dead = [n for n in without_gradient(optimizer, ledger, event.frozen) if ledger.parameter(n).info.is_parameter]
        if not dead:
            return
        pairs = replacements(dead, ledger)
        if pairs:
            yield from self._found(optimizer, pairs, event, ledger)

    def _found(
        self, optimizer: OptimizerState, pairs: dict[int, ParameterState], event: ev.OptimizerStepped, ledger: Ledger
    ) -> Iterator[Finding]:
        record = first_backward(optimizer, ledger)
        if record is None:
            return
        key = str(optimizer.info.id)
        fault = self.fault(key, "backward", record.ordinal, record.seq, record.site)
        if not fault.count:
            fault.own(optimizer)
            self._place(fault, pairs, optimizer, ledger)
        fault.facts["owned"] = len(optimizer.info.parameters)
        fault.facts["dead"] = len(pairs)
        names = {ledger.parameter(n).info.name for n in fault.ids}
        fault.hit(event.seq)
        fault.add(p.info.id for p in pairs.values() if p.info.name not in names)
        fault.become("confirmed" if optimizer.steps >= 2 else "suspected")
        yield from self.tell(fault, ledger)

    def _place(self, fault: Fault, pairs: dict[int, ParameterState], optimizer: OptimizerState, ledger: Ledger) -> None:
        """The line that made the new tensor, and the one that built the optimizer."""
        new = next(iter(pairs.values()))
        made = new.info.made
        if made is None:
            parts = new.info.name.split(".")
            for name in reversed(parts[1:]):
                lines = self.sources.assigned(ledger, name)
                if lines:
                    made = lines[-1]
                    break
        if made is not None:
            backward, fault.site = fault.site, made
            fault.relate(backward)
        fault.relate(optimizer.info.made, optimizer.site)

    def finish(self, ledger: Ledger, ending: Ending) -> None:
        for fault in self.faults.values():
            alive = [n for n in fault.ids if ledger.parameter(n).owners or ledger.parameter(n).steps]
            if len(alive) == len(fault.ids) or (fault.status == "suspected" and not ending.orderly):
                fault.become("withdrawn")
            elif fault.status == "suspected":
                fault.become("confirmed")

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        name = fault.words.get("name", "the optimizer")
        message = f"`{name}` still holds old tensors of {them(fault.ids, ledger)}: backward fills the new ones, which no optimizer owns."
        fix = (
            f"Build `{name}` after the model has its final form, and do not create {some(ledger.names(list(fault.ids)[:1]))} anew "
            f"({line(fault.site)}); copy values in place instead."
        )
        evidence = Evidence(
            "owned tensors out of use",
            f"{int(fault.facts.get('dead', 0)):,} of {int(fault.facts.get('owned', 0)):,}",
            "0",
        )
        return Said(message, fix, (evidence,))


def replacements(dead: list[int], ledger: Ledger) -> dict[int, ParameterState]:
    """For each unused tensor the unowned parameter in its place: of the same name, or of the same shape where the model has dropped it."""
    takers: dict[str, ParameterState] = {}
    shapes: dict[tuple[int, ...], ParameterState] = {}
    for p in ledger.parameters.values():
        if p.backwards and not p.owners and not p.steps and p.info.is_parameter and (p.info.registered or p.info.root):
            takers[p.info.name] = p
            shapes.setdefault(p.info.shape, p)
    found: dict[int, ParameterState] = {}
    for number in dead:
        old = ledger.parameter(number).info
        taker = takers.get(old.name) or (shapes.get(old.shape) if not old.registered else None)
        if taker is not None:
            found[number] = taker
    return found
