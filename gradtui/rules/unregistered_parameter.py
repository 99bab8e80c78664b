"""Parameters that live in a model but in no module's parameters()."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.ledger.state import BackwardRecord
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.rule import Ending, Fault, Rule, Said
from gradtui.rules.wording import call, line, them


class UnregisteredParameter(Rule):
    """Trainable tensors of a model are in no module's `parameters()`.

    What it means: they were kept in a plain list or dict, or as a plain tensor attribute. torch registers modules and
    Parameters only when they are attributes, or in `ModuleList`, `ModuleDict`, `ParameterList`.

    Why it matters: no optimizer gets them, `zero_grad()` does not reach them, `.to(device)` and `state_dict()` forget them.

    What to do: use `nn.ModuleList` (or `ModuleDict`, `ParameterList`, `nn.Parameter`).
    """

    slug = "unregistered-parameter"
    severity = "error"
    watches = (ev.OptimizerSeen, ev.ParametersSeen, ev.BackwardEnded, ev.BackwardProgressed, ev.OptimizerStepped)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._sets: dict[tuple[int, ...], tuple[int, ...]] = {}

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if isinstance(event, (ev.OptimizerSeen, ev.ParametersSeen)):
            self._sets.clear()
        elif change.landed and ledger.optimizers and change.record is not None:
            yield from self._look(change.landed, change.record, change, ledger)
        elif isinstance(event, ev.OptimizerStepped) and self.faults:
            fault = next(iter(self.faults.values()))
            if fault.status == "suspected" and fault.count >= 2:
                fault.become("confirmed")
                yield from self.tell(fault, ledger)

    def _look(
        self, landed: tuple[int, ...], record: BackwardRecord, change: Change, ledger: Ledger
    ) -> Iterator[Finding]:
        stray = self._sets.get(landed)
        if stray is None:
            if len(self._sets) > 256:
                self._sets.clear()
            stray = self._sets[landed] = self._stray(landed, ledger)
        if not stray:
            return
        fault = self.fault("stray", "backward", record.ordinal, change.event.seq, record.site)
        if not fault.count:
            self._place(fault, stray, ledger)
        fault.hit(change.event.seq, stray)
        yield from self.tell(fault, ledger)

    @staticmethod
    def _stray(landed: tuple[int, ...], ledger: Ledger) -> tuple[int, ...]:
        states = [ledger.parameter(n) for n in landed]
        if not any(p.owners for p in states):
            return ()
        return tuple(
            p.info.id for p in states if not p.owners and not p.info.registered and p.info.root and not p.steps
        )

    def _place(self, fault: Fault, stray: tuple[int, ...], ledger: Ledger) -> None:
        info = ledger.parameter(stray[0]).info
        held = info.name.split("[")[0].split(".")[-1]
        lines = self.sources.assigned(ledger, held)
        site = lines[0] if lines else info.made
        if site is not None:
            backward, fault.site = fault.site, site
            fault.relate(backward)
        fault.relate(info.made)

    def finish(self, ledger: Ledger, ending: Ending) -> None:
        for fault in self.faults.values():
            for n in [n for n in fault.ids if (p := ledger.parameter(n)).owners or p.steps or p.info.registered]:
                del fault.ids[n]
            plain = [n for n in fault.ids if not ledger.parameter(n).info.is_parameter]
            for n in plain:
                if ledger.parameter(n).backwards < 3:  # an input of one batch, not something to train
                    del fault.ids[n]
            fault.become("confirmed" if fault.ids and fault.count >= 2 else "withdrawn")

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        message = f"{them(fault.ids, ledger)} receive gradients but are in no module's `parameters()`, so no optimizer owns them."
        where = call(fault.site, "where they are kept")
        fix = f"Use `nn.ModuleList` (or `nn.ParameterList`, `nn.Parameter`) instead of a plain list or tensor: {where}."
        if not fault.related:
            fix = f"Use `nn.ModuleList`, `nn.ParameterList` or `nn.Parameter` where they are made, not at {line(fault.site)}."
        return Said(message, fix, (Evidence("registered in a module", "no", "yes"),))
