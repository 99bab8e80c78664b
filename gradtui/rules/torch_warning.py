"""torch's own training warnings, with the call site they belong to."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.rules.finding import Finding, FirstKind
from gradtui.rules.rule import Fault, Rule, Said, line_key
from gradtui.rules.wording import shorten


class TorchWarning(Rule):
    """torch itself warned about something in the training loop.

    What it means: torch noticed a broadcast target, a scheduler out of order, an empty clip, or a hook that will not do
    what it looks like.

    Why it matters: such warnings scroll by once and are easily missed.

    What to do: what the warning says.
    """

    slug = "torch-warning"
    severity = "info"
    watches = (ev.WarningSeen,)

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if not isinstance(event, ev.WarningSeen):
            return
        kind: FirstKind = "backward"
        ordinal = ledger.counts.backward + 1
        fault = self.fault(f"{line_key(event.site)} {event.message[:80]}", kind, ordinal, event.seq, event.site)
        fault.become("confirmed")
        fault.words.update(message=event.message, category=event.category)
        fault.hit(event.seq)
        yield from self.tell(fault, ledger)

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        return Said(
            f"torch warned: {shorten(fault.words.get('message', ''), 300)} ({fault.words.get('category', 'Warning')})"
        )
