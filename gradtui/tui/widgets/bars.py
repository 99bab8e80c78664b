"""The lines around the panes: status, tabs, ticker and footer, each one row high."""

from __future__ import annotations

from pathlib import PurePath

from textual import events
from textual.message import Message

from gradtui.tui import figures, keymap
from gradtui.tui.layout import PANES, PaneName
from gradtui.tui.line import Line, Span, clip, justify, width_of
from gradtui.tui.view import View
from gradtui.tui.widgets.painted import Painted

LABELS: dict[PaneName, tuple[str, str]] = {
    "source": ("Source", "Src"),
    "events": ("Events", "Events"),
    "parameters": ("Params", "Params"),
    "gradient": ("Gradient", "Grad"),
    "accumulation": ("Accum", "Accum"),
    "flow": ("Flow", "Flow"),
    "findings": ("Findings", "Find"),
    "output": ("Output", "Out"),
}
_CALLS = {"zero_grad": "zero_grad", "scaler_step": "scaler.step", "scaler_update": "scaler.update"}


_PROMPTS = {
    "prompt:filter": ("filter", "keep", "show all"),
    "prompt:input": ("to the script", "send", "cancel"),
}
"""What the line above the footer is for, and what its keys do."""


class StatusBar(Painted):
    """Where the run stands, in one line."""

    alone = False
    """The terminal is too small for anything else."""
    with_message = False
    """The ticker has no line of its own."""

    def rows(self, width: int, height: int) -> list[Line]:
        view = self.view
        left: list[Span] = [(" gradtui", "strong"), ("  ", ""), (self._script(view), "")]
        left += [("  ", ""), *self._state(view)]
        if self.alone:
            return [Line(tuple(left), "chrome"), Line(((" enlarge the terminal to 60x16", "dim"),), "chrome")][:height]
        if self.with_message and view.message:
            left += [("  ", ""), (view.message, view.message_role)]
        return [Line(justify(left, self._facts(view), width).spans, "chrome")]

    def _script(self, view: View) -> str:
        return clip(PurePath(view.script).name, 24) if view.script else ""

    def _state(self, view: View) -> list[Span]:
        glyphs = self.glyphs
        if view.ended is not None:
            return self._ending(view)
        past: list[Span] = [] if view.live else [(f"  {glyphs.back} event {view.cursor} of {view.head}", "stopped")]
        if view.state == "stopped" and view.where:
            where = view.where
            what = _CALLS.get(where.kind, where.kind)
            why = f" ({where.reason})" if where.reason not in ("", "step") else ""
            return [(f"{glyphs.stopped} STOPPED", "stopped"), (f" before {what} #{where.ordinal}{why}", ""), *past]
        if view.state == "starting":
            return [(f"{glyphs.starting} STARTING", "stopped"), (" importing torch…", "dim")]
        if view.state == "stopped":
            return [(f"{glyphs.stopped} STOPPED", "stopped"), *past]
        if view.state == "ended":
            return [(f"{glyphs.ended} HOST GONE", "error"), *past]
        return [(f"{glyphs.running} RUNNING", "running"), *past]

    def _ending(self, view: View) -> list[Span]:
        ended = view.ended
        assert ended is not None
        past: list[Span] = (
            [] if view.live else [(f"  {self.glyphs.back} event {view.cursor} of {view.head}", "stopped")]
        )
        if ended.signal:
            return [(f"{self.glyphs.crashed} KILLED", "error"), (f" by signal {ended.signal}", ""), *past]
        if ended.exit_code:
            return [(f"{self.glyphs.crashed} FAILED", "error"), (f" exit code {ended.exit_code}", ""), *past]
        return [(f"{self.glyphs.ended} ENDED", "ended"), (" exit code 0" if ended.exit_code == 0 else "", ""), *past]

    def _facts(self, view: View) -> list[Span]:
        counts = view.counts
        facts: list[Span] = []
        if counts.step:
            facts.append((f"  step {figures.count(counts.step)}", ""))
        if view.parameters:
            number = len(view.parameters)
            facts.append((f"  {figures.count(number)} param{'' if number == 1 else 's'}", "dim"))
            devices = {state.info.device for state in list(view.parameters.values())[:200]}
            facts.append((f"  {'+'.join(sorted(devices)[:2])}", "dim"))
        if len(view.processes) > 1:
            facts.insert(0, (f"  process {view.selection.process} of {len(view.processes)}", "accent"))
        if view.round_trip >= 0.05:
            facts.append((f"  link {view.round_trip * 1e3:.0f} ms", "dim"))
        return [*facts, (" ", "")]


class TabBar(Painted):
    """The panes by their digits, on small screens."""

    shown: PaneName = "parameters"

    class Chosen(Message):
        """A pane's name was clicked."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    def rows(self, width: int, height: int) -> list[Line]:
        return [Line(self._tabs(width))]

    def _tabs(self, width: int) -> tuple[Span, ...]:
        findings = sum(item.finding.status != "withdrawn" for item in self.view.findings)
        for form in (0, 1, 2):
            texts = [self._label(name, form, findings) for name in PANES]
            if sum(width_of(text) for text, _ in texts) + 1 <= width:
                break
        return ((" ", ""), *texts)

    def _label(self, name: PaneName, form: int, findings: int) -> Span:
        number = PANES.index(name) + 1
        label = f"{number} {LABELS[name][form]}" if form < 2 else str(number)
        if name == "findings" and findings:
            label += f"({findings})"
        if name == self.shown:
            return (f"[{label}]", "title-focus")
        role = (self.view.worst() or "dim") if name == "findings" else "dim"
        return (f" {label} ", role)

    def on_click(self, event: events.Click) -> None:
        at = 0
        for index, (text, _) in enumerate(self._tabs(self.size.width)):
            at += width_of(text)
            if event.x < at:
                if index:
                    self.post_message(self.Chosen(index))
                return


class TickerBar(Painted):
    """The latest thing to know: a message, a finding, or a hint."""

    def rows(self, width: int, height: int) -> list[Line]:
        view = self.view
        if view.message:
            return [Line(((" ", ""), (clip(view.message, width - 2), view.message_role)))]
        found = [item.finding for item in view.findings if item.finding.status != "withdrawn"]
        if found and not view.asking:
            newest = max(found, key=lambda finding: (finding.severity == "error", finding.seq))
            mark = {"error": self.glyphs.error, "warning": self.glyphs.warning, "info": self.glyphs.info}
            sign = mark[newest.severity] if newest.status == "confirmed" else "?"
            end: list[Span] = [("  7 shows it ", "dim")]
            head = f" {sign} {newest.rule}  "
            room = width - width_of(end[0][0]) - width_of(head) - 1
            left: list[Span] = [(head, newest.severity), (clip(newest.message, room, self.glyphs.ellipsis), "")]
            return [justify(left, end, width)]
        return [Line(((" ", ""), (clip(self._hint(view), width - 2), "dim")))]

    def _hint(self, view: View) -> str:
        if view.asking:
            return "the script may be waiting for input: i types a line, ! lends it the terminal"
        if not view.live:
            return "looking back: nothing here changes the run; H returns to now"
        if view.state == "starting":
            return "the script starts as without gradtui, and stops at its first gradient call"
        if view.state == "running":
            return "running freely; space pauses at the next gradient call"
        if view.state == "ended":
            return "the run is over: [ and ] go through its events, q leaves"
        if not view.counts.backward:
            return "n runs the call under the arrow; B runs on to the first backward"
        return self._last(view)

    def _last(self, view: View) -> str:
        """What has just run."""
        row = view.event
        if row is None:
            return ""
        took = figures.duration(row.duration)
        number = f" #{row.ordinal}" if row.ordinal else ""
        return f"just ran  {row.what}{number}  {row.detail}" + (f"  in {took}" if took else "")


class FooterBar(Painted):
    """The keys that matter now."""

    scope = "app"
    remapped: dict[str, str] = {}

    def rows(self, width: int, height: int) -> list[Line]:
        view = self.view
        if self.scope in _PROMPTS:
            what, enter, escape = _PROMPTS[self.scope]
            keys = [("Enter", enter), ("Esc", escape)]
            spans: list[Span] = [(f" {what}   ", "")]
        else:
            keys = keymap.footer(view.state, self.scope, not view.live, width, self.remapped, view.asking)
            spans = [(" ", "")]
        for name, label in keys:
            spans += [(name, "key"), (f" {label}  ", "dim")]
        return [Line(tuple(spans), "chrome")]
