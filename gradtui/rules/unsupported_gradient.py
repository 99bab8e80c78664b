"""Explains torch's refusal of a gradient that an optimizer or a layout cannot take."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.rules.finding import Finding
from gradtui.rules.rule import Fault, Rule, Said
from gradtui.rules.wording import line, shorten, them

_SIGNS = (
    "does not support sparse gradients",
    "sparse gradients",
    "expected the grad",
    "assigned grad has data of a different",
    "layout",
)


class UnsupportedGradient(Rule):
    """An optimizer or a clip refused the kind of gradient it was given.

    What it means: the gradient is sparse (`nn.Embedding(sparse=True)`), or has another layout, shape or device than the
    optimizer can take.

    Why it matters: torch raises and the step is not made.

    What to do: use `torch.optim.SparseAdam` or SGD for sparse gradients, or build the embedding with `sparse=False`.
    """

    slug = "unsupported-gradient"
    severity = "error"
    watches = (ev.CallRaised,)

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if not isinstance(event, ev.CallRaised) or event.kind not in ("step", "clip", "scaler_step", "unscale"):
            return
        if not any(sign in event.message for sign in _SIGNS):
            return
        fault = self.fault("raised", event.kind, event.ordinal, event.seq, event.site)
        fault.become("confirmed")
        fault.words["message"] = shorten(event.message, 120)
        fault.add(n for n, p in ledger.parameters.items() if p.waiting and "Embedding" in p.info.module)
        fault.hit(event.seq)
        yield from self.tell(fault, ledger)

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        whose = f" The sparse ones are likely those of {them(fault.ids, ledger)}." if fault.ids else ""
        message = f"The call at {line(fault.site)} refused a gradient: {fault.words.get('message', '')}.{whose}"
        return Said(
            message,
            "Use `torch.optim.SparseAdam` (or SGD) for sparse gradients, or build the embedding with `sparse=False`.",
        )
