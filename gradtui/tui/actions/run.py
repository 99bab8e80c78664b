"""Keys that steer the run: each sends one request, and only while the run is in a state to take it."""

from __future__ import annotations

from gradtui.events import CallKind
from gradtui.tui.actions.time import TimeActions
from gradtui.tui.panes.source import SourcePane
from gradtui.wire.messages import (
    Breakpoint,
    Continue,
    FinishWindow,
    Pause,
    Request,
    RunTo,
    SetBreakpoints,
    StepInto,
    StepOver,
)

_NOT_NOW = {
    "running": "running: space pauses at the next gradient call",
    "starting": "starting: the run stops at its first gradient call",
    "ended": "the script has ended: [ and ] look back, q leaves",
}


class RunActions(TimeActions):
    """Stepping, running on, pausing, breakpoints."""

    def _steer(self, request: Request) -> None:
        """Send a request that needs a stopped run; say why not otherwise."""
        if self.settings.readonly:
            self.say("this screen may look and not steer (--readonly)", "warning")
        elif self.session.state != "stopped":
            self.say(_NOT_NOW[self.session.state])
        else:
            self._back_to_now()
            self.session.say("")
            self.link.send(request)

    def _back_to_now(self) -> None:
        story = self.session.story
        if story and not story.following:
            story.live()

    def action_step_over(self) -> None:
        self._steer(StepOver())

    def action_step_into(self) -> None:
        self._steer(StepInto())

    def action_finish_window(self) -> None:
        self._steer(FinishWindow())

    def action_continue(self) -> None:
        self._steer(Continue())

    def action_run_to(self, kind: CallKind) -> None:
        self._steer(RunTo(kinds=(kind,)))

    def action_accumulate(self) -> None:
        self._steer(RunTo(parameter=self.session.selection.parameter))

    def action_to_cursor(self) -> None:
        source = self.board.panes["source"]
        assert isinstance(source, SourcePane)
        if self.view.source is None:
            self.say("no source to run to")
            return
        self._steer(RunTo(file=self.view.source.file, line=source.cursor + 1))

    def action_pause(self) -> None:
        if self.session.state == "stopped":
            self._steer(Continue())
        elif self.session.state == "ended":
            self.say(_NOT_NOW["ended"])
        else:
            self.say("pausing at the next gradient call…")
            self.link.send(Pause())

    def action_breakpoint(self) -> None:
        """On the line under Source's cursor when Source has the keys, else on writes to the selected parameter."""
        source = self.board.panes["source"]
        assert isinstance(source, SourcePane)
        if source.has_focus or not self.view.selected:
            self._toggle(file=self.view.source.file if self.view.source else "", line=source.cursor + 1)
        else:
            self._toggle(parameter=self.session.selection.parameter)

    def _toggle(self, file: str = "", line: int = 0, parameter: int = 0) -> None:
        points = self.session.breakpoints
        same = [p for p in points if (p.file, p.line, p.parameter) == (file, line, parameter)]
        if same:
            points = tuple(p for p in points if p not in same)
        else:
            number = max((p.id for p in points), default=0) + 1
            points = (*points, Breakpoint(id=number, file=file, line=line, parameter=parameter))
        self.session.breakpoints = points
        self.link.send(SetBreakpoints(points))
        what = f"line {line}" if line else f"writes to {self._parameter_name(parameter)}"
        unseen = line and line != self.view.line and line not in self.view.marks
        until = "; it stops at gradient calls, and none has run there" if unseen and not same else ""
        self.say(f"breakpoint on {what} {'removed' if same else 'set'}{until}", "warning" if until else "")

    def _parameter_name(self, parameter: int) -> str:
        state = self.view.parameters.get(parameter)
        return f"{state.info.name}.grad" if state else "a gradient"

    def action_warning(self) -> None:
        """Run to the next finding; where nothing can run any more, go to the next one recorded."""
        if self.session.state == "stopped" and self.view.live:
            self._steer(RunTo(finding=True))
            return
        found = [item.finding for item in (self.session.story.findings if self.session.story else ())]
        later = [f for f in found if f.first and f.first.seq > self.view.cursor]
        if later or found:
            self.go_to_finding((later or found)[0])
        else:
            self.say("no findings in this run")
