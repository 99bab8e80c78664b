"""Colour and layout of plain text on a terminal, by hand: the report must be there before a library for it is loaded."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}
_OF_SEVERITY = {"error": ("bold", "red"), "warning": ("bold", "yellow"), "info": ("bold", "blue")}


@dataclass(frozen=True, slots=True)
class Style:
    """How to write."""

    colour: bool = False
    width: int = 100

    def paint(self, text: str, *names: str) -> str:
        """The text in that colour and weight; unchanged without colour."""
        if not self.colour or not text:
            return text
        return f"\x1b[{';'.join(_CODES[name] for name in names)}m{text}\x1b[0m"

    def severity(self, severity: str) -> str:
        """`error`, `warning` or `info` in its colour."""
        return self.paint(severity, *_OF_SEVERITY[severity])

    def wrap(self, text: str, indent: str, first: str | None = None) -> str:
        """Paragraph wrapped to the width; lines after the first begin with `indent`."""
        return textwrap.fill(
            text,
            width=max(self.width, 40),
            initial_indent=indent if first is None else first,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )

    def item(self, label: str, text: str, indent: int = 2, column: int = 11) -> str:
        """A labelled line, its continuation lines aligned under the text."""
        head = " " * indent + label.ljust(column)
        body = self.wrap(text, " " * len(head), head)
        painted = self.paint(label, "dim")
        return " " * indent + painted + body[indent + len(label) :]
