"""Parameters' values change during a backward that contains no step."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.rules.finding import Finding
from gradtui.rules.rule import Fault, Rule, Said, line_key
from gradtui.rules.wording import line, them, times


class ParameterChangedInBackward(Rule):
    """Parameters changed their values during a backward that made no step.

    What it means: a hook that ran inside the backward wrote to the parameter itself, where it was most likely meant to
    scale the gradient.

    Why it matters: the weights shrink or grow with every backward, whatever the optimizer does.

    What to do: let the hook return the changed gradient (`return grad * k`) instead of writing to the parameter.
    """

    slug = "parameter-changed-in-backward"
    severity = "error"
    watches = (ev.OptimizerStepped, ev.OptimizerStepStarted, ev.BackwardEnded, ev.ParametersEdited)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._stepped: set[int] = set()
        """Backwards in progress in which a step was made."""

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if isinstance(event, (ev.OptimizerStepped, ev.OptimizerStepStarted)) and event.parent in ledger.open_backwards:
            self._stepped.add(event.parent)
        elif isinstance(event, ev.BackwardEnded):
            self._stepped.discard(event.call)
        elif isinstance(event, ev.ParametersEdited) and event.parent in ledger.open_backwards:
            yield from self._found(event, ledger)

    def _found(self, event: ev.ParametersEdited, ledger: Ledger) -> Iterator[Finding]:
        if event.parent in self._stepped or event.rebound:
            return
        ordinal = ledger.open_backwards[event.parent]
        record = ledger.backwards.get(ordinal)
        site = record.site if record is not None else event.site
        fault = self.fault(line_key(site), "backward", ordinal, event.seq, site)
        fault.become("confirmed")
        fault.hit(event.seq, event.parameters)
        fault.relate(event.site)
        yield from self.tell(fault, ledger)

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        message = f"The backward at {line(fault.site)} changed the values of {them(fault.ids, ledger)} although no step ran in it ({times(fault.count)})."
        return Said(message, "Let the hook return the new gradient instead of writing to the parameter.")
