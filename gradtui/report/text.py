"""A run as text for people: findings from the gravest down, then what the program does with its gradients."""

from __future__ import annotations

import os
import signal as signals
from collections import Counter
from collections.abc import Iterator

from gradtui.ledger.summary import CallLine, ControlSummary, OptimizerLine
from gradtui.report.report import Report
from gradtui.report.style import Style
from gradtui.rules.finding import Finding, Site

_FEW = 8
"""Parameter names written out."""
_KINDS = {
    "backward": "backward",
    "step": "step",
    "zero_grad": "zero_grad",
    "clip": "clip",
    "unscale": "unscale_",
    "scaler_step": "scaler.step",
    "scaler_update": "scaler.update",
    "scheduler": "scheduler",
}


def render(report: Report, style: Style | None = None) -> str:
    """The whole report, ending with a line break."""
    style = style or Style()
    blocks = [_finding(finding, report, style) for finding in report.findings]
    blocks += [_summary(summary, report, style) for summary in report.summaries]
    blocks.append(_ending(report, style))
    return "\n\n".join(block for block in blocks if block) + "\n"


def _finding(finding: Finding, report: Report, style: Style) -> str:
    return "\n".join(_finding_lines(finding, report, style))


def _finding_lines(finding: Finding, report: Report, style: Style) -> Iterator[str]:
    where = f"  {_place(finding.site)}" if finding.site else ""
    yield f"{style.severity(finding.severity)} {style.paint(finding.rule, 'bold')}{style.paint(where, 'cyan')}"
    if finding.site and finding.site.source:
        yield style.paint(f"    {finding.site.source.strip()}", "dim")
    yield style.wrap(finding.message, "  ")
    if finding.fix:
        yield style.item("fix", finding.fix)
    for index, site in enumerate(finding.related):
        yield style.item("with" if not index else "", f"{_place(site)}  {site.source.strip()}".rstrip())
    if len(finding.parameters) > 1:
        yield style.item("parameters", _names(finding))
    if finding.first is not None:
        yield style.item("since", _since(finding))
    for index, evidence in enumerate(finding.evidence):
        against = f" (should be {evidence.threshold})" if evidence.threshold else ""
        yield style.item("evidence" if not index else "", f"{evidence.what}: {evidence.actual}{against}")
    folded = [other.rule for other in report.consequences if other.cause == finding.rule]
    if folded:
        yield style.item("explains", ", ".join(dict.fromkeys(folded)))


def _since(finding: Finding) -> str:
    first = finding.first
    assert first is not None
    if first.kind == "end":
        return "the end of the run"
    since = f"{_KINDS[first.kind]} {first.ordinal:,}"
    return f"{since}, {finding.count:,} times" if finding.count > 1 else since


def _names(finding: Finding) -> str:
    total = max(finding.parameter_count, len(finding.parameters))
    shown = ", ".join(finding.parameters[:_FEW])
    more = f" and {total - _FEW} more" if total > _FEW else ""
    return f"{total}: {shown}{more}"


def _place(site: Site) -> str:
    return f"{_short(site.file)}:{site.line}"


def _short(file: str) -> str:
    """Relative to where the person is, when it lies below."""
    try:
        relative = os.path.relpath(file)
    except ValueError:
        return file
    return relative if not relative.startswith("..") else file


# -- what the program does ----------------------------------------------------------------------------------------


def _summary(summary: ControlSummary, report: Report, style: Style) -> str:
    title = "gradients in this run" + (f", process {summary.process}" if len(report.summaries) > 1 else "")
    lines = [style.paint(title, "bold"), style.wrap(summary.verdict, "  ")]
    lines += [_optimizer(optimizer, style) for optimizer in summary.optimizers[:8]]
    if len(summary.optimizers) > 8:
        lines.append(f"  and {len(summary.optimizers) - 8} more optimizers")
    lines += [_call(call, style) for call in summary.calls[:24]]
    if summary.by_hand:
        lines.append(style.item("by hand", f"{summary.by_hand:,} updates of parameters", column=14))
    if summary.cleared_by_hand:
        lines.append(style.item("by hand", f"{summary.cleared_by_hand:,} clears of gradients", column=14))
    return "\n".join(lines)


def _optimizer(optimizer: OptimizerLine, style: Style) -> str:
    owns = f"{optimizer.owns:,} parameter{'s' if optimizer.owns != 1 else ''}"
    of = f" of {', '.join(optimizer.roots)}" if optimizer.roots else ""
    text = f"{optimizer.kind} over {owns}{of}; {optimizer.steps:,} step{'s' if optimizer.steps != 1 else ''}"
    if optimizer.window:
        text += f" of {optimizer.window} backward{'s' if optimizer.window != 1 else ''}"
    others = [f"{size} ({count}×)" for size, count in optimizer.windows[1:]]
    if others:
        text += f", also {', '.join(others)}"
    if optimizer.averaged in ("averaged", "summed"):
        text += f", {optimizer.averaged}"
    return style.item(optimizer.name, text, column=max(14, len(optimizer.name) + 1))


def _call(call: CallLine, style: Style) -> str:
    place = f"{_short(call.file)}:{call.line}" if call.line else "by a library"
    source = call.source.strip()
    what = f"{place}  {source}" if source else f"{place}  {call.detail}"
    return style.item(_KINDS[call.kind], f"{call.count:>6,}×  {what}", column=14)


# -- how it ended -------------------------------------------------------------------------------------------------


def _ending(report: Report, style: Style) -> str:
    tally = Counter(finding.severity for finding in report.findings)
    found = ", ".join(
        f"{tally[severity]} {severity if severity == 'info' or tally[severity] == 1 else severity + 's'}"
        for severity in ("error", "warning", "info")
        if tally[severity]
    )
    ended = _how(report)
    if not report.calls:
        return style.paint(f"no gradient call was seen; {ended}", "yellow")
    verdict = style.paint("nothing wrong found", "green") if not tally["error"] + tally["warning"] else found
    extra = f" ({found})" if verdict != found and found else ""
    return f"{verdict}{extra}; {ended}"


def _how(report: Report) -> str:
    if report.signal:
        try:
            name = signals.Signals(report.signal).name
        except ValueError:
            name = f"signal {report.signal}"
        return f"the script was ended by {name}"
    if report.exit_code:
        return f"the script failed with exit code {report.exit_code}"
    return "the script ended normally" if report.exit_code == 0 else "how the script ended is not known"
