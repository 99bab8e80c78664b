"""Roles to colours: dark, light, high-contrast and 16-colour palettes, each readable at 4.5:1 and never the only sign of anything.

Truecolor values sit on the 256-colour cube, so that a terminal without truecolor shows the same screen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from rich.ansi import SGR_STYLE_MAP
from rich.color import Color, ColorParseError
from rich.style import Style

from gradtui.tui.line import Line

MIN_CONTRAST = 4.5
"""WCAG 2 AA for body text."""

_DARK = {
    "": "#d0d0d0",
    "dim": "#949494",
    "rule": "#585858",
    "strong": "bold #eeeeee",
    "title": "#afafaf",
    "title-focus": "bold #ffffff",
    "accent": "#87d7d7",
    "key": "bold #87d7d7",
    "stopped": "bold #ffd75f",
    "running": "bold #87d787",
    "ended": "bold #b2b2b2",
    "error": "bold #ff8787",
    "warning": "#ffd75f",
    "info": "#b2b2b2",
    "ok": "#87d787",
    "current": "bold #ffd75f",
    "breakpoint": "#ff8787",
    "negative": "#5fafff",
    "positive": "#ffaf5f",
    "nan": "bold reverse #ff87d7",
    "w0": "#5fafff",
    "w1": "#5fd7af",
    "w2": "#ffaf5f",
    "w3": "#d7afff",
    "code-keyword": "#87afd7",
    "code-string": "#afd787",
    "code-number": "#d7afaf",
    "code-comment": "#8a8a8a",
    "code-name": "#ffd7af",
}

_LIGHT = {
    "": "#262626",
    "dim": "#626262",
    "rule": "#a8a8a8",
    "strong": "bold #000000",
    "title": "#4e4e4e",
    "title-focus": "bold #000000",
    "accent": "#005f87",
    "key": "bold #005f87",
    "stopped": "bold #875f00",
    "running": "bold #005f00",
    "ended": "bold #4e4e4e",
    "error": "bold #af0000",
    "warning": "#875f00",
    "info": "#4e4e4e",
    "ok": "#005f00",
    "current": "bold #000000",
    "breakpoint": "#af0000",
    "negative": "#005faf",
    "positive": "#af5f00",
    "nan": "bold reverse #af005f",
    "w0": "#005faf",
    "w1": "#005f5f",
    "w2": "#af5f00",
    "w3": "#5f00af",
    "code-keyword": "#005f87",
    "code-string": "#005f00",
    "code-number": "#870000",
    "code-comment": "#6c6c6c",
    "code-name": "#5f00af",
}

_CONTRAST = _DARK | {
    "": "#ffffff",
    "dim": "#d0d0d0",
    "rule": "#b2b2b2",
    "strong": "bold #ffffff",
    "title": "bold #ffffff",
    "title-focus": "bold reverse #ffffff",
    "info": "#ffffff",
    "code-comment": "#d0d0d0",
}

_ANSI = {
    "strong": "bold",
    "title-focus": "bold reverse",
    "accent": "cyan",
    "key": "bold",
    "stopped": "bold yellow",
    "running": "bold green",
    "ended": "bold",
    "error": "bold red",
    "warning": "yellow",
    "current": "bold",
    "breakpoint": "red",
    "negative": "blue",
    "positive": "red",
    "nan": "reverse magenta",
    "w0": "blue",
    "w1": "cyan",
    "w2": "yellow",
    "w3": "magenta",
    "code-keyword": "blue",
    "code-string": "green",
    "ok": "green",
}

_NONE = {
    "strong": "bold",
    "title-focus": "bold reverse",
    "key": "bold",
    "stopped": "bold",
    "error": "bold",
    "current": "bold",
    "breakpoint": "bold",
    "nan": "reverse",
}

_HEAT_DARK = ("#5fd7ff", "#5fafff", "#0087d7", "#005f87", "#303030", "#875f00", "#d78700", "#ffaf5f", "#ffd7af")
_HEAT_LIGHT = ("#00005f", "#005faf", "#5fafff", "#afd7ff", "#ffffff", "#ffd7af", "#ffaf5f", "#d75f00", "#5f0000")
HEAT_STEPS = 9
"""Steps of the signed colour scale; the middle one is zero."""


@dataclass(frozen=True)
class Palette:
    """One set of colours. Terminal themes (`native`) leave the background to the terminal."""

    name: str
    roles: Mapping[str, str]
    background: str
    bars: Mapping[str, str]
    heat: tuple[str, ...] = ()
    """Nine colours from most negative to most positive; empty: signs are drawn with glyphs."""
    dark: bool = True
    native: bool = False
    _cache: dict[tuple[str, str], Style] = field(default_factory=dict, repr=False, compare=False)

    def style(self, role: str, bar: str = "") -> Style:
        """The style of a role on a bar, legible there."""
        found = self._cache.get((role, bar))
        if found is None:
            if len(self._cache) > 4000:
                self._cache.clear()
            found = self._cache[role, bar] = self._make(role, bar)
        return found

    def _make(self, role: str, bar: str) -> Style:
        if role.startswith("heat:"):
            return self._heat(role)
        if role.startswith("sgr:"):
            return self._ground(bar) + sgr_style(role[4:])
        own = Style.parse(self.roles.get(role, self.roles.get("", "")) or "none")
        ground = self._ground(bar)
        clashes = (
            not self.native
            and role != "rule"
            and own.color is not None
            and ground.bgcolor is not None
            and contrast(own.color, ground.bgcolor) < MIN_CONTRAST
        )
        flat = clashes or (self.native and bool(bar) and ground != self._ground(""))
        return ground + (own.without_color if flat else own)

    def _ground(self, bar: str) -> Style:
        plain = Style.parse(self.roles.get("", "") or "none") + Style(bgcolor=self.background)
        return plain + Style.parse(self.bars[bar]) if bar in self.bars else plain

    def _heat(self, role: str) -> Style:
        _, upper, lower = role.split(":")
        return Style(color=self._cell(upper), bgcolor=self._cell(lower))

    def _cell(self, step: str) -> str:
        if step == "n":
            return "#d75faf"
        return self.heat[int(step)] if step else self.background

    @cached_property
    def blank(self) -> Style:
        """Plain background."""
        return self.style("")


def contrast(one: Color, other: Color) -> float:
    """WCAG contrast ratio of two colours, 1 to 21."""
    first, second = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (first + 0.05) / (second + 0.05)


def _luminance(color: Color) -> float:
    channels = [value / 255 for value in color.get_truecolor()]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def sgr_style(codes: str) -> Style:
    """The style of an SGR sequence's numbers (`1;38;5;9`), as the script's own output uses them."""
    numbers = [int(code) if code.isdigit() else 0 for code in codes.split(";")]
    style = Style.null()
    while numbers:
        code = numbers.pop(0)
        if code in (38, 48) and numbers:
            style += _extended(code, numbers)
        elif code in SGR_STYLE_MAP:
            style += Style.parse(SGR_STYLE_MAP[code])
    return style


def _extended(code: int, numbers: list[int]) -> Style:
    kind = numbers.pop(0)
    try:
        if kind == 5 and numbers:
            color = Color.from_ansi(min(numbers.pop(0), 255))
        elif kind == 2 and len(numbers) >= 3:
            color = Color.from_rgb(*(min(numbers.pop(0), 255) for _ in range(3)))
        else:
            return Style.null()
    except ColorParseError:
        return Style.null()
    return Style(color=color) if code == 38 else Style(bgcolor=color)


DARK = Palette(
    "dark",
    _DARK,
    "#1c1c1c",
    {
        "select": "#ffffff on #005f87",
        "select-idle": "on #303030",
        "current": "#ffd75f on #3a3a3a",
        "chrome": "on #262626",
    },
    _HEAT_DARK,
)
LIGHT = Palette(
    "light",
    _LIGHT,
    "#ffffff",
    {
        "select": "#000000 on #afd7ff",
        "select-idle": "on #eeeeee",
        "current": "#000000 on #ffd75f",
        "chrome": "on #eeeeee",
    },
    _HEAT_LIGHT,
    dark=False,
)
CONTRAST = Palette(
    "contrast",
    _CONTRAST,
    "#000000",
    {
        "select": "bold #000000 on #ffffff",
        "select-idle": "on #303030",
        "current": "bold #000000 on #ffd75f",
        "chrome": "on #000000",
    },
    _HEAT_DARK,
)
ANSI = Palette(
    "ansi",
    _ANSI,
    "default",
    {"select": "reverse", "select-idle": "underline", "current": "reverse", "chrome": ""},
    native=True,
)
NONE = Palette(
    "none",
    _NONE,
    "default",
    {"select": "reverse", "select-idle": "underline", "current": "reverse", "chrome": ""},
    native=True,
)

PALETTES = {palette.name: palette for palette in (DARK, LIGHT, CONTRAST, ANSI, NONE)}
"""By the name that `--theme` and the settings file use."""


_OWN_GROUND = ("heat:", "sgr:", "nan", "title-focus")
"""Roles that may bring a background of their own, so that even their spaces show."""


def spans_of(row: Line) -> list[tuple[str, str]]:
    """The row's spans with neighbours of one look merged, spaces into whatever is before them: each styled run costs 25 bytes."""
    merged: list[tuple[str, str]] = []
    for text, role in row.spans:
        if merged and (merged[-1][1] == role or (_is_blank(text, role) and not merged[-1][1].startswith(_OWN_GROUND))):
            merged[-1] = (merged[-1][0] + text, merged[-1][1])
        elif merged and _is_blank(*merged[-1]) and not role.startswith(_OWN_GROUND):
            merged[-1] = (merged[-1][0] + text, role)
        elif text:
            merged.append((text, role))
    return merged


def _is_blank(text: str, role: str) -> bool:
    return text.isspace() and not role.startswith(_OWN_GROUND)
