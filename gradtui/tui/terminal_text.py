"""The script's terminal output as rows of text: carriage returns, erasing, cursor up, colours, bad UTF-8; bounded, and nothing else obeyed."""

from __future__ import annotations

import codecs
import re
from collections import deque
from collections.abc import Sequence

from gradtui.tui.line import Span, printable

Rows = Sequence[tuple[Span, ...]]

MAX_ROWS = 10_000
MAX_CELLS = 4_000
"""Characters kept of one row; what follows is dropped."""

_TOKEN = re.compile(
    r"(?P<csi>\x1b\[[0-?]*[ -/]*[@-~])|(?P<osc>\x1b\][^\x07\x1b]*(?:\x07|\x1b\\))|(?P<esc>\x1b.)|(?P<control>[\r\n\b\t])|"
    r"(?P<text>[^\x00-\x1f\x7f\x1b]+)",
    re.DOTALL,
)
_PARTIAL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]{0,200})?\Z")


class TerminalText:
    """Feed bytes, read rows. A row is a list of spans; a colour is a role `sgr:1;31`."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._rows: deque[list[Span]] = deque([[]], maxlen=MAX_ROWS)
        self._up = 0
        self._column = 0
        self._sgr = ""
        self._rest = ""
        self.dropped = 0
        """Rows that are no longer kept."""
        self.version = 0
        """Grows with every change."""

    def feed(self, data: bytes) -> None:
        """Take in what the script wrote."""
        text = self._rest + self._decode(data)
        partial = _PARTIAL.search(text)
        self._rest = partial.group() if partial else ""
        if partial:
            text = text[: partial.start()]
        for match in _TOKEN.finditer(text):
            self._token(match.lastgroup or "", match.group())
        self.version += 1

    def skip(self, size: int) -> None:
        """Note that so many bytes were left out."""
        self._rows.append([(f"… {size:,} bytes not shown …", "dim")])
        self._new_row()

    @property
    def rows(self) -> Rows:
        """Rows so far, oldest first; the last is the one being written."""
        found = [tuple(row) for row in self._rows]
        return found[:-1] if found and not found[-1] else found

    def __len__(self) -> int:
        return len(self._rows) - (not self._rows[-1])

    @property
    def last(self) -> str:
        """The line that has no end yet; empty when the script's last words ended in a new line."""
        return "".join(text for text, _ in self._rows[-1])

    def window(self, start: int, stop: int) -> list[tuple[Span, ...]]:
        """Rows `start` to `stop`, without copying the others."""
        return [tuple(self._rows[index]) for index in range(max(start, 0), min(stop, len(self._rows)))]

    # -- one token

    def _token(self, kind: str, token: str) -> None:
        if kind == "text":
            self._write(token)
        elif kind == "control":
            self._control(token)
        elif kind == "csi":
            self._csi(token[-1], token[2:-1])

    def _control(self, token: str) -> None:
        if token == "\r":
            self._column = 0
        elif token == "\b":
            self._column = max(self._column - 1, 0)
        elif token == "\t":
            self._write(" " * (8 - self._column % 8))
        elif self._up:
            self._up -= 1
        else:
            self._new_row()
        if token == "\n":
            self._column = 0

    def _new_row(self) -> None:
        self.dropped += len(self._rows) == MAX_ROWS
        self._rows.append([])
        self._column = 0

    def _csi(self, final: str, body: str) -> None:
        number = int(body) if body.isdigit() else 1
        if final == "m":
            self._sgr = (
                "" if body in ("", "0") else body if body.startswith("0;") or not self._sgr else f"{self._sgr};{body}"
            )
            self._sgr = self._sgr[-64:]
        elif final == "K":
            self._erase(body)
        elif final == "A":
            self._up = min(self._up + number, len(self._rows) - 1)
        elif final == "B":
            self._up = max(self._up - number, 0)
        elif final == "G":
            self._column = max(number - 1, 0)
        elif final == "C":
            self._column = min(self._column + number, MAX_CELLS)
        elif final == "D":
            self._column = max(self._column - number, 0)

    def _erase(self, body: str) -> None:
        row = self._rows[-1 - self._up]
        row[:] = _cut(row, 0, self._column) if body in ("", "0") else []

    def _write(self, text: str) -> None:
        row = self._rows[-1 - self._up]
        text = printable(text)[: max(MAX_CELLS - self._column, 0)]
        role = f"sgr:{self._sgr}" if self._sgr else ""
        length = sum(len(piece) for piece, _ in row)
        if self._column == length:
            if row and row[-1][1] == role:
                row[-1] = (row[-1][0] + text, role)
            elif text:
                row.append((text, role))
        else:
            before = _cut(row, 0, self._column)
            gap = self._column - sum(len(piece) for piece, _ in before)
            row[:] = [*before, (" " * gap, ""), (text, role), *_cut(row, self._column + len(text), length)]
        self._column += len(text)


def _cut(row: list[Span], start: int, stop: int) -> list[Span]:
    """The characters `start` to `stop` of a row."""
    found: list[Span] = []
    at = 0
    for text, role in row:
        piece = text[max(start - at, 0) : max(stop - at, 0)]
        if piece:
            found.append((piece, role))
        at += len(text)
    return found
