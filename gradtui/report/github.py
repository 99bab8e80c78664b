"""Findings as workflow commands, which GitHub Actions shows beside the lines they belong to."""

from __future__ import annotations

import os

from gradtui.report.report import Report
from gradtui.rules.finding import Finding

_COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}


def render(report: Report, base: str = "") -> str:
    """One line a finding; paths are relative to `base` (the current folder by default) where they lie below it."""
    return "".join(_line(finding, base or os.getcwd()) + "\n" for finding in report.findings)


def _line(finding: Finding, base: str) -> str:
    properties = {"title": f"gradtui: {finding.rule}"}
    if finding.site is not None:
        relative = os.path.relpath(finding.site.file, base)
        properties = {
            "file": finding.site.file if relative.startswith("..") else relative,
            "line": str(finding.site.line),
            **properties,
        }
    said = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{_COMMANDS[finding.severity]} {said}::{_data(f'{finding.message} {finding.fix}'.strip())}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
