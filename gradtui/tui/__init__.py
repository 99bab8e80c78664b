"""The screen: a Textual client of one run. The only room that imports textual, and only once a screen is opened."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gradtui.tui.settings import ScreenSettings, prepare_environment

__all__ = ["ScreenSettings", "open_screen"]


def open_screen(run_dir: Path, *, settings: ScreenSettings | None = None) -> int:
    """Show the run until the person leaves, and return the exit code to end with: the script's own, or 128 + its signal.

    A crash of the screen prints its traceback and gives 1; a signal that ended the screen gives 128 + that signal.
    """
    from gradtui.tui.config import config_file, first_time, with_config

    prepare_environment(settings or ScreenSettings())
    from gradtui.tui.app import GradtuiApp
    from gradtui.tui.keymap import KEYS

    settings, wrong = with_config(settings or ScreenSettings(), config_file(), frozenset(key.id for key in KEYS))
    settings = replace(settings, wrong=tuple(wrong), tour=not settings.recording and first_time())

    app = GradtuiApp(run_dir, settings)
    app.run(mouse=settings.mouse)
    return app.return_code or app.exit_code
