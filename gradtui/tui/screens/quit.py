"""The question asked before the screen is left while the script lives."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.binding import Binding
from textual.screen import ModalScreen

from gradtui.tui.glyphs import Glyphs
from gradtui.tui.line import Line, line
from gradtui.tui.palette import Palette
from gradtui.tui.widgets.framed import Framed

_ANSWERS = (
    ("k", "kill", "end the script (SIGTERM), and leave"),
    ("d", "detach", "leave the screen; the script runs on"),
    ("q", "cancel", "stay"),
)


class _Question(Framed):
    title = "The script has not ended"

    def inside(self, width: int, height: int) -> list[Line]:
        rows = [line("  ", (key, "key"), (f"  {name:<8}", "strong"), (text, "")) for key, name, text in _ANSWERS]
        return [line(), *rows]


class Leaving(ModalScreen[str]):
    """Answers `kill`, `detach` or `cancel`."""

    CSS = """
    Leaving { align: center middle; }
    _Question { width: 56; max-width: 100%; height: 7; }
    """
    BINDINGS = [
        Binding("k", "answer('kill')", show=False),
        Binding("d", "answer('detach')", show=False),
        Binding("q,escape,c,n", "answer('cancel')", show=False),
    ]

    def __init__(self, palette: Palette, glyphs: Glyphs) -> None:
        super().__init__()
        self._question = _Question()
        self._question.palette, self._question.glyphs = palette, glyphs

    def compose(self) -> ComposeResult:
        yield self._question

    def action_answer(self, answer: str) -> None:
        self.dismiss(answer)
