"""`gradtui attach`: return to a run that goes on."""

from __future__ import annotations

import sys

import click

from gradtui.commands.screen import screen_options, screen_settings
from gradtui.errors import UsageError
from gradtui.host.runs import is_live, saved_runs


@click.command("attach")
@click.argument("run", required=False)
@click.option("--readonly", is_flag=True, help="Look, do not steer.")
@screen_options
def command(run: str | None, readonly: bool, **options: object) -> int:
    """Return to the live run RUN (need not be named while only one is live; `gradtui runs` lists them)."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("attach needs a terminal")
    live = [path for path in saved_runs() if is_live(path) and (run is None or path.name == run)]
    if not live and any(path.name == run for path in saved_runs()):
        raise UsageError(f"{run} has ended; look back at it with: gradtui open {run}")
    if not live:
        raise UsageError(f"no live run named {run!r}; `gradtui runs` lists them" if run else "no run is live")
    if run is None and len(live) > 1:
        raise UsageError(f"several runs are live: {', '.join(path.name for path in live)}; name one")
    from gradtui.tui import open_screen

    return open_screen(live[0], settings=screen_settings(readonly=readonly, **options))
