"""What a person has decided about findings: ignored on a source line, known in a baseline file, or expected of the run."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from gradtui.errors import UsageError
from gradtui.ledger.summary import ControlSummary
from gradtui.report.report import Report
from gradtui.rules.finding import Finding

_IGNORE = re.compile(r"#\s*gradtui:\s*ignore\[([^\]]*)\]")
_BASELINE_FORMAT = 1
_WORDS = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}


def without_ignored(findings: Iterable[Finding]) -> list[Finding]:
    """Findings but for those whose line, or a line they clash with, says `# gradtui: ignore[rule] reason`."""
    return [finding for finding in findings if not _ignored(finding)]


def _ignored(finding: Finding) -> bool:
    sites = [finding.site, *finding.related] if finding.site is not None else list(finding.related)
    for site in sites:
        match = _IGNORE.search(_line(site.file, site.line)) if site is not None else None
        if match and any(fnmatchcase(finding.rule, slug.strip()) for slug in match.group(1).split(",")):
            return True
    return False


def _line(file: str, number: int) -> str:
    try:
        return Path(file).read_text("utf-8", "replace").splitlines()[number - 1]
    except (OSError, IndexError, ValueError):
        return ""


def _identity(finding: Finding) -> dict[str, str]:
    """What stays the same when lines are added above: rule, file, function, and the line's text."""
    site = finding.site
    if site is None:
        return {"rule": finding.rule, "file": "", "function": "", "source": ""}
    file = os.path.relpath(site.file) if os.path.isabs(site.file) else site.file
    return {"rule": finding.rule, "file": file, "function": site.function, "source": site.source.strip()}


def read_baseline(file: str) -> list[dict[str, str]]:
    """Known findings. Raises UsageError when the file is not a baseline; a file that is not there knows none."""
    path = Path(file)
    if not path.exists():
        return []
    try:
        content = json.loads(path.read_text("utf-8"))
        if content["format"] != _BASELINE_FORMAT:
            raise ValueError("another format")
        return [{str(key): str(value) for key, value in known.items()} for known in content["findings"]]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"--baseline {file}: not a baseline of gradtui ({error})") from error


def write_baseline(file: str, findings: Iterable[Finding]) -> None:
    """Make these findings the known ones."""
    content = {"format": _BASELINE_FORMAT, "findings": [_identity(finding) for finding in findings]}
    Path(file).write_text(json.dumps(content, indent=1) + "\n", "utf-8")


def without_known(report: Report, known: list[dict[str, str]]) -> Report:
    """The report without findings that a baseline knows."""
    return replace(report, findings=tuple(f for f in report.findings if _identity(f) not in known))


def parse_expectations(text: str) -> dict[str, str]:
    """`accumulate=4,amp=no` as a dict. Raises UsageError on a key that no summary has."""
    found: dict[str, str] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        key, equals, value = part.partition("=")
        if not equals or key not in _EXPECTABLE:
            raise UsageError(f"--expect {part}: give KEY=VALUE with KEY one of {', '.join(_EXPECTABLE)}")
        found[key] = value.strip()
    return found


def unmet(expected: dict[str, str], report: Report) -> Iterator[str]:
    """A sentence for each expectation that the run does not meet."""
    if not report.summaries:
        if expected:
            yield f"expected {', '.join(f'{key}={value}' for key, value in expected.items())}, but no gradient call was seen"
        return
    summary = report.summaries[0]
    for key, wanted in expected.items():
        actual = _EXPECTABLE[key](summary)
        if not _same(wanted, actual):
            yield f"expected {key}={wanted}, but the run shows {key}={_shown(actual)}"


def _same(wanted: str, actual: object) -> bool:
    word = _WORDS.get(wanted.lower())
    if isinstance(actual, bool) or word is not None:
        return word is not None and bool(actual) == word
    if isinstance(actual, (int, float)):
        try:
            return float(wanted) == float(actual)
        except ValueError:
            return False
    return str(actual).replace(" ", "") == wanted.replace(" ", "")


def _shown(value: object) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value) or "no"


def _averaged(summary: ControlSummary) -> bool:
    return summary.averaged == "averaged"


_EXPECTABLE: dict[str, Callable[[ControlSummary], object]] = {
    "accumulate": lambda summary: summary.accumulate,
    "amp": lambda summary: summary.amp,
    "clip": lambda summary: summary.clip,
    "averaged": _averaged,
    "optimizers": lambda summary: len(summary.optimizers),
}
