"""A clip when none of the parameters given has a gradient."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.rule import Ending, Fault, Rule, Said, line_key
from gradtui.rules.wording import line, plural


class ClipWithoutGradient(Rule):
    """A clip ran when none of the parameters given to it had a gradient.

    What it means: the clip stands before `backward()` (or right after `zero_grad()`), so there was nothing to clip.

    Why it matters: gradients are never clipped; explosions go through.

    What to do: move the clip between `backward()` and `step()`.
    """

    slug = "clip-without-gradient"
    severity = "error"
    watches = (ev.GradsClipped,)

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if not isinstance(event, ev.GradsClipped) or not event.given:
            return
        if any(ledger.parameter(n).state != "zero" for n in event.parameters):
            return
        fault = self.fault(line_key(event.site), "clip", event.ordinal, event.seq, event.site)
        fault.facts["given"] = event.given
        fault.hit(event.seq, event.parameters)
        if fault.count >= 2:
            fault.become("confirmed")
        yield from self.tell(fault, ledger)

    def finish(self, ledger: Ledger, ending: Ending) -> None:
        """A clip that finds gradients most of the time is right where it is."""
        for fault in self.faults.values():
            site = fault.site
            key = (site.file, site.line) if site is not None else ("", 0)
            tally = ledger.lines["clip"].get(key)
            calls = tally.count if tally is not None else fault.count
            fault.facts["calls"] = calls
            fault.become("confirmed", "error" if fault.count * 2 > calls else "info")
            for other in ledger.lines["backward"].values():
                fault.relate(other.site)

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        calls = int(fault.facts.get("calls", 0))
        message = (
            f"The clip at {line(fault.site)} ran {plural(fault.count, 'time')}{f' of {calls:,}' if calls else ''} when none of the "
            f"{plural(int(fault.facts.get('given', 0)), 'parameter')} given to it had a gradient."
        )
        backward = f" at {line(fault.related[0])}" if fault.related else ""
        return Said(
            message,
            f"Move the clip after the backward{backward}, before the step.",
            (Evidence("gradients to clip", "0", "at least 1"),),
        )
