"""One line in which the person types a filter; it takes the ticker's place while it is open."""

from __future__ import annotations

from typing import Literal

from textual import on
from textual.binding import Binding
from textual.message import Message
from textual.widgets import Input

from gradtui.tui.layout import PaneName

Asked = PaneName | Literal["input"]
"""Whose line it is: a pane's filter, or the script's standard input."""
_HINTS: dict[Asked, str] = {
    "parameters": "part of a name   !nan !zero !fresh !spent !stale   >1e-3  <1e-6   ~regex",
    "input": "a line for the script's standard input",
}


class Prompt(Input):
    """An input without a frame."""

    DEFAULT_CSS = """
    Prompt, Prompt:focus { border: none; height: 1; padding: 0 1; background: $panel; }
    """
    BINDINGS = [Binding("escape", "cancel", show=False)]

    class Filtered(Message):
        """The filter of a pane is now this."""

        def __init__(self, pane: Asked, text: str, done: bool) -> None:
            super().__init__()
            self.pane = pane
            self.text = text
            self.done = done

    def __init__(self) -> None:
        super().__init__(select_on_focus=False)
        self.asking: Asked | None = None

    def ask(self, pane: Asked, text: str) -> None:
        """Open for a pane's filter, or for a line of input."""
        self.asking = None
        self.placeholder = _HINTS.get(pane, "part of what a row says")
        self.value = text
        self.cursor_position = len(text)
        self.asking = pane

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        if self.asking:
            self.post_message(self.Filtered(self.asking, event.value, False))

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        event.stop()
        self._close(event.value)

    def action_cancel(self) -> None:
        """Esc: show everything again; for a line of input, send nothing."""
        if self.asking == "input":
            self.asking = None
            self.post_message(self.Filtered("input", "", False))
        else:
            self._close("")

    def _close(self, text: str) -> None:
        pane, self.asking = self.asking, None
        if pane:
            self.post_message(self.Filtered(pane, text, True))
