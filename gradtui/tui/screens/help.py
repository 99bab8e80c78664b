"""The help card: the focused pane's keys first, then all others, from the one table of keys."""

from __future__ import annotations

from collections.abc import Callable

from gradtui.tui import flags, keymap
from gradtui.tui.glyphs import UNICODE, Glyphs
from gradtui.tui.line import Line, fit, line, wrap


def help_rows(
    scope: str, title: str, remapped: dict[str, str], glyphs: Glyphs = UNICODE
) -> Callable[[int], list[Line]]:
    """Rows of the card for a pane."""

    def rows(width: int) -> list[Line]:
        found: list[Line] = []
        own = [key for key in keymap.KEYS if key.scope == scope]
        if own:
            found += _group(title, own, width, remapped)
        groups: dict[str, list[keymap.Key]] = {}
        for key in keymap.KEYS:
            if key.scope in ("app", "list"):
                groups.setdefault(key.group, []).append(key)
        for name, keys in groups.items():
            found += _group(name, keys, width, remapped)
        return [*found, *_legend(width, glyphs)]

    return rows


def _group(title: str, keys: list[keymap.Key], width: int, remapped: dict[str, str]) -> list[Line]:
    rows = [line(), line((title, "title-focus"))]
    for key in keys:
        for index, text in enumerate(wrap(key.help, width - 14)):
            name = _all_names(key, remapped) if not index else ""
            rows.append(line((fit(name, 13) + " ", "key"), (text, "")))
    return rows if title != "Run" else rows[0:]


def _all_names(key: keymap.Key, remapped: dict[str, str]) -> str:
    if key.id in remapped or key.shown:
        return keymap.shown(key, remapped)
    names = [keymap.NAMES.get(name, name) for name in key.keys.split(",")]
    return " ".join(names[:2])


def _legend(width: int, glyphs: Glyphs) -> list[Line]:
    rows = [line(), line(("Flags beside a parameter", "title-focus"))]
    rows += flags.explained(flags.FLAGS, width)
    rows += [line((fit(mark, 3), "key"), (text, "")) for mark, text in flags.marks(glyphs).items()]
    rows += [line(), line(("Mouse", "title-focus"))]
    rows += [
        line((text, ""))
        for text in wrap("Hold shift (option on macOS) to select text with the mouse as in any other program.", width)
    ]
    return rows
