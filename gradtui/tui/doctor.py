"""What this terminal can do, in words: colours, size, multiplexer, round trip, synchronised output, clipboard. Imports no Textual."""

from __future__ import annotations

import os
import re
import select
import shutil
import subprocess
import sys
import termios
import time
import tty
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version

from gradtui.tui.settings import ScreenSettings, theme_of, wants_ascii

PATIENCE = 2.0
"""Seconds that a terminal may take to answer."""


def report(environ: Mapping[str, str] = os.environ) -> list[tuple[str, str]]:
    """Names and findings, in the order to print them."""
    columns, rows = shutil.get_terminal_size()
    found = [
        ("TERM", environ.get("TERM", "not set")),
        ("COLORTERM", environ.get("COLORTERM", "not set (ssh does not forward it by itself)")),
        ("colours", _colours(environ)),
        ("characters", "ASCII: the locale is not UTF-8" if wants_ascii(ScreenSettings(), environ) else "UTF-8"),
        (
            "size",
            f"{columns}x{rows}" + ("" if columns >= 60 and rows >= 16 else "  (60x16 is the least that is of use)"),
        ),
        ("multiplexer", _multiplexer(environ)),
        *_asked(),
        ("clipboard", _clipboard(environ)),
        ("keys", "set TEXTUAL_DISABLE_KITTY_KEY=1 if keys go missing inside tmux"),
        ("textual", _version("textual")),
        ("torch", _version("torch") + " beside gradtui (the script uses its own interpreter's)"),
        ("over ssh", "ssh -C (Compression yes) makes the screen several times lighter"),
    ]
    return found


def _colours(environ: Mapping[str, str]) -> str:
    theme = theme_of(ScreenSettings(), environ)
    if theme == "none":
        return "none (NO_COLOR)"
    if theme == "ansi":
        return "16 (set TERM=xterm-256color or screen-256color for more)"
    true = environ.get("COLORTERM", "").lower() in ("truecolor", "24bit")
    return f"{'16 million' if true else '256'}, {theme} theme"


def _multiplexer(environ: Mapping[str, str]) -> str:
    if "TMUX" in environ:
        return (
            _said("tmux", "-V")
            + "; escape-time "
            + (_said("tmux", "show", "-gv", "escape-time") or "?")
            + " ms (10 is good)"
        )
    return "GNU screen" if "STY" in environ else "none"


def _clipboard(environ: Mapping[str, str]) -> str:
    if "TMUX" in environ:
        return "tmux load-buffer -w (works with tmux's default settings)"
    return "OSC 52, wrapped for GNU screen" if "STY" in environ else "OSC 52 (the terminal must allow it)"


def _said(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=2, check=False).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _asked() -> Iterator[tuple[str, str]]:
    """What only the terminal itself can tell."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        yield "round trip", "not measured: no terminal"
        return
    answer, took = ask("\x1b[6n", rb"\x1b\[\d+;\d+R")
    yield "round trip", f"{took * 1e3:.0f} ms" if answer else "no answer: screens are painted 4 times a second"
    answer, _ = ask("\x1b[?2026$p\x1b[6n", rb"\x1b\[\d+;\d+R")
    yield (
        "flicker-free",
        "yes (synchronised output)" if re.search(rb"\?2026;[12]\$y", answer) else "no synchronised output",
    )


def ask(query: str, end: bytes) -> tuple[bytes, float]:
    """What the terminal answers up to a match of `end`, and after how many seconds; empty when it does not."""
    number = sys.stdin.fileno()
    saved = termios.tcgetattr(number)
    answer, started = b"", time.monotonic()
    try:
        tty.setcbreak(number)
        sys.stdout.write(query)
        sys.stdout.flush()
        while not re.search(end, answer) and time.monotonic() - started < PATIENCE:
            ready, _, _ = select.select([number], [], [], 0.1)
            answer += os.read(number, 1024) if ready else b""
    finally:
        termios.tcsetattr(number, termios.TCSAFLUSH, saved)
    return (answer, time.monotonic() - started) if re.search(end, answer) else (b"", 0.0)
