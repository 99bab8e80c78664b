"""Findings: what is wrong, in order of first sign, consequences under their causes; below, the chosen one in full."""

from __future__ import annotations

from pathlib import PurePath

from textual.message import Message

from gradtui.rules.finding import Finding, Site
from gradtui.tui.line import Line, Span, clip, fit, fit_right, line, width_of, wrap
from gradtui.tui.view import Listed, View
from gradtui.tui.widgets.list_pane import ListPane


class FindingsPane(ListPane):
    """The list, and the card of the one under the cursor."""

    name_ = "findings"
    title = "Findings"

    class Selected(Message):
        """Another finding is under the cursor."""

        def __init__(self, finding: int) -> None:
            super().__init__()
            self.finding = finding

    class Opened(Message):
        """The person wants to go to the event and line of a finding."""

        def __init__(self, finding: Finding) -> None:
            super().__init__()
            self.finding = finding

    def __init__(self) -> None:
        super().__init__()
        self._shown: list[Listed] = []

    def watch_view(self) -> None:
        self._shown = ordered(self.view.findings)
        ids = [item.id for item in self._shown]
        if self.view.selection.finding in ids:
            self.cursor = ids.index(self.view.selection.finding)
        super().watch_view()

    def heading(self, view: View) -> tuple[list[Span], list[Span]]:
        live = [item.finding for item in self._shown if item.finding.status != "withdrawn"]
        parts = [(f"{sum(f.severity == s for f in live)} {s}", s) for s in ("error", "warning", "info")]
        shown = [(text + ("s" if not text.startswith("1 ") and role != "info" else ""), role) for text, role in parts]
        kept = [(text, role) for text, role in shown if not text.startswith("0 ")]
        return [(("  " if i else "") + text, role) for i, (text, role) in enumerate(kept)], []

    def count(self, view: View) -> int:
        return len(self._shown)

    def content(self, view: View, width: int, height: int) -> list[Line]:
        if not self._shown:
            return self.nothing(view, width)
        listed = min(len(self._shown), max(height // 3, 3))
        rows = super().content(view, width, min(listed, height))
        card = self._card(self._shown[self.cursor].finding, width)
        shown = [*rows, line((self.glyphs.rule * width, "rule")), *card]
        hidden = len(shown) - height
        if hidden > 0:
            shown[height - 1 :] = [line("  ", (f"{hidden + 1} more {self.glyphs.down}  z zooms", "dim"))]
        return shown

    def row(self, view: View, index: int, width: int) -> list[Span]:
        finding = self._shown[index].finding
        where = _at(finding.site)
        times = f" {self.glyphs.times}{finding.count}" if finding.count > 1 else ""
        tail = fit_right(f"{times}  {where}", max(width_of(times) + width_of(where) + 2, 16)) + " "
        indent = "  " if finding.cause else ""
        head = f"{indent}{_mark(self, finding)} {finding.rule}"
        room = max(width - width_of(head) - width_of(tail) - 2, 0)
        role = "dim" if finding.status == "withdrawn" else finding.severity
        message = fit(clip(finding.message, room, self.glyphs.ellipsis), room)
        return [(head + "  ", role), (message, "" if finding.status == "confirmed" else "dim"), (tail, "dim")]

    def _card(self, finding: Finding, width: int) -> list[Line]:
        """The finding in full: message, remedy, figures, lines, parameters."""
        inner = max(width - 4, 20)
        rows = [line("  ", (text, "strong")) for text in wrap(finding.message, inner)]
        rows += self._labelled("fix", wrap(finding.fix, inner - 8), "ok") if finding.fix else []
        if finding.status != "confirmed":
            rows += self._labelled("status", [_status(finding)], "warning")
        rows += self._labelled("since", [_since(finding)], "") if finding.first else []
        for fact in finding.evidence:
            limit = f"   (should be {fact.threshold})" if fact.threshold else ""
            rows += self._labelled("figure", wrap(f"{fact.what}: {fact.actual}{limit}", inner - 8), "")
        rows += self._labelled("at", [_line(finding.site)], "accent") if finding.site else []
        for site in finding.related:
            rows += self._labelled("with", [_line(site)], "accent")
        rows += self._labelled("in", wrap(_parameters(finding), inner - 8), "") if finding.parameters else []
        return [Line(tuple((clip(text, width), role) for text, role in row.spans)) for row in rows]

    def _labelled(self, label: str, texts: list[str], role: str) -> list[Line]:
        return [line("  ", (fit(label if not i else "", 8), "dim"), (text, role)) for i, text in enumerate(texts)]

    def nothing(self, view: View, width: int) -> list[Line]:
        if view.state == "ended" and view.live:
            return self.empty(width, "No findings: nothing in this run broke a rule.")
        if not view.live:
            return self.empty(width, "No finding at this event or before it.")
        return self.empty(width, "No findings so far. Press W to run on to the next one.")

    def moved(self) -> None:
        self.post_message(self.Selected(self._shown[self.cursor].id))

    def opened(self) -> None:
        self.post_message(self.Opened(self._shown[self.cursor].finding))

    def topic(self) -> str:
        return self._shown[self.cursor].finding.rule if self._shown else self.name_

    def copied(self) -> str:
        if not self._shown:
            return ""
        finding = self._shown[self.cursor].finding
        return f"{finding.severity}: {finding.rule}: {finding.message} ({_at(finding.site)})"


def ordered(findings: tuple[Listed, ...]) -> list[Listed]:
    """By first sign, each consequence after the cause it is folded under, withdrawn ones last."""
    roots = [item for item in findings if not _cause(item, findings)]
    roots.sort(key=lambda item: (item.finding.status == "withdrawn", item.id))
    found: list[Listed] = []
    for root in roots:
        found.append(root)
        found += [item for item in findings if _cause(item, findings) is root]
    return found


def _cause(item: Listed, findings: tuple[Listed, ...]) -> Listed | None:
    if not item.finding.cause:
        return None
    return next((other for other in findings if other.finding.rule == item.finding.cause and other is not item), None)


def _mark(pane: FindingsPane, finding: Finding) -> str:
    if finding.status != "confirmed":
        return "?" if finding.status == "suspected" else pane.glyphs.none
    return {"error": pane.glyphs.error, "warning": pane.glyphs.warning, "info": pane.glyphs.info}[finding.severity]


def _status(finding: Finding) -> str:
    if finding.status == "suspected":
        return "suspected: it becomes a finding when something uses the harm"
    return "withdrawn: the program handled it"


def _since(finding: Finding) -> str:
    assert finding.first is not None
    times = f", seen {finding.count} times" if finding.count > 1 else ""
    if finding.first.kind == "end":
        return "the end of the run" + times
    return f"{finding.first.kind} #{finding.first.ordinal} (event {finding.first.seq}){times}"


def _at(site: Site | None) -> str:
    return f"{PurePath(site.file).name}:{site.line}" if site else ""


def _line(site: Site | None) -> str:
    return f"{_at(site)}  {site.source.strip()}" if site else ""


def _parameters(finding: Finding) -> str:
    names = ", ".join(finding.parameters[:8])
    more = max(finding.parameter_count, len(finding.parameters)) - len(finding.parameters[:8])
    return names + (f" and {more} more" if more > 0 else "")
