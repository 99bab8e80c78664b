"""The marks that carry meaning on screen, in two alphabets: UTF-8, and ASCII for terminals that cannot."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Glyphs:
    """One alphabet. Every mark is one cell wide."""

    arrow: str = "►"
    back: str = "◄"
    breakpoint: str = "●"
    event: str = "·"
    stopped: str = "‖"
    running: str = "▶"
    ended: str = "■"
    crashed: str = "✖"
    starting: str = "◌"
    rule: str = "─"
    rule_focus: str = "━"
    gutter: str = "│"
    tee: str = "├"
    corners: str = "┏┓┗┛"
    side: str = "┃"
    bar: str = "█"
    half: str = "▌"
    old: str = "░"
    empty: str = "·"
    spark: str = "▁▂▃▄▅▆▇█"
    ellipsis: str = "…"
    none: str = "–"
    zero: str = "○"
    fresh: str = "●"
    spent: str = "◐"
    error: str = "✖"
    warning: str = "▲"
    info: str = "•"
    times: str = "×"
    to: str = "→"
    plus: str = "+"
    up: str = "↑"
    down: str = "↓"
    positive: str = " .:oO@"
    negative: str = " ,;xX#"


UNICODE = Glyphs()

ASCII = Glyphs(
    arrow=">",
    back="<",
    breakpoint="*",
    event=".",
    stopped="|",
    running=">",
    ended="#",
    crashed="X",
    starting="~",
    rule="-",
    rule_focus="=",
    gutter="|",
    tee="+",
    corners="++++",
    side="|",
    bar="#",
    half="-",
    old="-",
    empty=".",
    spark="_.:-=+*#",
    ellipsis="~",
    none="-",
    zero="o",
    fresh="*",
    spent="%",
    error="X",
    warning="!",
    info="-",
    times="x",
    to=">",
    up="^",
    down="v",
)

_TO_ASCII = str.maketrans(
    {
        getattr(UNICODE, field.name): getattr(ASCII, field.name)
        for field in fields(Glyphs)
        if len(getattr(UNICODE, field.name)) == 1
    }
    | {"·": ".", "—": "-", "–": "-", "’": "'", "“": '"', "”": '"', "≥": ">", "≤": "<", "×": "x", "Σ": "S", "‖": "|"}
)


def to_ascii(text: str) -> str:
    """The text with our own marks in ASCII and any other character as `?`."""
    return text if text.isascii() else text.translate(_TO_ASCII).encode("ascii", "replace").decode()
