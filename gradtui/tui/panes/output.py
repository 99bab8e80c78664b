"""Output: what the script writes to its terminal, progress bars and colours included; follows the end until scrolled."""

from __future__ import annotations

from gradtui.tui import figures
from gradtui.tui.line import Line, Span
from gradtui.tui.view import View
from gradtui.tui.widgets.list_pane import ListPane


class OutputPane(ListPane):
    """A tail of the script's terminal."""

    name_ = "output"
    title = "Output"

    def __init__(self) -> None:
        super().__init__()
        self._following = True

    def watch_view(self) -> None:
        if self._following:
            self.cursor = max(self.count(self.view) - 1, 0)
        super().watch_view()

    def heading(self, view: View) -> tuple[list[Span], list[Span]]:
        total = self.count(view)
        lines = f"{figures.count(total)} line{'' if total == 1 else 's'}" if total else ""
        dropped = f", {view.output.dropped:,} older not kept" if view.output and view.output.dropped else ""
        return [(lines + dropped, "dim")], [("" if self._following else "G follows the end", "dim")]

    def count(self, view: View) -> int:
        return len(view.output) if view.output else 0

    def _row(self, view: View, index: int, width: int) -> Line:
        assert view.output is not None
        bar = "select" if self.has_focus and index == self.cursor and not self._following else ""
        return Line(((" ", ""), *view.output.window(index, index + 1)[0]), bar)

    def row(self, view: View, index: int, width: int) -> list[Span]:
        return []  # `_row` draws: the script's own lines have no mark and no columns

    def row_text(self, view: View, index: int) -> str:
        assert view.output is not None
        return "".join(text for text, _ in view.output.window(index, index + 1)[0])

    def nothing(self, view: View, width: int) -> list[Line]:
        return self.empty(
            width, "What the script prints appears here." if view.state != "ended" else "The script printed nothing."
        )

    def go(self, index: int) -> None:
        self._following = index >= self.count(self.view) - 1
        super().go(index)

    def copied(self) -> str:
        return self._row(self.view, self.cursor, 0).text.strip() if self.count(self.view) else ""
