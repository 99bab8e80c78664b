"""Explains torch's "Trying to backward through the graph a second time"."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.rule import Fault, Rule, Said
from gradtui.rules.wording import line, loss_of, some


class FreedGraphReused(Rule):
    """A backward went into a graph that an earlier backward had already freed.

    What it means: `backward()` frees what it has walked through. Part of the new loss's history belongs to an earlier
    iteration: a hidden state, a cached feature, or the same loss twice.

    Why it matters: torch raises "Trying to backward through the graph a second time".

    What to do: detach what is carried over (`h = h.detach()`). `retain_graph=True` silences the error and lets the graph
    grow with every iteration; it is right only for two losses of one forward pass.
    """

    slug = "freed-graph-reused"
    severity = "error"
    watches = (ev.CallRaised,)

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if not isinstance(event, ev.CallRaised) or event.kind != "backward" or "second time" not in event.message:
            return
        fault = self.fault("raised", "backward", event.ordinal, event.seq, event.site)
        fault.become("confirmed")
        carried, site = self.sources.carried(event.site)
        fault.names = event.names or carried
        freed = next((r for r in reversed(ledger.backwards.values()) if r.parameters), None)
        if freed is not None:
            fault.facts["freed"] = freed.ordinal
            fault.words["by"] = freed.loss
        fault.words["loss"] = event.site.expression if event.site is not None else ""
        if site is not None:
            fault.words["carried"] = "yes"
            fault.relate(site)
        if freed is not None:
            fault.relate(freed.site)
        fault.hit(event.seq)
        yield from self.tell(fault, ledger)

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        loss = loss_of(fault.words.get("loss", ""))
        freed = int(fault.facts.get("freed", 0))
        by = f" that backward {freed:,} had already freed" if freed else " that had already been freed"
        through = f", carried over by {some(fault.names)}" if fault.names else ""
        message = f"Backward {fault.first.ordinal:,} of {loss} at {line(fault.site)} went into a graph{by}{through}."
        if fault.names:
            name = fault.names[0]
            fix = f"Detach it before the next iteration: `{name} = {name}.detach()`."
        else:
            fix = "Detach what is carried over from one iteration to the next; for two losses of one forward pass, call backward on their sum."
        return Said(
            message, fix, (Evidence("graph freed by", f"backward {freed:,}" if freed else "an earlier backward"),)
        )
