"""What a rule is, and the fault it keeps track of: repeats are counted in one fault, and it is told again only when it changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from gradtui.events import CallSite
from gradtui.ledger import Change, Ledger
from gradtui.ledger.state import OptimizerState
from gradtui.rules.finding import Evidence, Finding, First, FirstKind, Severity, Site, Status
from gradtui.rules.settings import Thresholds
from gradtui.rules.sources import Sources

NAMES_KEPT = 200
FAULTS_KEPT = 100
"""Faults of one rule in one process; further ones are counted in the last."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a process ended; both None while it runs or when it is not known."""

    exit_code: int | None = None
    signal: int | None = None
    raised: bool = False
    """A gradient call raised, and nothing followed it."""
    blind: bool = False
    """The probe failed on the way: what came after it was not seen."""

    @property
    def orderly(self) -> bool:
        """It ran to its own end, and was seen to."""
        return not self.raised and not self.blind and not self.signal and self.exit_code in (0, None)


@dataclass(slots=True)
class Fault:
    """One fault of one rule, as far as it is known."""

    key: str
    severity: Severity
    first: First
    status: Status = "suspected"
    site: CallSite | None = None
    related: list[CallSite] = field(default_factory=list)
    ids: dict[int, None] = field(default_factory=dict)
    """Parameters concerned, in the order they were met."""
    names: tuple[str, ...] = ()
    """Names that stand in for parameters' where the fault is about variables."""
    count: int = 0
    seq: int = 0
    cause: str = ""
    facts: dict[str, float] = field(default_factory=dict)
    """Figures for the message and the evidence."""
    words: dict[str, str] = field(default_factory=dict)
    """Names for the message."""
    optimizer: int = 0
    """The optimizer it is about; 0 for none."""
    dirty: bool = True
    merged: int = 0
    """Identity of the tuple of ids merged last, so that repeats cost nothing."""

    def add(self, numbers: Iterable[int]) -> None:
        """Parameters concerned too."""
        before = len(self.ids)
        for number in numbers:
            self.ids.setdefault(number)
        self.dirty |= len(self.ids) != before

    def own(self, optimizer: OptimizerState | None) -> None:
        """It is about this optimizer: `words["name"]` follows its name, which may be learnt later."""
        if optimizer is not None:
            self.optimizer = optimizer.info.id
            self.words["name"] = optimizer.info.name

    def relate(self, *sites: CallSite | None) -> None:
        """Lines it clashes with; each is told once, the responsible line never."""
        for site in sites:
            if site is None or len(self.related) >= 6 or _same_line(site, self.site):
                continue
            if not any(_same_line(site, other) for other in self.related):
                self.related.append(site)
                self.dirty = True

    def hit(self, seq: int, numbers: tuple[int, ...] = ()) -> None:
        """It happened once more, to these parameters; the same tuple again costs nothing."""
        self.count += 1
        self.seq = seq
        if numbers and id(numbers) != self.merged:
            self.merged = id(numbers)
            self.add(numbers)

    def become(self, status: Status, severity: Severity | None = None) -> None:
        """Change status, and severity if given."""
        if status != self.status or (severity is not None and severity != self.severity):
            self.status, self.severity, self.dirty = status, severity or self.severity, True


@dataclass(frozen=True, slots=True)
class Said:
    """A fault in words."""

    message: str
    fix: str = ""
    evidence: tuple[Evidence, ...] = ()


class Rule:
    """One rule in one process. Subclasses give `slug`, `severity`, `observe`, `describe`, and a docstring that is shown to people."""

    slug: ClassVar[str] = ""
    severity: ClassVar[Severity] = "error"
    watches: ClassVar[tuple[type, ...] | None] = None
    """Events that `observe` is called for; None: all."""

    def __init__(self, thresholds: Thresholds | None = None, sources: Sources | None = None) -> None:
        self.thresholds = thresholds or Thresholds()
        self.sources = sources or Sources()
        self.faults: dict[str, Fault] = {}

    # -- what a rule defines --------------------------------------------------------------------------------------

    def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
        """Look at one event and what it changed; yield findings that are new or have changed."""
        yield from ()

    def finish(self, ledger: Ledger, ending: Ending) -> None:
        """The process is over: settle what only then can be settled."""

    def describe(self, fault: Fault, ledger: Ledger) -> Said:
        """Put a fault into words, as it stands."""
        raise NotImplementedError

    # -- keeping track --------------------------------------------------------------------------------------------

    def fault(
        self, key: str, kind: FirstKind, ordinal: int, seq: int, site: CallSite | None, severity: Severity | None = None
    ) -> Fault:
        """The fault with that key, made at its first sign."""
        known = self.faults.get(key)
        if known is None:
            if len(self.faults) >= FAULTS_KEPT:
                return next(reversed(self.faults.values()))
            known = self.faults[key] = Fault(
                key, severity or self.severity, First(kind, ordinal, seq), site=site, seq=seq
            )
        return known

    def tell(self, fault: Fault, ledger: Ledger) -> Iterator[Finding]:
        """Yield the fault's finding if it is new, has changed, or its count has doubled."""
        if fault.dirty or fault.count & (fault.count - 1) == 0:
            fault.dirty = False
            yield self.finding(fault, ledger)

    def finding(self, fault: Fault, ledger: Ledger) -> Finding:
        """The fault as a finding."""
        fault.own(ledger.optimizers.get(fault.optimizer))
        said = self.describe(fault, ledger)
        kept = tuple(fault.ids)[:NAMES_KEPT]
        names = fault.names or ledger.names(kept)
        return Finding(
            rule=self.slug,
            severity=fault.severity,
            status=fault.status,
            message=said.message,
            fix=said.fix,
            site=site_of(fault.site),
            related=tuple(site for other in fault.related if (site := site_of(other)) is not None),
            parameters=tuple(dict.fromkeys(names)),
            parameter_ids=kept,
            parameter_count=len(fault.ids) or len(names),
            first=fault.first,
            count=max(fault.count, 1),
            evidence=said.evidence,
            seq=fault.seq,
            cause=fault.cause,
            key=fault.key,
        )


def site_of(site: CallSite | None) -> Site | None:
    """A call site as a finding carries it."""
    return Site(site.file, site.line, site.function, site.source) if site is not None else None


def line_key(site: CallSite | None) -> str:
    """A key for the line of a call site."""
    return f"{site.file}:{site.line}" if site is not None else "?"


def _same_line(one: CallSite | None, other: CallSite | None) -> bool:
    return one is not None and other is not None and one.line == other.line and one.file == other.file
