"""The screen on a real PTY: what it leaves behind, what it exits with, what it costs."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.tui.terminal import Terminal, terminal

PLAY = ["-m", "tests.tui.play"]
RESTORED = (b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?1000l", b"\x1b[?2004l")
"""Main screen, cursor shown, mouse off, bracketed paste off."""


def assert_restored(term: Terminal, flags: list[object]) -> None:
    """Every mode is back, and the line settings are what they were."""
    for sequence in RESTORED:
        on = sequence.replace(b"l", b"h") if sequence.endswith(b"l") else sequence.replace(b"h", b"l")
        assert term.raw.rfind(sequence) > term.raw.rfind(on), sequence
    assert term.flags() == flags


def shown(term: Terminal, text: str) -> None:
    term.wait(lambda: text in term.text)


def test_leaving_restores_the_terminal(tmp_path: Path):
    with terminal([*PLAY, str(tmp_path / "run"), "3"]) as term:
        flags = term.flags()
        shown(term, "STOPPED before step #1")
        term.type("q")
        shown(term, "has not ended")
        term.type("k")
        term.wait(term.ended)
        assert term.status == 128 + signal.SIGTERM
        assert_restored(term, flags)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_restores_the_terminal(number: signal.Signals, tmp_path: Path):
    with terminal([*PLAY, str(tmp_path / "run"), "3"]) as term:
        flags = term.flags()
        shown(term, "STOPPED before step #1")
        os.kill(term.pid, number)
        term.wait(term.ended)
        assert term.status == 128 + number
        assert_restored(term, flags)


def test_a_crash_restores_the_terminal_and_says_what_failed(tmp_path: Path):
    with terminal([*PLAY, str(tmp_path / "run"), "3", "crash"]) as term:
        flags = term.flags()
        shown(term, "STOPPED before step #1")
        term.type("6")
        term.wait(term.ended)
        assert term.status == 1
        assert_restored(term, flags)
        assert b"made to fail" in term.raw


def test_a_lost_terminal_ends_the_screen(tmp_path: Path):
    with terminal([*PLAY, str(tmp_path / "run"), "3"]) as term:
        shown(term, "STOPPED before step #1")
        os.close(term.master)
        os.close(term.slave)
        _, status = os.waitpid(term.pid, 0)
        term.status = os.waitstatus_to_exitcode(status)
        assert term.status == 128 + signal.SIGHUP
        term.master, term.slave = os.openpty()


def test_the_screen_follows_a_resize(tmp_path: Path):
    with terminal([*PLAY, str(tmp_path / "run"), "3"]) as term:
        shown(term, "STOPPED before step #1")
        term.resize(120, 40)
        term.wait(lambda: "5 Accumulation" in term.text and "8 Output" in term.text)
        term.resize(60, 16)
        term.wait(lambda: "5 Accumulation" not in term.text and "3 Parameters" in term.text)
        term.resize(38, 8)
        shown(term, "enlarge the terminal")


def test_a_slow_link_shows_a_key_before_older_pictures(tmp_path: Path):
    with terminal([*PLAY, str(tmp_path / "run"), "3"], rate=12_000) as term:
        shown(term, "STOPPED before step #1")
        term.type("5")
        shown(term, "running sum")


def test_the_script_can_be_lent_the_terminal(tmp_path: Path):
    with terminal([*PLAY, str(tmp_path / "run"), "3"]) as term:
        shown(term, "STOPPED before step #1")
        term.type("!")
        shown(term, "the script's terminal")
        term.type("\x1d")
        shown(term, "STOPPED before step #1")
        term.type("n")
        shown(term, "before zero_grad #2")


def test_an_idle_screen_writes_nothing(tmp_path: Path):
    with terminal([*PLAY, str(tmp_path / "run"), "3"]) as term:
        shown(term, "STOPPED before step #1")
        while term.read(0.5):
            pass
        assert term.read(2.5) == 0


def test_a_step_costs_less_than_three_kilobytes(tmp_path: Path):
    with terminal([*PLAY, str(tmp_path / "run"), "3"]) as term:
        shown(term, "STOPPED before step #1")
        while term.read(0.4):
            pass
        before = len(term.raw)
        term.type("n")
        shown(term, "before zero_grad #2")
        while term.read(0.4):
            pass
        assert len(term.raw) - before < 3_000
