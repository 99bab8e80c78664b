"""A pane that is a list: a cursor, scrolling, a filter and matches, all on row numbers; subclasses say what the rows are."""

from __future__ import annotations

from textual import events
from textual.message import Message

from gradtui.tui import keymap
from gradtui.tui.line import Line, Span
from gradtui.tui.view import View
from gradtui.tui.widgets.pane import Pane, _split


class ListPane(Pane):
    """Subclasses give `count` and `row`, and may give a `header`, `moved` and `opened`."""

    class FilterAsked(Message):
        """The person wants to type a filter for this pane."""

        def __init__(self, pane: ListPane) -> None:
            super().__init__()
            self.pane = pane

    def __init__(self) -> None:
        super().__init__()
        self.cursor = 0
        self.top = 0
        self.filter = ""
        self._page = 1
        for binding in keymap.bindings("list"):
            for key, one in _split(binding):
                if key not in self._bindings.key_to_bindings:
                    self._bindings.key_to_bindings[key] = [one]

    # -- what subclasses say

    def count(self, view: View) -> int:
        """How many rows there are."""
        raise NotImplementedError

    def row(self, view: View, index: int, width: int) -> list[Span]:
        """One row, after the two cells for the cursor's mark."""
        raise NotImplementedError

    def header(self, view: View, width: int) -> list[Line]:
        """Rows that do not scroll."""
        return []

    def nothing(self, view: View, width: int) -> list[Line]:
        """What is shown when there are no rows."""
        return []

    def moved(self) -> None:
        """The cursor is on another row."""

    def opened(self) -> None:
        """The row was opened."""

    def notable(self, view: View, index: int) -> bool:
        """The row is one that `.` and `,` go to when nothing is searched for."""
        return False

    def row_text(self, view: View, index: int) -> str:
        """What a search looks at."""
        return self._row(view, index, 400).text

    def matches(self, view: View, index: int) -> bool:
        """The row is one that `.` and `,` go to."""
        if self.filter:
            return self.filter.lower() in self.row_text(view, index).lower()
        return self.notable(view, index)

    # -- drawing

    def content(self, view: View, width: int, height: int) -> list[Line]:
        total = self.count(view)
        if not total:
            return self.nothing(view, width)
        head = self.header(view, width)
        self._page = max(height - len(head), 1)
        self._keep_in_sight(total)
        last = min(self.top + self._page, total)
        return [*head, *(self._row(view, index, width) for index in range(self.top, last))]

    def _row(self, view: View, index: int, width: int) -> Line:
        here = index == self.cursor
        bar = ("select" if self.has_focus else "select-idle") if here else ""
        mark = (f"{self.glyphs.arrow} ", "accent") if here else ("  ", "")
        return Line((mark, *self.row(view, index, width - 2)), bar)

    def _keep_in_sight(self, total: int) -> None:
        self.cursor = min(max(self.cursor, 0), total - 1)
        lowest = max(total - self._page, 0)
        self.top = min(max(self.top, self.cursor - self._page + 1), self.cursor, lowest)
        self.top = max(self.top, 0)

    def place(self, view: View) -> list[Span]:
        """`12 of 340`, for the title."""
        total = self.count(view)
        return [(f"{self.cursor + 1} of {total}", "dim")] if total else []

    # -- moving

    def go(self, index: int) -> None:
        """Put the cursor on a row."""
        total = self.count(self.view)
        index = min(max(index, 0), max(total - 1, 0))
        if total and index != self.cursor:
            self.cursor = index
            self.moved()
        self.paint()

    def action_move(self, by: int) -> None:
        self.go(self.cursor + by)

    def action_page(self, by: int) -> None:
        self.go(self.cursor + by * max(self._page - 1, 1))

    def action_first(self) -> None:
        self.go(0)

    def action_last(self) -> None:
        self.go(self.count(self.view) - 1)

    def action_open(self) -> None:
        if self.count(self.view):
            self.opened()

    def action_match(self, by: int) -> None:
        view, total = self.view, self.count(self.view)
        for distance in range(1, total + 1):
            index = (self.cursor + by * distance) % total
            if self.matches(view, index):
                self.go(index)
                return

    def action_filter(self) -> None:
        self.post_message(self.FilterAsked(self))

    def set_filter(self, text: str) -> None:
        """Search for text from the cursor on; panes that can, show only the rows that match."""
        self.filter = text
        if text and not (self.cursor < self.count(self.view) and self.matches(self.view, self.cursor)):
            self.action_match(1)
        self.paint()

    def on_click(self, event: events.Click) -> None:
        head = len(self.header(self.view, self.size.width))
        index = self.top + event.y - 1 - head
        if 0 <= event.y - 1 - head < self._page and index < self.count(self.view):
            chosen = index == self.cursor and event.chain > 1
            self.go(index)
            if chosen:
                self.opened()

    def on_mouse_scroll_down(self) -> None:
        self.action_move(3)

    def on_mouse_scroll_up(self) -> None:
        self.action_move(-3)
