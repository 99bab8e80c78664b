"""Text and figures in cells: fitting, eliding, trends, bars, pictures of numbers."""

from __future__ import annotations

from math import inf, nan

import pytest

from gradtui.tui import figures, heat
from gradtui.tui.glyphs import ASCII, UNICODE, Glyphs, to_ascii
from gradtui.tui.line import clip, elide, fit, fit_right, initials, justify, printable, width_of, wrap


@pytest.mark.parametrize("text", ["", "abc", "日本語テキスト", "a\tb\x1b[31mc", "é" * 40])
@pytest.mark.parametrize("width", [0, 1, 2, 5, 30])
def test_fitting_gives_exactly_the_width(text: str, width: int):
    assert width_of(fit(text, width)) == width
    assert width_of(fit_right(text, width)) == width
    assert width_of(clip(text, width)) <= width
    assert width_of(elide(text, width)) <= width


def test_control_characters_never_reach_the_terminal():
    assert "\x1b" not in printable("a\x1b[2Jb")
    assert "\n" not in printable("a\nb")


def test_names_keep_what_tells_them_apart():
    name = "encoder.layers.0.self_attn.in_proj_weight"
    assert initials(name, 30) == "e.l.0.self_attn.in_proj_weight"
    assert initials(name, 60) == name
    assert initials("weight", 4) == "wei…" or width_of(initials("weight", 4)) == 4


def test_wrapping_keeps_every_word():
    text = "one two three four five six seven"
    assert " ".join(wrap(text, 9)) == text
    assert all(len(row) <= 9 for row in wrap(text, 9))
    assert "".join(wrap("x" * 25, 10)) == "x" * 25


def test_the_right_side_gives_way_first():
    row = justify([("left side", "")], [("right", ""), ("end", "")], 16)
    assert row.text == "left side  right"


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
def test_a_steady_trend_is_level_and_a_fault_shows(glyphs: Glyphs):
    assert len(set(figures.spark([2.0] * 6, 6, glyphs))) == 1
    rising = figures.spark([1e-3, 1e-2, 1e-1, 1.0], 4, glyphs)
    assert [glyphs.spark.index(c) for c in rising] == sorted(glyphs.spark.index(c) for c in rising)
    assert figures.spark([1.0, nan, inf], 3, glyphs)[1:] == "!!"


def test_bars_show_anything_above_zero_and_never_overflow():
    assert figures.bar(1e-9, 1.0, 10, UNICODE) == "▌"
    assert figures.bar(0.0, 1.0, 10, UNICODE) == ""
    assert len(figures.bar(5.0, 1.0, 10, UNICODE)) == 10


@pytest.mark.parametrize(
    ("value", "text"), [(0.0192, "1.92e-02"), (nan, "nan"), (inf, "inf"), (-inf, "-inf"), (0.0, "0.00e+00")]
)
def test_norms_fit_their_column(value: float, text: str):
    assert figures.norm(value) == text


@pytest.mark.parametrize("scale", heat.SCALES)
def test_the_heat_scale_is_signed_and_symmetric(scale: heat.Scale):
    shades = heat.Shades([[-2.0, -0.5, 0.0, 0.5, 2.0]], scale)
    steps = [int(shades.step(v)) for v in (-2.0, -0.5, 0.0, 0.5, 2.0)]
    assert steps[0] == 0
    assert steps[2] == 4
    assert steps[4] == 8
    assert [8 - step for step in steps] == steps[::-1]


def test_odd_cells_are_marked_whatever_the_palette():
    shades = heat.Shades([[nan, inf, 1.0]], "linear")
    assert shades.step(nan) == shades.step(inf) == "n"
    assert [shades.glyph(v, UNICODE)[0] for v in (nan, inf)] == ["?", "^"]


def test_glyphs_tell_the_sign_without_colour():
    shades = heat.Shades([[-1.0, 1.0]], "linear")
    assert shades.glyph(-1.0, ASCII)[0] != shades.glyph(1.0, ASCII)[0]
    assert not set(ASCII.positive.strip()) & set(ASCII.negative.strip())


def test_a_histogram_shows_every_bin_that_is_not_empty():
    rows = heat.histogram([0, 1, 1000], 3, UNICODE)
    assert rows[-1][0] == " "
    assert rows[-1][1] != " "
    assert rows[0][2] == "█"


def test_every_mark_has_an_ascii_form():
    for name in UNICODE.__slots__:
        assert to_ascii(getattr(UNICODE, name)).isascii()
        assert getattr(ASCII, name).isascii()
