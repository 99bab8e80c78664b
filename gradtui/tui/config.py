"""The person's own settings of the screen, from `$XDG_CONFIG_HOME/gradtui/config.toml`; a mistake in it is told and never stops a run.

theme = "light"            # auto, dark, light, contrast, ansi, none
ascii = false
mouse = true
link = "auto"              # auto, fast, slow

[keys]                     # by the ids that the help screen lists
"step.over" = "x"
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, get_args

from gradtui.tui.settings import ColorName, LinkName, ScreenSettings, ThemeName

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_CHOICES: dict[str, tuple[object, ...]] = {
    "theme": get_args(ThemeName),
    "color": get_args(ColorName),
    "link": get_args(LinkName),
    "ascii": (True, False),
    "mouse": (True, False),
}


def config_file(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the settings are."""
    return Path(environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "gradtui" / "config.toml"


def with_config(settings: ScreenSettings, file: Path, ids: frozenset[str]) -> tuple[ScreenSettings, list[str]]:
    """The settings with the file's where the command line said nothing, and what is wrong with the file."""
    try:
        table = tomllib.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return settings, []
    except (OSError, ValueError) as error:
        return settings, [f"{file}: {error}"]
    defaults = {field.name: field.default for field in fields(ScreenSettings)}
    values: dict[str, Any] = {}
    wrong = [f"{file.name}: no setting {name!r}" for name in table if name not in _CHOICES and name != "keys"]
    for name, choices in _CHOICES.items():
        if name in table and table[name] not in choices:
            wrong.append(f"{file.name}: {name} is one of {', '.join(map(str, choices))}")
        elif name in table and getattr(settings, name) == defaults[name]:
            values[name] = table[name]
    keys, unknown = _keys(table.get("keys", {}), ids)
    wrong += [f"{file.name}: no key {name!r}" for name in unknown]
    return replace(settings, **values, keymap={**keys, **settings.keymap}), wrong


def _keys(table: object, ids: frozenset[str]) -> tuple[dict[str, str], list[str]]:
    found = {str(id): str(key) for id, key in table.items()} if isinstance(table, dict) else {}
    return {id: key for id, key in found.items() if id in ids}, sorted(set(found) - ids)


def seen_file(environ: Mapping[str, str] = os.environ) -> Path:
    """The mark that the first-run card has been shown."""
    return Path(environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "gradtui" / "seen"


def first_time(environ: Mapping[str, str] = os.environ) -> bool:
    """The card has not been shown on this machine; from now on it has. Never in CI."""
    if environ.get("CI"):
        return False
    mark = seen_file(environ)
    if mark.exists():
        return False
    try:
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
    except OSError:
        return False  # it would come up each time
    return True
