"""Where each pane goes at each size of terminal: pure arithmetic, kept apart from Textual so that every size can be tested."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PaneName = Literal["source", "events", "parameters", "gradient", "accumulation", "flow", "findings", "output"]
PANES: tuple[PaneName, ...] = (
    "source",
    "events",
    "parameters",
    "gradient",
    "accumulation",
    "flow",
    "findings",
    "output",
)
"""In the order of their digits."""

Mode = Literal["tiny", "narrow", "two", "three"]
SLOT: tuple[PaneName, ...] = ("gradient", "flow", "findings")
"""Panes that share one place in the two-column layout."""


@dataclass(frozen=True, slots=True)
class Place:
    """A rectangle of the screen, in cells; with a rule down its left side or not."""

    x: int
    y: int
    width: int
    height: int
    gutter: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """A screen laid out."""

    mode: Mode
    panes: dict[PaneName, Place]
    tabs: bool = False
    ticker: bool = True
    """False: the ticker shares the status line."""
    footer: bool = True


@dataclass(frozen=True, slots=True)
class Wish:
    """What the person asked to see."""

    main: PaneName = "parameters"
    """The pane that must be on screen."""
    slot: PaneName = "gradient"
    zoomed: bool = False
    parameters: int = 0
    """Rows of the table of parameters; 0 when not known yet."""
    strip: int = 5
    """Lines of source above the main pane on small screens."""


def mode_of(width: int, height: int) -> Mode:
    """The layout for a terminal of this size (UX.md 4.7)."""
    if width < 40 or height < 10:
        return "tiny"
    if width >= 160 and height >= 45:
        return "three"
    return "two" if width >= 100 and height >= 30 else "narrow"


def plan(width: int, height: int, wish: Wish) -> Plan:
    """Lay out a screen of `width` by `height` cells: status line, tabs, panes, ticker, footer, from the top."""
    mode = mode_of(width, height)
    if mode == "tiny":
        return Plan(mode, {}, ticker=False, footer=False)
    ticker = height >= 20
    tabs = mode == "narrow" and height >= 14
    top = 1 + tabs
    body = height - top - ticker - 1
    if wish.zoomed:
        panes: dict[PaneName, Place] = {wish.main: Place(0, top, width, body)}
    elif mode == "narrow":
        panes = _narrow(width, top, body, wish)
    elif mode == "two":
        panes = _two(width, top, body, wish)
    else:
        panes = _three(width, top, body, wish)
    return Plan(mode, panes, tabs, ticker)


def _narrow(width: int, top: int, body: int, wish: Wish) -> dict[PaneName, Place]:
    if wish.main == "source":
        return {"source": Place(0, top, width, body)}
    strip = min(wish.strip, 3 if body < 18 else 9, body - 7)
    if strip <= 0:
        return {wish.main: Place(0, top, width, body)}
    return {
        "source": Place(0, top, width, strip + 1),
        wish.main: Place(0, top + strip + 1, width, body - strip - 1),
    }


def _column(x: int, top: int, width: int, gutter: bool, parts: list[tuple[PaneName, int]]) -> dict[PaneName, Place]:
    places: dict[PaneName, Place] = {}
    for name, height in parts:
        places[name] = Place(x, top, width, height, gutter)
        top += height
    return places


def _table(wish: Wish, most: int) -> int:
    """Lines for the table of parameters: no more than it has rows, so that others get what it leaves."""
    return min(max(wish.parameters + 2, 7), most) if wish.parameters else most


def _two(width: int, top: int, body: int, wish: Wish) -> dict[PaneName, Place]:
    left = width * 44 // 100
    source, output = body * 50 // 100, max(5, body * 20 // 100)
    accumulation, slot = max(8, body * 26 // 100), max(12, body * 37 // 100)
    table = _table(wish, body - accumulation - slot)
    spare = body - accumulation - slot - table
    accumulation += spare // 3
    return _column(
        0, top, left, False, [("source", source), ("events", body - source - output), ("output", output)]
    ) | _column(
        left,
        top,
        width - left,
        True,
        [("parameters", table), ("accumulation", accumulation), (wish.slot, body - table - accumulation)],
    )


def _three(width: int, top: int, body: int, wish: Wish) -> dict[PaneName, Place]:
    left, right = width * 31 // 100, width * 32 // 100
    middle = width - left - right
    source, output = body * 52 // 100, body * 18 // 100
    gradient = body * 56 // 100
    table = _table(wish, body * 46 // 100)
    return (
        _column(0, top, left, False, [("source", source), ("events", body - source - output), ("output", output)])
        | _column(
            left,
            top,
            middle,
            True,
            [("parameters", table), ("flow", (body - table) // 2), ("findings", body - table - (body - table) // 2)],
        )
        | _column(left + middle, top, right, True, [("gradient", gradient), ("accumulation", body - gradient)])
    )
