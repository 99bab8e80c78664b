"""Keys that reach into the script itself: its stack, its terminal, its standard input."""

from __future__ import annotations

from textual.app import SuspendNotSupported

from gradtui.tui.actions.host import Host
from gradtui.tui.handover import lend
from gradtui.wire.messages import TypeInput


class ScriptActions(Host):
    """Frames, typing, the terminal."""

    def action_frame(self, by: int) -> None:
        """Show another of the person's frames in Source: up is towards the caller."""
        where = self.session.here()
        frames = where.frames if where else ()
        if len(frames) < 2:
            self.say("no other frame of yours here")
            return
        self.session.frame = min(max(self.session.frame + by, 0), len(frames) - 1)
        frame = frames[self.session.frame]
        self.say(f"frame {self.session.frame + 1} of {len(frames)}: {frame.function}")

    def action_type(self) -> None:
        """Open the line that goes to the script's standard input."""
        if self.session.state == "ended":
            self.say("the script has ended: it reads nothing any more")
            return
        self.open_prompt("input", "")

    def type_line(self, text: str) -> None:
        """Send one line."""
        self._type((text + "\n").encode())
        self.say("sent to the script")

    def _type(self, data: bytes) -> None:
        self.link.send(TypeInput(data.decode("latin-1")))

    def action_terminal(self) -> None:
        """Give the script the whole terminal (for input(), pdb, a full-screen program) until ctrl+]."""
        story = self.session.story
        if story is None or self.session.state == "ended":
            self.say("there is no live script to give the terminal to")
            return
        while story.read_output(self.session.output_told):
            pass
        last = story.output.window(len(story.output) - 12, len(story.output) + 1)
        before = "\r\n".join("".join(text for text, _ in row) for row in last)
        try:
            with self.suspend():
                lend(story.raw_output, self._type, before)
        except SuspendNotSupported:
            self.say("this terminal cannot be lent; i types one line to the script")
        self.relayout()
        self.action_redraw()

    def action_redraw(self) -> None:
        for widget in self.board.painted:
            widget.use(self.palette, self.glyph_set)
