"""The tables that the screen is made from: keys, colours, settings, clipboard routes."""

from __future__ import annotations

import base64
from collections import Counter
from pathlib import Path

import pytest

from gradtui.tui import clipboard, keymap
from gradtui.tui.app import GradtuiApp
from gradtui.tui.keymap import ANY, KEYS
from gradtui.tui.palette import MIN_CONTRAST, PALETTES, contrast
from gradtui.tui.screens.help import help_rows
from gradtui.tui.settings import ScreenSettings, theme_of, wants_ascii
from gradtui.tui.widgets.board import Board
from gradtui.tui.widgets.list_pane import ListPane

APP = [key for key in KEYS if key.scope == "app"]
AVOIDED = {"ctrl+a", "ctrl+b", "ctrl+s", "ctrl+i", "ctrl+m", "ctrl+j", "ctrl+left_square_bracket", "f12"}
"""Taken by multiplexers, by habit, or the same bytes as tab, enter and escape."""


def test_no_key_means_two_things_in_one_place():
    for scope in {key.scope for key in KEYS}:
        own = [name for key in KEYS if key.scope == scope for name in key.keys.split(",")]
        assert not [name for name, times in Counter(own).items() if times > 1], scope
        assert not set(own) & AVOIDED


def test_every_action_of_the_table_exists():
    panes = Board().panes
    for key in KEYS:
        name = "action_" + key.action.partition("(")[0]
        owner = GradtuiApp if key.scope == "app" else ListPane if key.scope == "list" else type(panes[key.scope])  # type: ignore[index]
        assert hasattr(owner, name), key.id


def test_ids_are_unique_and_help_shows_every_key():
    assert len({key.id for key in KEYS}) == len(KEYS)
    for pane in ("parameters", "gradient"):
        shown = "\n".join(row.text for row in help_rows(pane, pane, {})(76))
        for key in KEYS:
            if key.scope in ("app", "list", pane):
                assert key.help[:30] in shown, key.id


@pytest.mark.parametrize("state", ANY)
@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("past", [False, True])
def test_the_footer_fits_and_always_tells_the_way_out(state: keymap.State, width: int, past: bool):
    shown = keymap.footer(state, "parameters", past, width, {})
    assert sum(len(name) + len(label) + 3 for name, label in shown) <= width
    assert {"help", "quit"} <= {key.id for key in KEYS if (keymap.shown(key), key.label) in shown}


def test_remapped_keys_are_shown_as_they_are_now():
    shown = keymap.footer("stopped", "app", False, 80, {"step.over": "x"})
    assert ("x", "Next") in shown


@pytest.mark.parametrize("palette", [p for p in PALETTES.values() if not p.native], ids=lambda p: p.name)
def test_text_is_readable_on_every_ground(palette):
    for role in palette.roles:
        if role == "rule":
            continue
        for bar in ("", *palette.bars):
            style = palette.style(role, bar)
            ground, ink = (style.color, style.bgcolor) if style.reverse else (style.bgcolor, style.color)
            assert contrast(ink, ground) >= MIN_CONTRAST, (role, bar)


def test_without_colour_nothing_is_coloured():
    for role in PALETTES["none"].roles:
        style = PALETTES["none"].style(role)
        assert style.color is None or style.color.is_default


@pytest.mark.parametrize(
    ("environ", "settings", "theme"),
    [
        ({"TERM": "xterm-256color"}, ScreenSettings(), "dark"),
        ({"TERM": "screen"}, ScreenSettings(), "ansi"),
        ({"TERM": "screen-256color"}, ScreenSettings(), "dark"),
        ({"TERM": "xterm-256color", "COLORFGBG": "0;15"}, ScreenSettings(), "light"),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, ScreenSettings(theme="light"), "none"),
        ({"TERM": "xterm-256color"}, ScreenSettings(theme="contrast"), "contrast"),
        ({"TERM": "xterm-256color"}, ScreenSettings(color="16"), "ansi"),
    ],
)
def test_the_palette_suits_the_terminal(environ: dict[str, str], settings: ScreenSettings, theme: str):
    assert theme_of(settings, environ) == theme


def test_a_locale_without_utf8_gets_ascii():
    assert wants_ascii(ScreenSettings(), {"LANG": "C"})
    assert not wants_ascii(ScreenSettings(), {"LANG": "C.UTF-8"})


def test_copying_writes_a_file_and_osc_52(tmp_path: Path):
    sent: list[str] = []
    told = clipboard.copy("grad = 3.0", sent.append, {"XDG_RUNTIME_DIR": str(tmp_path)})
    assert base64.b64decode(sent[0].removeprefix("\x1b]52;c;").removesuffix("\x07")) == b"grad = 3.0"
    assert (tmp_path / "gradtui" / "clip.txt").read_text() == "grad = 3.0"
    assert "clip.txt" in told


def test_gnu_screen_gets_the_sequence_wrapped(tmp_path: Path):
    sent: list[str] = []
    clipboard.copy("x", sent.append, {"XDG_RUNTIME_DIR": str(tmp_path), "STY": "1.pts"})
    assert sent[0].startswith("\x1bP\x1b]52")
    assert sent[0].endswith("\x1b\\")
