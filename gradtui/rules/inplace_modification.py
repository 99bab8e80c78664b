"""Explains torch's "modified by an inplace operation"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.ledger.state import ParameterState
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.rule import Fault, Rule, Said
from gradtui.rules.wording import call, line, loss_of, optimizer_of, some

_TENSOR = re.compile(r"\[torch\.[\w.]+ \[([\d, ]*)\]\]")
_VERSIONS = re.compile(r"is at version (\d+); expected version (\d+)")


class InplaceModification(Rule):
    """Something that a backward needs was changed after the forward pass had used it.

    What it means: the graph saved a tensor, and its values were changed in place before the backward: most often a
    parameter, by the step of an optimizer that ran between this loss's forward and its backward.

    Why it matters: torch raises "modified by an inplace operation", since the gradient would be wrong.

    What to do: compute the loss after the step, or step after the last backward; for activations, use the out-of-place
    operation (`x = x + y` instead of `x += y`).
    """

    slug = "inplace-modification"
    severity = "error"
    watches = (ev.CallRaised,)

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if not isinstance(event, ev.CallRaised) or event.kind != "backward" or "inplace operation" not in event.message:
            return
        changed = self._changed(event.message, ledger)
        optimizer = ledger.optimizers.get(changed[0].spent_by) if changed else None
        step = optimizer.site if optimizer is not None else None
        fault = self.fault("raised", "backward", event.ordinal, event.seq, step or event.site)
        fault.become("confirmed")
        fault.words["loss"] = event.site.expression if event.site is not None else ""
        fault.words["by"] = optimizer_of(changed[0].spent_by, ledger) if changed else ""
        versions = _VERSIONS.search(event.message)
        if versions is not None:
            fault.facts.update(now=int(versions.group(1)), saved=int(versions.group(2)))
        fault.add(p.info.id for p in changed)
        fault.relate(event.site)
        fault.hit(event.seq)
        yield from self.tell(fault, ledger)

    @staticmethod
    def _changed(message: str, ledger: Ledger) -> list[ParameterState]:
        """Parameters of the shape that torch names (or its transpose), changed by the latest step."""
        named = _TENSOR.search(message)
        if named is None:
            return []
        shape = tuple(int(size) for size in named.group(1).split(",") if size.strip())
        fitting = [p for p in ledger.parameters.values() if p.last_step and p.info.shape in (shape, shape[::-1])]
        latest = max((p.last_step for p in fitting), default=0)
        return [p for p in fitting if p.last_step == latest]

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        loss = loss_of(fault.words.get("loss", ""))
        backward = fault.related[0] if fault.related else fault.site
        if not fault.ids:
            message = f"The backward of {loss} at {line(backward)} needs a tensor that was changed in place after the forward pass."
            return Said(
                message,
                "Use the out-of-place operation (`x = x + y`, `relu(x)`) where that tensor is changed.",
                self._evidence(fault),
            )
        names = some(ledger.names(list(fault.ids)[:3]), len(fault.ids))
        message = (
            f"{call(fault.site, 'A step')} changed {names} between the forward pass of {loss} and its backward at {line(backward)}, which "
            f"still needs the old values."
        )
        fix = f"Compute {loss} after the step of {fault.words.get('by') or 'the optimizer'}, or move that step after the backward at {line(backward)}."
        return Said(message, fix, self._evidence(fault))

    @staticmethod
    def _evidence(fault: Fault) -> tuple[Evidence, ...]:
        if "now" not in fault.facts:
            return ()
        return (Evidence("version of the tensor", str(int(fault.facts["now"])), str(int(fault.facts["saved"]))),)
