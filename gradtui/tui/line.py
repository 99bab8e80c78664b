"""One row of a pane as plain data: runs of text, each with the role it plays. Knows nothing of colours or of Textual."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rich.cells import cell_len, chop_cells, set_cell_size

Span = tuple[str, str]
"""Text and role (`dim`, `error`, `heat:3`); the palette turns a role into colours."""


@dataclass(frozen=True, slots=True)
class Line:
    """A row: spans from the left, and the bar that lies under all of them."""

    spans: tuple[Span, ...] = ()
    bar: str = ""
    """Role of the row's background: `select`, `select-idle`, `current`; empty for none."""

    @property
    def width(self) -> int:
        """Cells that the spans take."""
        return sum(width_of(text) for text, _ in self.spans)

    @property
    def text(self) -> str:
        """The row without roles."""
        return "".join(text for text, _ in self.spans)


BLANK = Line()

_CONTROLS = dict.fromkeys((*range(32), 127, *range(128, 160)), "·") | {9: " "}
_UNPRINTABLE = _CONTROLS | dict.fromkeys(range(55296, 57344), "?") | dict.fromkeys(range(0x202A, 0x202F), "·")


def printable(text: str) -> str:
    """The text with every character that could move a cursor replaced by a dot."""
    return text if text.isascii() and text.isprintable() else text.translate(_UNPRINTABLE)


def line(*spans: Span | str, bar: str = "") -> Line:
    """A row; a bare string has the role of plain text."""
    return Line(tuple(span if isinstance(span, tuple) else (span, "") for span in spans if span), bar)


def width_of(text: str) -> int:
    """Cells that the text takes."""
    return len(text) if text.isascii() else cell_len(text)


def fit(text: str, width: int) -> str:
    """Exactly `width` cells, cut or padded on the right."""
    text = printable(text)
    return text[:width].ljust(width) if text.isascii() else set_cell_size(text, max(width, 0))


def fit_right(text: str, width: int) -> str:
    """Exactly `width` cells, padded on the left."""
    text = clip(text, width)
    return " " * (width - width_of(text)) + text


def clip(text: str, width: int, ellipsis: str = "…") -> str:
    """At most `width` cells; what is cut shows as an ellipsis."""
    text = printable(text)
    if width_of(text) <= width:
        return text
    if width <= width_of(ellipsis):
        return set_cell_size(text, max(width, 0))
    return set_cell_size(text, width - width_of(ellipsis)).rstrip() + ellipsis


def elide(name: str, width: int, ellipsis: str = "…") -> str:
    """At most `width` cells of a dotted name, cut in the middle: `blocks.0…fc1.weight`."""
    name = printable(name)
    if width_of(name) <= width or width < 4 + len(ellipsis) or not name.isascii():
        return clip(name, width, ellipsis)
    tail = (width - len(ellipsis)) * 3 // 5
    return name[: width - len(ellipsis) - tail] + ellipsis + name[len(name) - tail :]


def initials(name: str, width: int, ellipsis: str = "…") -> str:
    """A dotted name in at most `width` cells: words cut to their first letter from the left, numbers kept, then elided.

    `encoder.layers.0.self_attn.in_proj_weight` becomes `e.l.0.self_attn.in_proj_weight`: the parts that tell
    parameters apart stay.
    """
    parts = name.split(".")
    for index in range(len(parts) - 1):
        if len(".".join(parts)) <= width:
            break
        parts[index] = parts[index] if parts[index].isdigit() else parts[index][:1]
    return elide(".".join(parts), width, ellipsis)


def wrap(text: str, width: int) -> list[str]:
    """The text broken at spaces into rows of at most `width` cells; a longer word is broken anywhere."""
    rows: list[str] = []
    for paragraph in text.splitlines() or [""]:
        row = ""
        for word in printable(paragraph).split(" "):
            pieces = [word] if width_of(word) <= width else chop_cells(word, max(width, 1))
            for piece in pieces:
                if row and width_of(row) + 1 + width_of(piece) > width:
                    rows.append(row)
                    row = piece
                else:
                    row = f"{row} {piece}" if row else piece
        rows.append(row)
    return rows


def justify(left: Iterable[Span], right: Iterable[Span], width: int, filler: Span = (" ", "")) -> Line:
    """Left spans, a run of filler, right spans; the right ones give way first when there is no room."""
    kept = list(left)
    used = sum(width_of(text) for text, _ in kept)
    ends = [span for span in right if span[0]]
    while ends and used + 1 + sum(width_of(text) for text, _ in ends) > width:
        ends.pop()
    room = width - used - sum(width_of(text) for text, _ in ends)
    if room > 0:
        kept.append((filler[0] * room, filler[1]))
    return Line((*kept, *ends))
