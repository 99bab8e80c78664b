"""Findings as JUnit XML: one test case a rule that was asked, failed when it found something loud."""

from __future__ import annotations

from xml.etree import ElementTree

from gradtui.report.report import GRAVITY, Report
from gradtui.rules import RULES
from gradtui.rules.finding import Finding


def render(report: Report, fail_on: str = "error") -> str:
    """The report as an XML document; a finding below `fail_on` is told as output, not as a failure."""
    by_rule: dict[str, list[Finding]] = {rule.slug: [] for rule in RULES}
    for finding in report.findings:
        by_rule.setdefault(finding.rule, []).append(finding)
    failing = sum(any(_fails(finding, fail_on) for finding in found) for found in by_rule.values())
    broken = int(bool(report.signal) or report.exit_code not in (0, None))
    total = {"tests": str(len(by_rule) + 1), "failures": str(failing), "errors": str(broken)}
    suites = ElementTree.Element("testsuites", total)
    suite = ElementTree.SubElement(suites, "testsuite", {"name": "gradtui", **total})
    _script(suite, report, broken)
    for slug, found in by_rule.items():
        _case(suite, slug, found, fail_on)
    ElementTree.indent(suites)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n"


def _fails(finding: Finding, fail_on: str) -> bool:
    return GRAVITY[finding.severity] >= GRAVITY[fail_on]


def _script(suite: ElementTree.Element, report: Report, broken: int) -> None:
    case = ElementTree.SubElement(suite, "testcase", {"classname": "gradtui", "name": "the script runs to its end"})
    if broken:
        how = f"signal {report.signal}" if report.signal else f"exit code {report.exit_code}"
        ElementTree.SubElement(case, "error", {"message": f"the script ended with {how}"})


def _case(suite: ElementTree.Element, slug: str, found: list[Finding], fail_on: str) -> None:
    case = ElementTree.SubElement(suite, "testcase", {"classname": "gradtui", "name": slug})
    for finding in found:
        if finding.site is not None:
            case.set("file", finding.site.file)
            case.set("line", str(finding.site.line))
        if _fails(finding, fail_on):
            failure = ElementTree.SubElement(
                case, "failure", {"type": finding.severity, "message": _plain(finding.message)}
            )
            failure.text = _plain(_body(finding))
    quiet = [finding for finding in found if not _fails(finding, fail_on)]
    if quiet:
        ElementTree.SubElement(case, "system-out").text = _plain("\n".join(_body(finding) for finding in quiet))


def _body(finding: Finding) -> str:
    lines = [f"{finding.severity}: {finding.message}", finding.fix]
    if finding.site is not None:
        lines.insert(0, f"{finding.site.file}:{finding.site.line}  {finding.site.source.strip()}")
    if finding.parameters:
        lines.append("parameters: " + ", ".join(finding.parameters))
    return "\n".join(line for line in lines if line)


def _plain(text: str) -> str:
    """Without characters that XML cannot hold."""
    return "".join(char for char in text if char in "\n\t" or ord(char) >= 32)
