"""How a person wants the screen, and the environment switches that Textual reads when it is imported. Imports no Textual."""

from __future__ import annotations

import locale
import os
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Literal

ThemeName = Literal["auto", "dark", "light", "contrast", "ansi", "none"]
ColorName = Literal["auto", "true", "256", "16", "none"]
LinkName = Literal["auto", "fast", "slow"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenSettings:
    """Everything that the command line and the settings file may say about the screen."""

    theme: ThemeName = "auto"
    ascii: bool = False
    color: ColorName = "auto"
    mouse: bool = True
    link: LinkName = "auto"
    readonly: bool = False
    """Look, do not steer."""
    script: str = ""
    """Path of the script, to show before its first gradient call."""
    recording: bool = False
    """The run directory is a recording: there is no host to talk to."""
    tour: bool = False
    """Show the card of the first run."""
    wrong: tuple[str, ...] = ()
    """What is wrong with the settings file, for the ticker."""
    keymap: Mapping[str, str] = field(default_factory=dict)
    """Keys by binding id, as Textual spells them."""


def theme_of(settings: ScreenSettings, environ: Mapping[str, str] = os.environ) -> str:
    """The palette's name for these settings in this environment."""
    if settings.color == "none" or environ.get("NO_COLOR"):
        return "none"
    if settings.theme != "auto":
        return settings.theme
    if settings.color == "16" or (settings.color == "auto" and _sixteen(environ)):
        return "ansi"
    ground = environ.get("COLORFGBG", "").rpartition(";")[2]
    return "light" if ground in ("7", "15") else "dark"


def _sixteen(environ: Mapping[str, str]) -> bool:
    """The terminal has 16 colours (GNU screen's TERM without more, the Linux console)."""
    term = environ.get("TERM", "")
    if environ.get("COLORTERM", "").lower() in ("truecolor", "24bit") or "256" in term:
        return False
    return term in ("screen", "linux", "vt100", "vt220", "ansi", "xterm-16color") or term.endswith("-16color")


def wants_ascii(settings: ScreenSettings, environ: Mapping[str, str] = os.environ) -> bool:
    """ASCII was asked for, or the locale cannot carry anything else."""
    if settings.ascii:
        return True
    encoding = locale.getpreferredencoding(False) if environ is os.environ else environ.get("LANG", "")
    return "utf" not in encoding.lower()


def prepare_environment(settings: ScreenSettings, environ: MutableMapping[str, str] = os.environ) -> None:
    """Set what Textual reads at import: no animations, no smooth scrolling, a short wait after Esc outside tmux."""
    for name in ("COLUMNS", "LINES"):
        environ.pop(name, None)  # exported by some shells; with them Textual never sees a resize
    environ["TEXTUAL_ANIMATIONS"] = "none"
    environ["TEXTUAL_SMOOTH_SCROLL"] = "0"
    if "TMUX" not in environ:
        environ.setdefault("ESCDELAY", "25")
    systems = {"true": "truecolor", "256": "256", "16": "standard"}
    if settings.color in systems:
        environ["TEXTUAL_COLOR_SYSTEM"] = systems[settings.color]
