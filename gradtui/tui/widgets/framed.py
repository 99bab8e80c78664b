"""A box over the panes, drawn in our own glyphs: a title, rows, and what closes it."""

from __future__ import annotations

from gradtui.tui.line import Line, Span, justify, line, width_of
from gradtui.tui.widgets.painted import Painted


class Framed(Painted):
    """Subclasses give the rows inside the box."""

    title = ""

    def inside(self, width: int, height: int) -> list[Line]:
        """Rows of the box, in `width` by `height` cells."""
        raise NotImplementedError

    def ends(self) -> list[Span]:
        """What stands at the right of the bottom edge."""
        return []

    def rows(self, width: int, height: int) -> list[Line]:
        left_top, right_top, left_bottom, right_bottom = tuple(self.glyphs.corners)
        rule = (self.glyphs.rule_focus, "accent")
        inner = width - 4
        body = self.inside(inner, height - 2)[: height - 2]
        body += [line()] * (height - 2 - len(body))
        head: list[Span] = [(left_top + rule[0] + " ", "accent"), (self.title + " ", "title-focus")]
        tail = [*self.ends(), (right_bottom, "accent")]
        return [
            justify(head, [(right_top, "accent")], width, rule),
            *(self._sided(row, inner) for row in body),
            justify([(left_bottom, "accent")], tail, width, rule),
        ]

    def _sided(self, row: Line, inner: int) -> Line:
        used = sum(width_of(text) for text, _ in row.spans)
        side = self.glyphs.side
        return Line(((side + " ", "accent"), *row.spans, (" " * (inner - used), ""), (" " + side, "accent")), row.bar)
