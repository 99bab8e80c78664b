"""Graphs of earlier iterations stay alive, or are walked again in every later backward."""

from __future__ import annotations

from collections.abc import Iterator

from gradtui import events as ev
from gradtui.events import CallSite
from gradtui.ledger import Change, Ledger
from gradtui.rules.finding import Evidence, Finding
from gradtui.rules.rule import Ending, Fault, Rule, Said, line_key
from gradtui.rules.wording import line, plural, some

_GROWTHS = 4
"""Walks of a longer graph in a row that make it a growing one."""


class GraphRetained(Rule):
    """The graphs of earlier iterations are kept alive.

    What it means: a tensor with a history is kept from one iteration to the next: a running sum of losses, a list of
    losses, a hidden state that is not detached. Everything its graph needs stays in memory with it.

    Why it matters: memory grows with every iteration until the process is killed; if the old graph is part of the new
    loss, each backward takes longer too.

    What to do: add up `loss.item()` (or `loss.detach()`), and detach states that are carried over.
    """

    slug = "graph-retained"
    severity = "warning"
    watches = (ev.GraphKept, ev.BackwardEnded)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._sizes: dict[str, list[int]] = {}

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        event = change.event
        if isinstance(event, ev.GraphKept):
            yield from self._kept(event, ledger)
        elif isinstance(event, ev.BackwardEnded) and event.nodes and not event.parent:
            yield from self._walked(event, ledger)

    def _kept(self, event: ev.GraphKept, ledger: Ledger) -> Iterator[Finding]:
        last = next(reversed(ledger.backwards.values()), None)
        ordinal = event.oldest + 1 if event.oldest else last.ordinal if last is not None else 1
        fault = self.fault("kept", "backward", ordinal, event.seq, event.site or (last.site if last else None))
        if event.backwards <= fault.facts.get("alive", 0):
            return
        fault.facts.update(alive=event.backwards, nodes=max(event.nodes, fault.facts.get("nodes", 0)))
        fault.names = tuple(dict.fromkeys(fault.names + event.names))
        fault.hit(event.seq)
        if fault.count == 1:
            self._name_holder(fault, last.site if last else None, ledger)
        if event.backwards >= 3:
            fault.become("confirmed")
        yield from self.tell(fault, ledger)

    def _name_holder(self, fault: Fault, backward: CallSite | None, ledger: Ledger) -> None:
        growing = self.sources.growing(backward)
        lines = self.sources.holders(ledger, fault.names) if fault.names else [site for _, site in growing]
        if not fault.names and growing:
            fault.names = (growing[0][0],)
        if lines:
            old, fault.site = fault.site, lines[0]
            fault.relate(*lines[1:], old)

    def _walked(self, event: ev.BackwardEnded, ledger: Ledger) -> Iterator[Finding]:
        """A graph that only ever grows by about the same amount holds the ones before it."""
        key = line_key(event.site)
        sizes = self._sizes.setdefault(key, [])
        if sizes and event.nodes <= sizes[-1]:
            sizes.clear()
        sizes.append(event.nodes)
        if len(sizes) <= _GROWTHS or "kept" in self.faults or sizes[-1] < 2 * sizes[0]:
            return
        fault = self.fault("walked", "backward", event.ordinal, event.seq, event.site)
        fault.facts.update(nodes=event.nodes, start=sizes[0])
        names, site = self.sources.carried(event.site)
        if not fault.count:
            fault.names = names
            if site is not None:
                old, fault.site = fault.site, site
                fault.relate(old)
        fault.hit(event.seq)
        if fault.count >= 2:
            fault.become("confirmed")
        yield from self.tell(fault, ledger)

    def finish(self, ledger: Ledger, ending: Ending) -> None:
        for fault in self.faults.values():
            if fault.status == "suspected":
                fault.become("withdrawn")

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        held = f" by {some(fault.names)}" if fault.names else ""
        name = fault.names[0] if fault.names else "the tensor that is kept"
        if fault.key == "kept":
            alive = int(fault.facts.get("alive", 1))
            message = f"The graphs of {plural(alive, 'earlier backward')} are still alive, held{held or ' by something in the program'} ({line(fault.site)})."
            evidence = Evidence(
                "graphs still alive", f"{alive:,} ({plural(int(fault.facts.get('nodes', 0)), 'node')})", "0"
            )
            return Said(
                message,
                f"Keep a number instead of a tensor: `.item()` or `.detach()` where {name} is added to, at {line(fault.site)}.",
                (evidence,),
            )
        message = f"Each backward walks a longer graph than the one before: the history of earlier iterations is part of the loss{f', through {some(fault.names)}' if fault.names else ''}."
        evidence = Evidence(
            "nodes in the graph",
            f"{int(fault.facts.get('nodes', 0)):,}",
            f"about {int(fault.facts.get('start', 0)):,}, as in the beginning",
        )
        return Said(
            message, f"Detach what is carried over ({name}) before it goes into the next iteration.", (evidence,)
        )
