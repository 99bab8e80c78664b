"""Gradients kept from step to step and edited by hand in between."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.rules.finding import Finding
from gradtui.rules.rule import Fault, Rule, Said, line_key
from gradtui.rules.wording import line, them


class DecayedGradient(Rule):
    """Used gradients are kept on purpose: the program edits them by hand before adding to them.

    What it means: a backward added onto gradients that a step had used, and the program had changed them after that step
    (halved them, say). That is momentum written by hand, so it is not called stale.

    Why it matters: it is worth knowing when it was not meant.

    What to do: nothing, if the decay is meant; else clear the gradients instead of scaling them.
    """

    slug = "decayed-gradient"
    severity = "info"
    watches = (ev.BackwardEnded, ev.BackwardProgressed)

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        record = change.record
        if not change.onto_edited or record is None:
            return
        fault = self.fault(line_key(record.site), "backward", record.ordinal, change.event.seq, record.site)
        fault.become("confirmed")
        fault.count += 1
        fault.seq = change.event.seq
        if fault.count == 1:
            fault.add(change.onto_edited)
        yield from self.tell(fault, ledger)

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        message = (
            f"The backward at {line(fault.site)} adds onto gradients of {them(fault.ids, ledger)} that were used and then "
            "edited by hand: taken as meant."
        )
        return Said(message, "If it is not meant, clear the gradients after each step.")
