"""A hand-written update rebinds the variable to a result instead of changing the leaf."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.rule import Ending, Fault, Rule, Said
from gradtui.rules.wording import line, some


class LeafReplaced(Rule):
    """A hand-written update bound the variable to a new tensor instead of changing the old one.

    What it means: `w = w - lr * w.grad` makes a new tensor with a history. It is no leaf: the next backward fills the old
    tensor's `.grad` again, and the variable's own `.grad` stays None.

    Why it matters: the next update fails with None, or the old leaf collects every backward for nothing.

    What to do: change the values in place, `with torch.no_grad(): w -= lr * w.grad`, and clear the gradient after it.
    """

    slug = "leaf-replaced"
    severity = "error"
    watches = (ev.ParametersEdited, ev.BackwardEnded)

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if isinstance(event, ev.ParametersEdited) and event.rebound:
            waiting = [
                n
                for n in event.parameters
                if (p := ledger.parameters.get(n)) is not None and p.waiting and not p.owners
            ]
            if waiting:
                fault = self.fault("rebound", "backward", ledger.counts.backward + 1, event.seq, event.site)
                fault.names = tuple(dict.fromkeys(fault.names + event.rebound))
                fault.add(waiting)
                fault.hit(event.seq)
                yield from self.tell(fault, ledger)
        elif change.record is not None and self.faults and isinstance(event, ev.BackwardEnded):
            fault = self.faults["rebound"]
            if fault.status == "suspected":
                fault.relate(event.site)
                fault.become("confirmed")
                yield from self.tell(fault, ledger)

    def finish(self, ledger: Ledger, ending: Ending) -> None:
        for fault in self.faults.values():
            if fault.status == "suspected":
                fault.become("withdrawn" if ending.orderly else "confirmed")

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        names = some(fault.names)
        one = len(fault.names) == 1
        message = (
            f"The update at {line(fault.site)} bound {names} to {'a new tensor' if one else 'new tensors'} with a history; backward "
            f"still fills the old {'leaf' if one else 'leaves'}, and {'its' if one else 'their'} `.grad` is None."
        )
        name = fault.names[0] if fault.names else "w"
        fix = f"Update in place: `with torch.no_grad(): {name} -= lr * {name}.grad`, then `{name}.grad = None`."
        return Said(message, fix, (Evidence("leaf", "no", "yes"),))
