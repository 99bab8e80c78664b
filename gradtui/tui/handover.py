"""The real terminal, lent to the script for a while: its output as it comes, the person's keys straight to it, ctrl+] to come back."""

from __future__ import annotations

import os
import select
import sys
import termios
import tty
from collections.abc import Callable
from typing import TextIO

RETURN = b"\x1d"
"""ctrl+]: what telnet and others use to get out."""
LOOK_EVERY = 0.04
"""Seconds between looks for output; the host commits as often."""


def lend(output: Callable[[], bytes], type_in: Callable[[bytes], None], before: str = "") -> None:
    """Copy both ways until the person types ctrl+]. Call while the app is suspended; never raises."""
    reading, writing = sys.__stdin__, sys.__stdout__
    if reading is None or writing is None:
        return
    saved = termios.tcgetattr(reading.fileno())
    try:
        tty.setraw(reading.fileno())
        _say(writing, "\x1b[2J\x1b[H-- the script's terminal; ctrl+] returns to gradtui --\r\n" + before)
        while _once(reading.fileno(), writing, output, type_in):
            pass
    except OSError:
        pass  # the terminal is gone: the app notices by itself
    finally:
        termios.tcsetattr(reading.fileno(), termios.TCSANOW, saved)


def _once(keys: int, writing: TextIO, output: Callable[[], bytes], type_in: Callable[[bytes], None]) -> bool:
    """One look at both sides; False when the person comes back."""
    if data := output():
        writing.buffer.write(data)
        writing.flush()
    ready, _, _ = select.select([keys], [], [], LOOK_EVERY)
    if not ready:
        return True
    typed = os.read(keys, 4096)
    mine, found, _ = typed.partition(RETURN)
    if mine:
        type_in(mine)
    return not found and bool(typed)


def _say(writing: TextIO, text: str) -> None:
    writing.write(text)
    writing.flush()
