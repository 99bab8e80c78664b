"""A step consumes a sum that an earlier step has consumed before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gradtui import events as ev
from gradtui.events import CallSite
from gradtui.ledger import Change, Ledger
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.rule import Ending, Fault, Rule, Said, line_key
from gradtui.rules.wording import call, line, optimizer_of, plural, them, times


class StaleGradient(Rule):
    """A step used a gradient that still held what an earlier step had already used.

    What it means: `backward()` adds to `.grad`. Nothing cleared it after the last step, so the next step moved the
    parameters by the new gradient plus all the old ones again.

    Why it matters: every step repeats the ones before it. It acts like momentum that never fades: the loss may still fall
    at first, then stalls or climbs.

    What to do: call `optimizer.zero_grad()` once per step, before `backward()` or right after `step()`, for every
    optimizer and every tensor that is updated. Inside a closure, clear first thing in the closure.
    """

    slug = "stale-gradient"
    severity = "error"
    watches = (ev.BackwardEnded, ev.BackwardProgressed, ev.OptimizerStepped, ev.ParametersEdited, ev.GradsZeroed)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._marked: dict[int, str] = {}
        """Parameters whose gradient is a mixture now, and the fault each belongs to."""
        self._last_clear: CallSite | None = None

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if change.stale:
            yield from self._confirm(change.stale, change, ledger)
        if change.repeated and change.consumed and event.__class__ is ev.OptimizerStepped:
            yield from self._kept(change, ledger)
        if change.onto_spent:
            yield from self._suspect(change, ledger)
        if event.__class__ is ev.GradsZeroed:
            self._last_clear = event.site or self._last_clear
            if self._marked:
                yield from self._withdraw(event.parameters, ledger)

    def _suspect(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        record = change.record
        assert record is not None
        for key, numbers in self._by_spender(change.onto_spent, ledger).items():
            fault = self.fault(key, "backward", record.ordinal, change.event.seq, record.site)
            if fault.status == "withdrawn":
                self._begin_again(fault, change)
            for number in numbers:
                self._marked[number] = key
            if fault.status == "suspected":
                fault.words["loss"] = record.loss
                fault.add(numbers)
                yield from self.tell(fault, ledger)

    def _begin_again(self, fault: Fault, change: Change) -> None:
        record = change.record
        assert record is not None
        del self.faults[fault.key]
        again = self.fault(fault.key, "backward", record.ordinal, change.event.seq, record.site)
        fault.first, fault.site, fault.status, fault.ids = again.first, again.site, "suspected", {}
        fault.related, fault.dirty = [], True
        self.faults[fault.key] = fault

    def _by_spender(self, numbers: Iterable[int], ledger: Ledger) -> dict[str, list[int]]:
        """Parameters by the line of the step that used them: one missing clear is one fault."""
        found: dict[str, list[int]] = {}
        for number in numbers:
            spender = ledger.optimizers.get(ledger.parameter(number).spent_by)
            found.setdefault(line_key(spender.site) if spender is not None else "by hand", []).append(number)
        return found

    def _confirm(self, numbers: tuple[int, ...], change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        grouped: dict[str, list[int]] = {}
        for number in numbers:
            grouped.setdefault(self._marked.pop(number, "by hand"), []).append(number)
        for key, members in grouped.items():
            fault = self.faults.get(key)
            if fault is None:
                continue
            if fault.status != "confirmed":
                fault.ids = {}
            fault.become("confirmed")
            fault.add(members)
            fault.count += 1
            fault.seq = event.seq
            self._name_consumer(fault, members[0], change, ledger)
            yield from self.tell(fault, ledger)

    def _name_consumer(self, fault: Fault, number: int, change: Change, ledger: Ledger) -> None:
        p = ledger.parameter(number)
        optimizer = ledger.optimizers.get(p.spent_by)
        if fault.count == 1:
            fault.words["spender"] = optimizer_of(p.spent_by, ledger)
            fault.facts["optimizer"] = p.spent_by
            fault.facts["sum"] = len(p.contributions) + p.folded
            fault.facts["norm"] = p.norm
        event = change.event
        within = isinstance(event, (ev.BackwardEnded, ev.ParametersEdited)) and p.spent_by != 0
        closure = within or (isinstance(event, ev.OptimizerStepped) and event.closure)
        fault.words["closure"] = "yes" if closure or fault.words.get("closure") else ""
        fault.relate(change.event.site if optimizer is None else optimizer.site, self._last_clear)

    def _kept(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        """Part of what a step used is new, the rest is left from an earlier step, untouched."""
        event = change.event
        key = f"kept {line_key(event.site)}"
        fault = self.fault(key, "step", event.ordinal, event.seq, event.site)
        fault.become("confirmed")
        fault.add(change.repeated)
        fault.count += 1
        fault.seq = event.seq
        fault.words.setdefault("spender", optimizer_of(change.optimizer.info.id if change.optimizer else 0, ledger))
        fault.relate(self._last_clear)
        yield from self.tell(fault, ledger)

    def _withdraw(self, numbers: tuple[int, ...], ledger: Ledger) -> Iterator[Finding]:
        touched = {key for number in numbers if (key := self._marked.pop(number, "")) != ""}
        for key in touched.difference(self._marked.values()):
            fault = self.faults.get(key)
            if fault is not None and fault.status == "suspected":
                fault.become("withdrawn", self.severity)
                yield from self.tell(fault, ledger)

    def finish(self, ledger: Ledger, ending: Ending) -> None:
        for fault in self.faults.values():
            if fault.status == "suspected":
                fault.become("withdrawn")
        both = [fault for fault in self.faults.values() if fault.status == "confirmed"]
        mixtures = [fault for fault in both if not fault.key.startswith("kept ")]
        for fault in both:
            if fault.key.startswith("kept ") and mixtures:
                fault.become("withdrawn")

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        who = fault.words.get("spender", "a step")
        params = them(fault.ids, ledger)
        if fault.status != "confirmed":
            return Said(
                f"{call(fault.site, 'backward')} added onto gradients of {params} that a step had already used.",
                "If the next step uses this sum, clear these gradients once per step.",
            )
        if fault.key.startswith("kept "):
            message = f"{who} stepped again on gradients of {params} that it had used before and no backward has written since."
            return Said(message, self._fix(fault, ledger))
        where = "Within one step of" if fault.words.get("closure") else "Steps of"
        message = (
            f"{where} {who} used gradients of {params} that were never cleared: each sum still held what an earlier "
            f"{'evaluation' if fault.words.get('closure') else 'step'} had used ({times(fault.count)})."
        )
        added = int(fault.facts.get("sum", 0))
        evidence = (
            Evidence("backwards in the sum when first used again", str(added), "only those since the last step"),
            Evidence("uses of a sum used before", f"{fault.count:,}", "0"),
        )
        return Said(message, self._fix(fault, ledger), evidence)

    def _fix(self, fault: Fault, ledger: Ledger) -> str:
        optimizer = ledger.optimizers.get(int(fault.facts.get("optimizer", 0)))
        before = f"before the backward at {line(fault.site)}" if fault.first.kind == "backward" else "once per step"
        if fault.words.get("closure"):
            return (
                f"Call `{optimizer.info.name if optimizer else 'optimizer'}.zero_grad()` inside the closure, {before}."
            )
        if optimizer is not None:
            return f"Add `{optimizer.info.name}.zero_grad()` {before}, or right after its step."
        names = ledger.names(list(fault.ids)[:1])
        name = names[0] if names else "p"
        return f"Clear {plural(len(fault.ids), 'gradient')} after each update: `{name}.grad = None`."
