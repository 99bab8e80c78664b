"""`gradtui open`: look back at a run that has ended."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from gradtui.commands.screen import screen_options, screen_settings
from gradtui.errors import TimelineError, UsageError
from gradtui.host.runs import is_live, saved_runs


@click.command("open")
@click.argument("run", required=False)
@screen_options
def command(run: str | None, **options: object) -> int:
    """Look back at RUN, a name that `gradtui runs` lists or the folder of a run (the newest ended one unless named)."""
    path = _find(run)
    from gradtui.timeline import TimelineReader

    try:
        TimelineReader(path / "timeline.db").close()
    except TimelineError as error:
        raise UsageError(str(error)) from error
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("open needs a terminal")
    from gradtui.tui import open_screen

    return open_screen(path, settings=screen_settings(recording=True, **options))


def _find(run: str | None) -> Path:
    ended = [path for path in saved_runs() if not is_live(path)]
    if run is None:
        if not ended:
            raise UsageError("no run on disk has ended")
        return ended[0]
    for path in saved_runs():
        if path.name == run:
            return path
    folder = Path(run)
    if not (folder / "timeline.db").is_file():
        raise UsageError(f"{run}: no such run; `gradtui runs` lists them")
    return folder
