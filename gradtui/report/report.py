"""What every format is rendered from: the findings of a run, what its program does, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gradtui.events import ProcessJoined
from gradtui.ledger import RunLedger
from gradtui.ledger.summary import ControlSummary, summarise
from gradtui.rules.finding import Finding

GRAVITY = {"info": 0, "warning": 1, "error": 2}
"""Severities, from light to grave."""


@dataclass(frozen=True, slots=True)
class Report:
    """One run, judged."""

    findings: tuple[Finding, ...]
    """Confirmed ones that stand for themselves, gravest first."""
    consequences: tuple[Finding, ...] = ()
    """Those that another finding explains (`cause`)."""
    suspected: tuple[Finding, ...] = ()
    summaries: tuple[ControlSummary, ...] = ()
    """One a process."""
    kinds: Mapping[str, int] = field(default_factory=dict)
    """Events by class name."""
    exit_code: int | None = None
    signal: int | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    """`gradtui`, `python`, `torch`."""
    program: str = ""
    """The command as the person gave it."""

    @property
    def worst(self) -> str:
        """Severity of the gravest finding; empty when there is none."""
        return max((f.severity for f in self.findings), key=GRAVITY.__getitem__, default="")

    @property
    def calls(self) -> int:
        """Gradient calls seen in all processes."""
        return sum(self.kinds.get(kind, 0) for kind in ("BackwardEnded", "OptimizerStepped", "GradsZeroed"))


def report_of(
    findings: Iterable[Finding],
    ledger: RunLedger,
    kinds: Mapping[str, int],
    exit_code: int | None = None,
    signal: int | None = None,
    version: str = "",
    program: str = "",
) -> Report:
    """Sort a judge's findings and infer the summaries."""
    found = list(findings)
    confirmed = [finding for finding in found if finding.status == "confirmed"]
    joined = next((each.process for each in ledger.processes.values() if each.process is not None), None)
    return Report(
        findings=tuple(f for f in confirmed if not f.cause),
        consequences=tuple(f for f in confirmed if f.cause),
        suspected=tuple(f for f in found if f.status == "suspected"),
        summaries=tuple(
            summarise(each, number)
            for number, each in sorted(ledger.processes.items())
            if each.counts.backward or each.counts.step
        ),
        kinds=dict(kinds),
        exit_code=exit_code,
        signal=signal,
        versions=_versions(version, joined),
        program=program,
    )


def _versions(version: str, joined: ProcessJoined | None) -> dict[str, str]:
    versions = {"gradtui": version, "python": joined.python if joined else "", "torch": joined.torch if joined else ""}
    return {name: value for name, value in versions.items() if value}
