"""Feeds a run's events to its ledgers and rules, and keeps the findings. A rule that fails is put aside; the run goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from gradtui import events as ev
from gradtui.events import Event
from gradtui.ledger import Change, Ledger, RunLedger
from gradtui.rules import RULES
from gradtui.rules.across import RunRule
from gradtui.rules.causes import fold
from gradtui.rules.finding import Finding
from gradtui.rules.rule import Ending, Rule
from gradtui.rules.settings import JudgeSettings
from gradtui.rules.sources import Sources

RULE_FAILED = "rule-failed"
"""Slug of the finding that tells that one of our own rules broke and went silent."""


class Judge:
    """All rules over all processes of one run."""

    def __init__(
        self,
        settings: JudgeSettings | None = None,
        rules: tuple[type[Rule], ...] = RULES,
        read: Callable[[str], str | None] | None = None,
    ) -> None:
        """`read` gives the text of one of the person's source files, or None; rules use it to name the line to change."""
        self.settings = settings or JudgeSettings()
        self.sources = Sources(read)
        self.ledger = RunLedger()
        wanted = tuple(rule for rule in rules if self.settings.allows(rule.slug))
        self._classes = tuple(rule for rule in wanted if not issubclass(rule, RunRule))
        self._across: list[RunRule] = []
        for rule in wanted:
            if issubclass(rule, RunRule):
                made = rule(self.settings.thresholds, self.sources)
                made.run = self.ledger
                self._across.append(made)
        self._rules: dict[int, list[Rule]] = {}
        self._found: dict[tuple[int, str, str], Finding] = {}
        self._watchers: dict[tuple[int, type, bool], list[Rule]] = {}
        self._raised: dict[int, bool] = {}
        self._blind: set[int] = set()

    def feed(self, event: Event) -> list[Finding]:
        """Fold one event; return findings that are new or have changed."""
        ledger = self.ledger.of(event.process)
        change = ledger.apply(event)
        self._note_raise(event)
        changed: list[Finding] = []
        for rule in self._watching(event):
            try:
                for finding in rule.observe(change, ledger):
                    changed.append(self._keep(finding, event.process))
            except Exception as error:
                self._put_aside(rule, event.process)
                changed.append(self._failed(rule, error, event))
        return changed

    def _watching(self, event: Event) -> list[Rule]:
        """Rules that look at events of this kind in this process."""
        key = (event.process, event.__class__, len(self.ledger.processes) > 1)
        known = self._watchers.get(key)
        if known is None:
            if event.process not in self._rules:
                self._rules[event.process] = [rule(self.settings.thresholds, self.sources) for rule in self._classes]
            rules: list[Rule] = [*self._rules[event.process], *(self._across if key[2] else ())]
            known = self._watchers[key] = [r for r in rules if r.watches is None or event.__class__ in r.watches]
        return known

    def _put_aside(self, rule: Rule, process: int) -> None:
        self._watchers.clear()
        self._rules[process] = [other for other in self._rules[process] if other is not rule]
        self._across = [other for other in self._across if other is not rule]

    def finish(self, exit_code: int | None = None, signal: int | None = None) -> list[Finding]:
        """The run is over: every finding in its final state, consequences marked with their cause."""
        for process, rules in self._rules.items():
            ledger = self.ledger.of(process)
            ending = Ending(exit_code, signal, self._raised.get(process, False), process in self._blind)
            for rule in rules:
                try:
                    rule.finish(ledger, ending)
                    self._recount(rule, process, ledger)
                except Exception as error:
                    self._failed(rule, error, ev.ProbeFailed(hook=rule.slug, error="", process=process, seq=ledger.seq))
        first = next(iter(self.ledger.processes), 0)
        for rule in self._across:
            try:
                rule.finish(self.ledger.of(first), Ending(exit_code, signal))
                for fault in rule.faults.values():
                    self._keep(rule.finding(fault, self.ledger.of(first)), first)
            except Exception as error:
                self._failed(rule, error, ev.ProbeFailed(hook=rule.slug, error=""))
        folded = fold(self._found.values())
        self._found = {(f.process, f.rule, f.key): f for f in folded}
        return self.findings()

    def refresh(self) -> list[Finding]:
        """Findings whose counts have gone on since they were last told: `feed` tells repeats only now and then."""
        changed: list[Finding] = []
        for process, rules in self._rules.items():
            ledger = self.ledger.of(process)
            for rule in rules:
                for fault in rule.faults.values():
                    known = self._found.get((process, rule.slug, fault.key))
                    if known is not None and known.count != max(fault.count, 1):
                        changed.append(self._keep(rule.finding(fault, ledger), process))
        return changed

    def findings(self) -> list[Finding]:
        """All findings as they stand, gravest first, then in the order they began."""
        rank = {"error": 0, "warning": 1, "info": 2}
        return sorted(
            self._found.values(), key=lambda f: (rank[f.severity], f.first.seq if f.first else f.seq, f.rule, f.key)
        )

    def _recount(self, rule: Rule, process: int, ledger: Ledger) -> None:
        """Exact counts, and nothing that the rule has given up."""
        for key in [
            key for key in self._found if key[0] == process and key[1] == rule.slug and key[2] not in rule.faults
        ]:
            del self._found[key]
        for fault in rule.faults.values():
            self._keep(rule.finding(fault, ledger), process)

    def _keep(self, finding: Finding, process: int) -> Finding:
        if process:
            finding = msgspec.structs.replace(finding, process=process)
        self._found[(process, finding.rule, finding.key)] = finding
        return finding

    def _note_raise(self, event: Event) -> None:
        if isinstance(event, ev.CallRaised):
            self._raised[event.process] = True
        elif isinstance(event, ev.ProbeFailed):
            self._blind.add(event.process)
        elif event.ordinal:
            self._raised[event.process] = False

    def _failed(self, rule: Rule, error: Exception, event: Event) -> Finding:
        where = error.__traceback__
        while where is not None and where.tb_next is not None:
            where = where.tb_next
        at = f" (line {where.tb_lineno} of {where.tb_frame.f_code.co_name})" if where is not None else ""
        finding = Finding(
            rule=RULE_FAILED,
            severity="info",
            status="confirmed",
            message=f"gradtui's own rule `{rule.slug}` failed and was put aside: {type(error).__name__}: {error}{at}.",
            fix="Please report this; every other rule goes on.",
            seq=event.seq,
            key=rule.slug,
        )
        return self._keep(finding, event.process)

    def rules(self) -> Iterator[Rule]:
        """Every rule at work, process by process."""
        for rules in self._rules.values():
            yield from rules


__all__ = ["RULE_FAILED", "Change", "Judge", "JudgeSettings"]
