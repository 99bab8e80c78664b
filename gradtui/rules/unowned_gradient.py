"""Parameters of the model receive gradients and no optimizer owns them."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.ledger.state import BackwardRecord
from gradtui.rules.finding import Evidence, Finding, Severity
from gradtui.rules.rule import Ending, Fault, Rule, Said
from gradtui.rules.wording import call, line, them


class UnownedGradient(Rule):
    """Parameters of the model receive gradients, but no optimizer owns them.

    What it means: a backward writes to them and no step ever reads it: they were made or unfrozen after the optimizer was
    built, or their group was never passed to it.

    Why it matters: they never learn. Their gradients also pile up, since the optimizer's `zero_grad()` does not reach them.

    What to do: build the optimizer after the model is complete, or add them with `optimizer.add_param_group`. If they are
    meant to stay as they are, set `requires_grad=False`, which also saves the work.
    """

    slug = "unowned-gradient"
    severity = "warning"
    watches = (ev.OptimizerSeen, ev.ParametersSeen, ev.BackwardEnded, ev.BackwardProgressed, ev.OptimizerStepped)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._sets: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._optimizers = 0

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if isinstance(event, (ev.OptimizerSeen, ev.ParametersSeen)):
            self._sets.clear()
        elif change.landed and ledger.optimizers and change.record is not None:
            yield from self._look(change.landed, change.record, change, ledger)
        elif isinstance(event, ev.OptimizerStepped) and self.faults:
            yield from self._step(event, change, ledger)

    def _look(
        self, landed: tuple[int, ...], record: BackwardRecord, change: Change, ledger: Ledger
    ) -> Iterator[Finding]:
        unowned = self._sets.get(landed)
        if unowned is None:
            if len(self._sets) > 256:
                self._sets.clear()
            unowned = self._sets[landed] = unowned_of(landed, ledger)
        if not unowned:
            return
        root = ledger.parameter(unowned[0]).info.root
        fault = self.fault(root, "backward", record.ordinal, change.event.seq, record.site)
        fault.count += 1
        fault.seq = change.event.seq
        if fault.merged != id(unowned):
            fault.merged = id(unowned)
            self._merge(fault, unowned, ledger)
            fault.facts["share"] = max(fault.facts.get("share", 0.0), share_of(unowned, change.event, ledger))
        fault.words["loss"] = record.loss
        yield from self.tell(fault, ledger)

    def _merge(self, fault: Fault, unowned: tuple[int, ...], ledger: Ledger) -> None:
        """A parameter made anew at every forward is one parameter."""
        known = {ledger.parameter(n).info.name for n in fault.ids}
        fault.add(n for n in unowned if ledger.parameter(n).info.name not in known)
        info = ledger.parameter(unowned[0]).info
        fault.relate(info.made)
        if not known and info.made is None:
            for part in reversed(info.name.split(".")[1:]):
                lines = self.sources.assigned(ledger, part)
                if lines:
                    fault.relate(*lines[-2:])
                    break

    def _step(self, event: ev.OptimizerStepped, change: Change, ledger: Ledger) -> Iterator[Finding]:
        for fault in self.faults.values():
            if fault.status == "suspected" and fault.count >= 2 and self._owns_root(event.optimizer, fault, ledger):
                optimizer = change.optimizer
                if optimizer is not None:
                    fault.words["optimizer"] = optimizer.info.name
                    fault.relate(optimizer.info.made)
                fault.become("confirmed", self._grave(fault, ledger))
                yield from self.tell(fault, ledger)

    @staticmethod
    def _owns_root(number: int, fault: Fault, ledger: Ledger) -> bool:
        optimizer = ledger.optimizers.get(number)
        owned = optimizer.info.parameters if optimizer is not None else ()
        return any((p := ledger.parameters.get(n)) is not None and p.info.root == fault.key for n in owned)

    def _grave(self, fault: Fault, ledger: Ledger) -> Severity:
        return "error" if fault.facts.get("share", 0.0) > self.thresholds.major_share else "warning"

    def finish(self, ledger: Ledger, ending: Ending) -> None:
        for fault in self.faults.values():
            owned_now = [n for n in fault.ids if ledger.parameter(n).owners or ledger.parameter(n).steps]
            for n in owned_now:
                del fault.ids[n]
            used = any(
                optimizer.steps and self._owns_root(number, fault, ledger)
                for number, optimizer in ledger.optimizers.items()
            )
            if not fault.ids or not used:
                fault.become("withdrawn")
            else:
                fault.become("confirmed", self._grave(fault, ledger))

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        share = fault.facts.get("share", 0.0)
        message = (
            f"{them(fault.ids, ledger)} of `{fault.key}` {'receives a gradient' if len(fault.ids) == 1 else 'receive gradients'} "
            f"from {call(fault.site, 'a backward')}, but no optimizer owns {'it' if len(fault.ids) == 1 else 'them'}."
        )
        name = fault.words.get("optimizer", "the optimizer")
        built = next((site for site in fault.related if "optim" in site.source.lower() or "(" in site.source), None)
        after = f" (built at {line(built)})" if built is not None else ""
        fix = f"Build `{name}`{after} after the model is complete, or add them with `{name}.add_param_group`; freeze them if they are meant to stay."
        return Said(message, fix, (Evidence("share of the gradient norm that nothing uses", f"{share:.0%}", "0%"),))


def unowned_of(landed: tuple[int, ...], ledger: Ledger) -> tuple[int, ...]:
    """Registered Parameters without an owner, in models of which an optimizer owns another part."""
    states = [ledger.parameter(n) for n in landed]
    roots = {p.info.root for p in ledger.parameters.values() if p.owners and p.info.registered and p.info.root}
    return tuple(
        p.info.id
        for p in states
        if not p.owners and p.info.is_parameter and p.info.registered and p.info.root in roots and not p.steps
    )


def share_of(unowned: tuple[int, ...], event: ev.Event, ledger: Ledger) -> float:
    """Share of the squared gradient norm of one backward that fell on these parameters."""
    added = getattr(event, "contributions", None)
    if added is None:
        return 0.0
    root = ledger.parameter(unowned[0]).info.root
    inside = set(unowned)
    part = whole = 0.0
    for n, norm in zip(added.parameters, added.incoming, strict=False):
        if isfinite(norm) and ledger.parameter(n).info.root == root:
            whole += norm * norm
            part += norm * norm if n in inside else 0.0
    return part / whole if whole else 0.0
