"""A run as one JSON object: findings, what explains what, the gradient control summary, event counts, and how the script ended."""

from __future__ import annotations

from typing import Any

import msgspec

from gradtui.ledger.summary import ControlSummary
from gradtui.report.report import Report
from gradtui.rules.finding import Finding, Site

FORMAT = 1
"""Raised when a field changes its meaning or goes away."""


def render(report: Report) -> dict[str, Any]:
    """The report as plain objects, ready for `json.dumps`."""
    return {
        "format": FORMAT,
        "program": report.program,
        "findings": [_finding(finding) for finding in report.findings],
        "consequences": [_finding(finding) for finding in report.consequences],
        "suspected": [_finding(finding) for finding in report.suspected],
        "summary": _summary(report.summaries[0]) if report.summaries else None,
        "processes": [_summary(summary) for summary in report.summaries],
        "events": dict(sorted(report.kinds.items())),
        "ended": {"exit_code": report.exit_code, "signal": report.signal},
        "versions": dict(report.versions),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    first = finding.first
    return {
        "rule": finding.rule,
        "severity": finding.severity,
        "status": finding.status,
        "message": finding.message,
        "fix": finding.fix,
        "site": _site(finding.site),
        "related": [_site(site) for site in finding.related],
        "parameters": list(finding.parameters),
        "parameter_count": finding.parameter_count,
        "first": {"kind": first.kind, "ordinal": first.ordinal, "event": first.seq} if first else None,
        "count": finding.count,
        "evidence": [{"what": e.what, "actual": e.actual, "threshold": e.threshold} for e in finding.evidence],
        "cause": finding.cause or None,
        "process": finding.process,
    }


def _site(site: Site | None) -> dict[str, Any] | None:
    if site is None:
        return None
    return {"file": site.file, "line": site.line, "function": site.function, "source": site.source}


def _summary(summary: ControlSummary) -> dict[str, Any]:
    return dict(msgspec.to_builtins(summary))
