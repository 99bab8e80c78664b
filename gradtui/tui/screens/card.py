"""A card over the panes: a title and rows of text to read and scroll; any of q, Esc, Enter closes it."""

from __future__ import annotations

from collections.abc import Callable

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.screen import ModalScreen

from gradtui.tui.glyphs import UNICODE, Glyphs
from gradtui.tui.line import Line, Span
from gradtui.tui.palette import DARK, Palette
from gradtui.tui.widgets.framed import Framed

Rows = Callable[[int], list[Line]]
"""Rows for a width."""


class CardBody(Framed):
    """The card's text."""

    def __init__(self, title: str, rows: Rows) -> None:
        super().__init__()
        self.title = title
        self.text_rows = rows
        self.top = 0
        self.page = 1
        self.closes = "q"
        self._below = 0

    def inside(self, width: int, height: int) -> list[Line]:
        found = self.text_rows(width)
        self.page = max(height, 1)
        self.top = min(max(self.top, 0), max(len(found) - self.page, 0))
        self._below = len(found) - self.top - self.page
        return found[self.top : self.top + self.page]

    def ends(self) -> list[Span]:
        more = f" {self._below} more {self.glyphs.down} " if self._below > 0 else ""
        return [(more, "dim"), (f" {self.closes} closes ", "accent")]


class Card(ModalScreen[None]):
    """Shows rows until it is closed."""

    CSS = """
    Card { align: center middle; }
    CardBody { width: 84; max-width: 100%; height: auto; max-height: 100%; }
    """
    BINDINGS = [
        Binding("escape,q,enter,question_mark,f1,K", "dismiss_card", show=False),
        Binding("down,j", "scroll(1)", show=False),
        Binding("up,k", "scroll(-1)", show=False),
        Binding("pagedown,space", "scroll_page(1)", show=False),
        Binding("pageup", "scroll_page(-1)", show=False),
        Binding("home,g", "scroll(-100000)", show=False),
        Binding("end,G", "scroll(100000)", show=False),
    ]

    def __init__(self, title: str, rows: Rows, any_key: bool = False) -> None:
        super().__init__()
        self.body = CardBody(title, rows)
        self._any_key = any_key
        self.body.closes = "any key" if any_key else "q"

    def on_key(self, event: events.Key) -> None:
        """For a card that nobody asked for, any key closes it."""
        if self._any_key:
            event.stop()
            self.dismiss()

    def use(self, palette: Palette = DARK, glyphs: Glyphs = UNICODE) -> None:
        """Colours and alphabet."""
        self.body.palette, self.body.glyphs = palette, glyphs

    def compose(self) -> ComposeResult:
        yield self.body

    def on_mount(self) -> None:
        self._fit()

    def on_resize(self) -> None:
        self._fit()

    def _fit(self) -> None:
        width, height = self.app.size
        wide = min(84, width)
        self.body.styles.width = wide
        self.body.styles.height = min(len(self.body.text_rows(wide - 4)) + 2, height)

    def action_dismiss_card(self) -> None:
        self.dismiss()

    def action_scroll(self, by: int) -> None:
        self.body.top += by
        self.body.paint()

    def action_scroll_page(self, by: int) -> None:
        self.action_scroll(by * self.body.page)
