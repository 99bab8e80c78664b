"""One line in which the person types a filter; it takes the ticker's place while it is open."""

from __future__ import annotations

from textual import on
from textual.binding import Binding
from textual.message import Message
from textual.widgets import Input

from gradtui.tui.layout import PaneName


class Prompt(Input):
    """An input without a frame."""

    DEFAULT_CSS = """
    Prompt, Prompt:focus { border: none; height: 1; padding: 0 1; background: $panel; }
    """
    BINDINGS = [Binding("escape", "cancel", show=False)]

    class Filtered(Message):
        """The filter of a pane is now this."""

        def __init__(self, pane: PaneName, text: str, done: bool) -> None:
            super().__init__()
            self.pane = pane
            self.text = text
            self.done = done

    def __init__(self) -> None:
        super().__init__(select_on_focus=False)
        self.asking: PaneName | None = None

    def ask(self, pane: PaneName, text: str) -> None:
        """Open for a pane's filter."""
        self.asking = pane
        self.placeholder = "part of a name   !nan !zero !fresh !spent !stale   >1e-3  <1e-6   ~regex"
        self.value = text
        self.cursor_position = len(text)

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
        self._close("")

    def _close(self, text: str) -> None:
        pane, self.asking = self.asking, None
        if pane:
            self.post_message(self.Filtered(pane, text, True))
