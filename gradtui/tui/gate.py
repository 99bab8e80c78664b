"""When to paint: at most so many times a second, and not before the terminal has shown the last picture.

Textual never drops a frame, so a slow link fills with old ones. After a paint we ask the terminal where its cursor is
(CSI 6n); the answer can only come once everything before it was shown. This module alone touches Textual's driver.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.app import App

LOCAL_FPS = 20.0
REMOTE_FPS = 15.0
SLOW_FPS = 4.0
SLOW_AT = 0.25
"""Round trip in seconds from which a link is slow."""
GIVE_UP = 2.0
"""Seconds without an answer after which the terminal counts as one that never answers."""


class PaintGate:
    """Call `ask` whenever something has changed; `paint` is called when it is worth it."""

    def __init__(self, app: App[int], paint: Callable[[], None], fps: float = LOCAL_FPS) -> None:
        self._app = app
        self._paint = paint
        self._fps = fps
        self._wanted = False
        self._timer = False
        self._last = 0.0
        self._asked = 0.0
        self.answers = True
        """The terminal answers; None is known before the first ping."""
        self.round_trip = 0.0
        """Seconds, smoothed; 0 before the first answer."""

    @property
    def slow(self) -> bool:
        """The link is one to save bytes on."""
        return not self.answers or self.round_trip >= SLOW_AT

    @property
    def interval(self) -> float:
        """Seconds between paints."""
        if self.slow:
            return 1 / min(SLOW_FPS, self._fps)
        return 1 / (min(REMOTE_FPS, self._fps) if self.round_trip > 0.02 else self._fps)

    @property
    def pending(self) -> bool:
        """A paint has been asked for and not made."""
        return self._wanted or self._timer

    def ask(self) -> None:
        """Something has changed."""
        self._wanted = True
        if not self._timer:
            self._wait(max(self._last + self.interval - perf_counter(), 0.0))

    def _wait(self, seconds: float) -> None:
        self._timer = True
        self._app.set_timer(max(seconds, 0.001), self._due)

    def _due(self) -> None:
        self._timer = False
        if not self._wanted or not self._app.screen_stack:
            return
        now = perf_counter()
        if self._asked and now - self._asked < GIVE_UP:
            return  # `answered` comes back here
        if self._asked:
            self.answers, self._asked = False, 0.0
        self._wanted = False
        self._last = now
        self._paint()
        self._app.call_after_refresh(self._ping)

    def _ping(self) -> None:
        driver = self._app._driver
        if not self.answers or self._asked or driver is None or driver.is_headless or driver.is_web:
            return
        self._asked = perf_counter()
        driver.write("\x1b[6n")
        self._app.set_timer(GIVE_UP + 0.1, self._due)

    def answered(self) -> None:
        """The terminal has said where its cursor is."""
        if self._asked:
            took = perf_counter() - self._asked
            self.round_trip = took if not self.round_trip else 0.7 * self.round_trip + 0.3 * took
            self._asked = 0.0
        if self._wanted and not self._timer:
            self._wait(max(self._last + self.interval - perf_counter(), 0.0))
