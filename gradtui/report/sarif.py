"""Findings as SARIF 2.1.0, for code-scanning services."""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from gradtui.report.report import Report
from gradtui.rules import BY_SLUG
from gradtui.rules.finding import Finding, Site

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}


def render(report: Report, base: str = "") -> dict[str, Any]:
    """The report as one SARIF log with one run. `base`: the folder that paths are made relative to; the current one by default."""
    base = base or os.getcwd()
    slugs = list(dict.fromkeys(finding.rule for finding in report.findings))
    driver = {
        "name": "gradtui",
        "version": report.versions.get("gradtui", "0"),
        "rules": [_rule(slug) for slug in slugs],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [_invocation(report)],
        "results": [_result(finding, slugs.index(finding.rule), base) for finding in report.findings],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(slug: str) -> dict[str, Any]:
    rule = BY_SLUG.get(slug)
    first, _, rest = (rule.__doc__ if rule is not None and rule.__doc__ else slug).strip().partition("\n\n")
    described = {
        "id": slug,
        "name": "".join(part.capitalize() for part in slug.split("-")),
        "shortDescription": {"text": " ".join(first.split())},
        "defaultConfiguration": {"level": _LEVELS[rule.severity if rule is not None else "info"]},
    }
    if rest:
        described["help"] = {"text": "\n\n".join(" ".join(block.split()) for block in rest.split("\n\n"))}
    return described


def _invocation(report: Report) -> dict[str, Any]:
    invocation: dict[str, Any] = {"executionSuccessful": report.exit_code == 0 and not report.signal}
    if report.program:
        invocation["commandLine"] = report.program
    if report.exit_code is not None:
        invocation["exitCode"] = report.exit_code
    if report.signal:
        invocation["exitSignalNumber"] = report.signal
    return invocation


def _result(finding: Finding, index: int, base: str) -> dict[str, Any]:
    text = f"{finding.message} {finding.fix}".strip()
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": _LEVELS[finding.severity],
        "message": {"text": text},
        "occurrenceCount": max(finding.count, 1),
        "partialFingerprints": {"gradtui/v1": _fingerprint(finding)},
        "properties": {"parameters": list(finding.parameters)},
    }
    if finding.site is not None:
        result["locations"] = [_location(finding.site, base)]
    if finding.related:
        result["relatedLocations"] = [
            _location(site, base) | {"id": number, "message": {"text": site.source.strip() or "related call"}}
            for number, site in enumerate(finding.related, start=1)
        ]
    return result


def _location(site: Site, base: str) -> dict[str, Any]:
    region: dict[str, Any] = {"startLine": max(site.line, 1)}
    if site.source:
        region["snippet"] = {"text": site.source}
    return {"physicalLocation": {"artifactLocation": {"uri": _uri(site.file, base)}, "region": region}}


def _uri(file: str, base: str) -> str:
    path = PurePath(file)
    try:
        return quote(path.relative_to(base).as_posix())
    except ValueError:
        return path.as_uri() if path.is_absolute() else quote(path.as_posix())


def _fingerprint(finding: Finding) -> str:
    """The same for the same fault on the same source line, wherever that line has moved to."""
    source = finding.site.source.strip() if finding.site is not None else ""
    return f"{finding.rule}:{source}"
