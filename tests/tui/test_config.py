"""The settings file: what it says is used, what is wrong in it is told, and the command line wins."""

from __future__ import annotations

from pathlib import Path

from gradtui.tui.config import first_time, with_config
from gradtui.tui.doctor import report
from gradtui.tui.settings import ScreenSettings
from tests.tui.conftest import Open, settled

IDS = frozenset({"step.over", "help"})


def test_the_file_fills_in_what_the_command_line_left_open(tmp_path: Path):
    file = tmp_path / "config.toml"
    file.write_text('theme = "light"\nlink = "slow"\n[keys]\n"step.over" = "x"\n')
    settings, wrong = with_config(ScreenSettings(link="fast"), file, IDS)
    assert (settings.theme, settings.link, settings.keymap, wrong) == ("light", "fast", {"step.over": "x"}, [])


def test_mistakes_are_told_and_the_rest_is_used(tmp_path: Path):
    file = tmp_path / "config.toml"
    file.write_text('theme = "mauve"\nfoo = 1\nascii = true\n[keys]\n"step.sideways" = "x"\n')
    settings, wrong = with_config(ScreenSettings(), file, IDS)
    assert settings.ascii
    assert settings.theme == "auto"
    assert [word in text for word, text in zip(("foo", "theme", "step.sideways"), wrong, strict=True)] == [True] * 3


def test_a_file_that_is_no_toml_is_told(tmp_path: Path):
    file = tmp_path / "config.toml"
    file.write_text("theme = [")
    assert with_config(ScreenSettings(), file, IDS)[1]
    assert with_config(ScreenSettings(), tmp_path / "none.toml", IDS) == (ScreenSettings(), [])


def test_the_first_run_card_comes_once_and_never_in_ci(tmp_path: Path):
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    assert not first_time(environ | {"CI": "1"})
    assert first_time(environ)
    assert not first_time(environ)


async def test_a_remapped_key_works_and_the_old_one_does_not(open_run: Open):
    settings = ScreenSettings(keymap={"step.over": "x"})
    async with open_run(beats=1, settings=settings) as (app, pilot, _run):
        await pilot.press("n")
        await settled(app, pilot)
        assert app.session.where[0].ordinal == 1
        await pilot.press("x")
        await settled(app, pilot, lambda: app.session.where[0].ordinal == 2)
        assert " x Next" in app.board.footer._painted[0].text


def test_the_doctor_knows_the_terminal():
    found = dict(report({"TERM": "screen", "STY": "1", "LANG": "C"}))
    assert found["colours"].startswith("16")
    assert found["characters"].startswith("ASCII")
    assert "screen" in found["clipboard"]
