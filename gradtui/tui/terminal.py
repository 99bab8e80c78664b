"""What Textual leaves undone at the end: TERM, HUP and QUIT restore the terminal, and a terminal that is gone ends the app."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import sys
import termios
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.app import App

SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
LOOK_EVERY = 2.0
"""Seconds between looks at the terminal: with HUP ignored, a lost terminal would cost a whole core."""


class TerminalWatch:
    """Ends the app in good order on a signal, or when its terminal vanishes."""

    def __init__(self, app: App[int]) -> None:
        self._app = app

    def start(self) -> None:
        """Install; call once the app runs."""
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            try:
                loop.add_signal_handler(number, self._leave, 128 + number)
            except (RuntimeError, ValueError):
                return  # not in the main thread: a test
        if sys.__stdin__ is not None and sys.__stdin__.isatty():
            self._app.set_interval(LOOK_EVERY, self._look)

    def _leave(self, code: int) -> None:
        if not terminal_lives():
            os._exit(code)  # nothing is left to restore, and Textual's writer would wait for ever for a dead terminal
        self._app.exit(return_code=code)

    def _look(self) -> None:
        if not terminal_lives():
            self._leave(128 + signal.SIGHUP)


def terminal_lives() -> bool:
    """Standard input is not a terminal that has gone away."""
    if sys.__stdin__ is None:
        return True
    try:
        if sys.__stdin__.isatty():
            termios.tcgetattr(sys.__stdin__.fileno())
        else:
            return not _was_terminal(sys.__stdin__.fileno())
    except (termios.error, OSError, ValueError):
        return False
    return True


def _was_terminal(number: int) -> bool:
    """It is a terminal's device that no longer answers as one."""
    return stat.S_ISCHR(os.fstat(number).st_mode) and os.major(os.fstat(number).st_rdev) in range(136, 144)
