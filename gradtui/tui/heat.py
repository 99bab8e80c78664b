"""A grid of signed numbers as coloured half blocks, or as a ramp of glyphs where colours are few or the link is slow."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from math import isfinite, isnan, log10
from typing import Literal

from gradtui.tui.glyphs import Glyphs
from gradtui.tui.line import Span
from gradtui.tui.palette import HEAT_STEPS

Scale = Literal["linear", "log", "rank"]
SCALES: tuple[Scale, ...] = ("linear", "log", "rank")
Grid = Sequence[Sequence[float]]

DECADES = 4
"""Decades below the largest magnitude that the log scale tells apart."""

_MIDDLE = HEAT_STEPS // 2


class Shades:
    """Places numbers of one grid on -1..1, by one scale."""

    def __init__(self, grid: Grid, scale: Scale) -> None:
        self.scale = scale
        magnitudes = sorted(abs(v) for row in grid for v in row if isfinite(v) and v)
        self.largest = magnitudes[-1] if magnitudes else 0.0
        self._magnitudes = magnitudes if scale == "rank" else []

    def place(self, value: float) -> float:
        """-1 to 1; finite values only."""
        size = abs(value)
        if not size or not self.largest:
            return 0.0
        if self.scale == "linear":
            part = size / self.largest
        elif self.scale == "log":
            part = max(1 + log10(size / self.largest) / DECADES, 0.02)
        else:
            part = (bisect_right(self._magnitudes, size)) / len(self._magnitudes)
        return part if value > 0 else -part

    def step(self, value: float) -> str:
        """One of nine colour steps as a digit; `n` for NaN and Inf."""
        if not isfinite(value):
            return "n"
        return str(_MIDDLE + round(self.place(value) * _MIDDLE))

    def glyph(self, value: float, glyphs: Glyphs) -> Span:
        """One cell of the glyph ramp."""
        if not isfinite(value):
            return ("?" if isnan(value) else "^", "nan")
        ramp = glyphs.positive if value >= 0 else glyphs.negative
        index = round(abs(self.place(value)) * (len(ramp) - 1))
        index = max(index, 1) if value else 0
        return (ramp[index], "positive" if value > 0 else "negative" if value < 0 else "dim")


def stretched(grid: Grid, width: int, height: int, most: int = 6) -> tuple[Grid, int, int]:
    """A small grid with each cell repeated so that it fills more of the room; and how often down and across."""
    rows, columns = len(grid), len(grid[0]) if grid else 0
    if not rows or not columns:
        return grid, 1, 1
    down, across = max(min(height // rows, most), 1), max(min(width // columns, most), 1)
    if down == across == 1:
        return grid, 1, 1
    return [[value for value in row for _ in range(across)] for row in grid for _ in range(down)], down, across


def blocks(grid: Grid, shades: Shades) -> list[list[Span]]:
    """Two grid rows a text row: the upper half of a cell is its foreground, the lower half its background."""
    rows: list[list[Span]] = []
    for top in range(0, len(grid), 2):
        upper = grid[top]
        lower: Sequence[float] = grid[top + 1] if top + 1 < len(grid) else ()
        row: list[Span] = []
        for column, value in enumerate(upper):
            below = shades.step(lower[column]) if column < len(lower) else ""
            row.append(("▀", f"heat:{shades.step(value)}:{below}"))
        rows.append(row)
    return rows


def ramp(grid: Grid, shades: Shades, glyphs: Glyphs) -> list[list[Span]]:
    """One grid row a text row, in glyphs."""
    return [[shades.glyph(value, glyphs) for value in row] for row in grid]


def histogram(counts: Sequence[int], height: int, glyphs: Glyphs) -> list[str]:
    """Columns of eighths, `height` rows, from the top; anything above zero shows."""
    top = max(counts, default=0)
    if not top:
        return []
    levels = len(glyphs.spark)
    rows = []
    for row in range(height, 0, -1):
        text = ""
        for number in counts:
            filled = number / top * height * levels - (row - 1) * levels
            filled = max(filled, 1) if number and row == 1 else filled
            text += " " if filled < 0.5 else glyphs.spark[min(int(filled + 0.5), levels) - 1]
        rows.append(text)
    return rows
