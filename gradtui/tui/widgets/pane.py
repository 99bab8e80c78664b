"""A titled region of the screen: a heading with a rule, a gutter where it has a left neighbour, and rows below."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding
from textual.message import Message

from gradtui.tui import keymap
from gradtui.tui.layout import PANES, PaneName
from gradtui.tui.line import Line, Span, justify, line, width_of, wrap
from gradtui.tui.view import View
from gradtui.tui.widgets.painted import Painted


class Pane(Painted, can_focus=True):
    """One pane. Subclasses give `content`, and `heading` where the title has more to say."""

    name_: ClassVar[PaneName]
    title: ClassVar[str]
    edged = False
    """A rule down its left side."""

    class Explained(Message):
        """The person asked what something means."""

        def __init__(self, topic: str) -> None:
            super().__init__()
            self.topic = topic

    def __init__(self) -> None:
        super().__init__(id=self.name_)
        for binding in keymap.bindings(self.name_):
            self._bindings.key_to_bindings.update(
                {key: [*self._bindings.key_to_bindings.get(key, []), one] for key, one in _split(binding)}
            )

    @property
    def number(self) -> int:
        """The digit that shows this pane."""
        return PANES.index(self.name_) + 1

    def heading(self, view: View) -> tuple[list[Span], list[Span]]:
        """What stands in the title line after the name, and at its right end."""
        return [], []

    def content(self, view: View, width: int, height: int) -> list[Line]:
        """The rows below the title, in `width` by `height` cells."""
        raise NotImplementedError

    def rows(self, width: int, height: int) -> list[Line]:
        edge: list[Span] = [(self.glyphs.gutter, "rule")] if self.edged else []
        inner = width - len(edge)
        body = self.content(self.view, inner, height - 1)[: height - 1]
        body += [line()] * (height - 1 - len(body))
        if not edge:
            return [self._title(width), *body]
        return [self._title(width), *(_edged(edge[0], row, inner) for row in body)]

    def _title(self, width: int) -> Line:
        focused = self.has_focus
        rule = self.glyphs.rule_focus if focused else self.glyphs.rule
        role = "accent" if focused else "rule"
        left, right = self.heading(self.view)
        start = (self.glyphs.tee if self.edged and not focused else rule) + rule[0]
        name: list[Span] = [(start + " ", role), (f"{self.number} {self.title}", "title-focus" if focused else "title")]
        if any(text for text, _ in left):
            name += [("  ", ""), *left]
        ends: list[Span] = [(" ", ""), *right, (" " + rule, role)] if any(text for text, _ in right) else []
        room = width - 4 - sum(width_of(text) for text, _ in ends)
        return justify([*_within(name, room), (" ", "")], _whole(ends), width, (rule, role))

    def empty(self, width: int, *paragraphs: str) -> list[Line]:
        """Rows that say what would fill the pane, and which key gets there."""
        rows = [line()]
        for paragraph in paragraphs:
            rows += [line("  ", (row, "dim")) for row in wrap(paragraph, max(width - 4, 10))]
        return rows

    def on_focus(self) -> None:
        self.paint()

    def on_blur(self) -> None:
        self.paint()

    def copied(self) -> str:
        """What `y` copies: the row under the cursor."""
        return ""

    def topic(self) -> str:
        """What `K` explains here: a rule's slug, or a word of the help."""
        return self.name_

    def text(self) -> str:
        """The pane as plain text."""
        return "\n".join(row.text.rstrip() for row in self._painted)


def _split(binding: Binding) -> list[tuple[str, Binding]]:
    return [(one.key, one) for one in Binding.make_bindings([binding])]


def _edged(edge: Span, row: Line, inner: int) -> Line:
    return Line((edge, *row.spans), row.bar)


def _within(spans: list[Span], room: int) -> list[Span]:
    kept: list[Span] = []
    for text, role in spans:
        size = width_of(text)
        if size > room:
            return [*kept, (text[: max(room, 0)], role)] if text.isascii() else kept
        kept.append((text, role))
        room -= size
    return kept


def _whole(spans: list[Span]) -> list[Span]:
    return spans
