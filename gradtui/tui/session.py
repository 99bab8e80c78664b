"""What this client is doing with a run: how it stands, what the person picked, and the view made of both for the panes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path

from gradtui.events import CallKind
from gradtui.ledger.state import Counts
from gradtui.tui.keymap import State
from gradtui.tui.story import Story, source_on_disk
from gradtui.tui.view import Selection, SiteMark, SourceText, TensorSight, View
from gradtui.wire.messages import Breakpoint, Ended, Grown, Message, Running, Stopped, Welcome, Where

EVENTS_AROUND = 80
"""Lines of the timeline handed to the Events pane on each side of the cursor."""


@dataclass
class Session:
    """Changed by messages from the host and by the person; `view` makes the frozen picture."""

    script: str = ""
    story: Story | None = None
    state: State = "starting"
    where: tuple[Where, ...] = ()
    ended: Ended | None = None
    welcome: Welcome | None = None
    selection: Selection = field(default_factory=Selection)
    picked: bool = False
    """The person has chosen the parameter; until then it follows what changes."""
    breakpoints: tuple[Breakpoint, ...] = ()
    tensor: TensorSight = field(default_factory=TensorSight)
    frame: int = 0
    """Which of the person's frames Source shows; 0 is the innermost."""
    message: str = ""
    message_role: str = ""
    asking: bool = False
    """The script seems to wait for a line of input."""
    findings_told: int = 0
    output_told: int = 0
    stopped_at: int = 0
    """Event at which the run stopped before this stop."""
    _last_stop: int = 0
    _first: SourceText | None = field(default=None, repr=False)

    # -- what the host says

    def greet(self, welcome: Welcome) -> None:
        """The host has told where the run stands."""
        self.welcome = welcome
        self.state, self.where = welcome.state, welcome.where
        self.script = self.script or script_of(welcome.command)
        if self.story:
            self.story.grow(welcome.seq)

    def hear(self, message: Message) -> None:
        """Take in one message."""
        self.asking = False
        match message:
            case Grown():
                self._grown(message)
            case Stopped():
                self._stopped(message)
            case Running():
                self.state, self.where, self.frame, self.message = "running", (), 0, ""
                self.tensor = replace(self.tensor, stale=True)
            case Ended():
                self.state, self.where, self.ended = "ended", (), message
                self.say(*_last_words(message))
                self._grow(message.seq)
            case _:
                pass

    def _grown(self, message: Grown) -> None:
        self._grow(message.seq)
        self.findings_told, self.output_told = message.findings, message.output
        if self.state == "starting" and message.seq:
            self.state = "running"

    def _stopped(self, message: Stopped) -> None:
        self.state, self.where, self.frame = "stopped", message.where, 0
        self.stopped_at, self._last_stop = self._last_stop, message.seq
        self.message = ""
        self._grow(message.seq)
        if self.story and message.where and not self.selection.parameter:
            self.selection = replace(self.selection, process=message.where[0].process)

    def _grow(self, seq: int) -> None:
        if self.story:
            self.story.grow(seq)

    def open_recording(self, meta: dict[str, str], seq: int) -> None:
        """A run that is over, read from its file."""
        code, signal = meta.get("exit_code", ""), meta.get("signal", "")
        self.script = script_of(_command(meta)) or self.script
        self.hear(
            Ended(seq, int(code) if code.lstrip("-").isdigit() else None, int(signal) if signal.isdigit() else None)
        )

    def lost(self) -> None:
        """The host is gone."""
        if self.state != "ended":
            self.state, self.where = "ended", ()
            self.say("the run's host is gone: the script goes on unobserved; what was recorded is here", "warning")

    def say(self, message: str, role: str = "") -> None:
        """Put a line in the ticker."""
        self.message, self.message_role = message, role

    def heard_nothing(self) -> bool:
        """Nothing has come for a while: True when the script's last words now look like a question."""
        if self.state in ("starting", "running") and self.story and not self.asking:
            self.asking = asks(self.story.output.last)
            return self.asking
        return False

    # -- what panes see

    def here(self) -> Where | None:
        """The call about to run in the process on show."""
        own = [where for where in self.where if where.process == self.selection.process]
        return next(iter((*own, *self.where)), None)

    def view(self, round_trip: float = 0.0, around: int = EVENTS_AROUND) -> View:
        """The picture at the cursor, with so many lines of the timeline on each side of it."""
        story = self.story
        if story is None:
            return View(
                state=self.state,
                script=self.script,
                source=self._first_source(),
                message=self.message,
                message_role=self.message_role,
            )
        ledger = story.ledger.processes.get(self.selection.process)
        live = story.cursor >= story.head
        events = (*story.rows_before(story.cursor, around), *story.rows_after(story.cursor, around))
        where = self.here() if live else None
        draft = View(
            state=self.state,
            script=self.script,
            command=self.welcome.command if self.welcome else (),
            interpreter=self.welcome.interpreter if self.welcome else "",
            head=story.head,
            cursor=story.cursor,
            where=where,
            ended=self.ended,
            parameters=ledger.parameters if ledger else {},
            optimizers=ledger.optimizers if ledger else {},
            counts=ledger.counts if ledger else Counts(),
            processes=tuple(story.ledger.processes),
            events=events,
            findings=story.findings_at(story.cursor),
            breakpoints=self.breakpoints,
            output=story.output,
            tensor=self.tensor,
            message=self.message,
            message_role=self.message_role,
            asking=self.asking,
            round_trip=round_trip,
        )
        return self._placed(draft, story)

    def pick(self, parameter: int) -> None:
        """The person has picked a parameter out."""
        self.selection = replace(self.selection, parameter=parameter)
        self.picked = True

    def _selection(self, draft: View) -> Selection:
        """Until the person picks one: the first parameter whose gradient has just changed, else the first."""
        known, changed = draft.parameters, draft.changed
        selected = self.selection.parameter
        if known and (selected not in known or (changed and not self.picked and selected not in changed)):
            first = next((id for id in known if id in changed), next(iter(known)))
            self.selection = replace(self.selection, parameter=first)
        return self.selection

    def _placed(self, draft: View, story: Story) -> View:
        """With source, arrow, marks, and what changed."""
        file, line = self._place(draft)
        ledger = story.ledger.processes.get(self.selection.process)
        marks: dict[int, SiteMark] = {}
        lines: dict[CallKind, dict[tuple[str, int], object]] = dict(ledger.lines) if ledger else {}  # type: ignore[arg-type]
        for kind, tallies in lines.items():
            for (name, number), tally in list(tallies.items()):
                if name == file:
                    marks[number] = SiteMark(kind, tally.count)  # type: ignore[attr-defined]
        draft = replace(
            draft,
            source=story.source(file) if file else self._first_source(),
            line=line,
            marks=marks,
            changed=self._changed(draft),
        )
        return replace(draft, selection=self._selection(draft))

    def _place(self, draft: View) -> tuple[str, int]:
        """The file and line that Source is about."""
        if draft.where and draft.where.frames:
            frame = draft.where.frames[min(self.frame, len(draft.where.frames) - 1)]
            return frame.file, frame.line
        event = next((row for row in reversed(draft.events) if row.seq <= draft.cursor and row.file), None)
        if event:
            return event.file, event.line if not draft.live or draft.state == "ended" else 0
        return self.script, 0

    def _changed(self, draft: View) -> frozenset[int]:
        if not draft.live:
            return draft.event.parameters if draft.event else frozenset()
        rows = [row for row in draft.events[-40:] if row.seq > self.stopped_at] if draft.state == "stopped" else []
        return frozenset().union(*(row.parameters for row in rows))

    def _first_source(self) -> SourceText | None:
        if self._first is None and self.script:
            self._first = source_on_disk(self.script)
        return self._first


def _last_words(ended: Ended) -> tuple[str, str]:
    """What the ticker says of an end that was no good one."""
    if ended.signal:
        return f"the script was ended by signal {ended.signal}; everything up to then is recorded", "error"
    if ended.exit_code:
        return f"the script ended with exit code {ended.exit_code}: 8 shows what it printed last", "error"
    if not ended.observed:
        return "the script ended and no process of it made a gradient call that could be seen", "warning"
    return "", ""


def asks(last: str) -> bool:
    """A line without an end that stops as prompts do: `name? `, `(Pdb) `, `>>> `, `[y/N]: `."""
    return bool(last.strip()) and last.rstrip()[-1] in "?:>)]$#"


def _command(meta: dict[str, str]) -> tuple[str, ...]:
    try:
        found = json.loads(meta.get("command", "[]"))
    except ValueError:
        return ()
    return tuple(map(str, found)) if isinstance(found, list) else ()


def script_of(command: tuple[str, ...]) -> str:
    """The script in a command line, where one can be told: the first argument that is a file of Python."""
    scripts = [part for part in command[1:] if part.endswith(".py")]
    found = next((part for part in scripts if Path(part).is_file()), next(iter(scripts), ""))
    return str(Path(found).absolute()) if found else ""
