"""Numbers as a person reads them in a narrow column: norms, counts, durations, trends and bars."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, isnan, log10

from gradtui.tui.glyphs import Glyphs


def norm(value: float) -> str:
    """Eight cells: `1.92e-02`, `nan`, `inf`."""
    if isnan(value):
        return "nan"
    return f"{value:.2e}" if isfinite(value) else "inf" if value > 0 else "-inf"


def short(value: float) -> str:
    """A number for running text: four figures, no exponent where that is shorter."""
    if not isfinite(value):
        return norm(value)
    return f"{value:.4g}"


def signed(value: float) -> str:
    """A number with its sign, nine cells at most."""
    return f"{value:+.2e}" if isfinite(value) else norm(value)


def count(number: int) -> str:
    """`812`, `12.3k`, `1.24M`."""
    for size, unit in ((1_000_000_000, "G"), (1_000_000, "M"), (10_000, "k")):
        if number >= size:
            return f"{number / (1000 if unit == 'k' else size):.3g}{unit}"
    return str(number)


def duration(seconds: float) -> str:
    """`0.8 ms`, `12 ms`, `1.4 s`, `3 min`."""
    if seconds <= 0:
        return ""
    if seconds < 0.01:
        return f"{seconds * 1e3:.1f} ms"
    if seconds < 1:
        return f"{seconds * 1e3:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def shape(sizes: Sequence[int]) -> str:
    """`[64,32]`; a scalar is `[]`."""
    return "[" + ",".join(map(str, sizes)) + "]"


def spark(values: Sequence[float], width: int, glyphs: Glyphs) -> str:
    """A trend of the newest values on a log scale of at least a decade, a steady value in its middle; NaN and Inf as `!`."""
    newest = list(values)[-width:] if width > 0 else []
    logs = [log10(v) for v in newest if isfinite(v) and v > 0]
    middle = (min(logs) + max(logs)) / 2 if logs else 0.0
    half = max((max(logs) - min(logs)) / 2, 0.5) if logs else 0.5
    return "".join(_level(v, middle, half, glyphs.spark) for v in newest)


def _level(value: float, middle: float, half: float, levels: str) -> str:
    if not isfinite(value):
        return "!"
    if value <= 0:
        return levels[0]
    place = 0.5 + (log10(value) - middle) / (2 * half)
    return levels[min(max(int(place * len(levels)), 0), len(levels) - 1)]


def bar(value: float, full: float, width: int, glyphs: Glyphs) -> str:
    """A bar of at most `width` cells, `full` filling it; anything above zero shows at least half a cell."""
    if not isfinite(value):
        return "!" * width
    halves = round(2 * width * value / full) if full > 0 else 0
    if value > 0:
        halves = max(halves, 1)
    halves = min(halves, 2 * width)
    return glyphs.bar * (halves // 2) + (glyphs.half if halves % 2 else "")
