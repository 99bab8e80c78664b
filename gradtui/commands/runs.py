"""`gradtui runs`: the runs that are on disk, newest first."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import click

from gradtui.errors import TimelineError
from gradtui.host.runs import is_live, saved_runs


@click.command("runs")
def command() -> None:
    """List the runs on disk, newest first: name, state, events, command.

    `gradtui attach NAME` returns to a live one, `gradtui open NAME` looks back at one that has ended.
    """
    listed = saved_runs()
    if not listed:
        click.echo("no runs yet; start one with: gradtui run SCRIPT", err=True)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    for path in listed:
        click.echo(_cut(_described(path), width))


def _described(path: Path) -> str:
    from gradtui.timeline import TimelineReader

    try:
        reader = TimelineReader(path / "timeline.db")
        meta, events = reader.meta(), reader.last_seq()
        reader.close()
    except TimelineError as error:
        return f"{path.name:17}  unreadable ({error})"
    if is_live(path):
        state = "live"
    elif meta.get("signal"):
        state = f"signal {meta['signal']}"
    else:
        state = f"exit {meta['exit_code']}" if meta.get("exit_code") else "cut off"
    command = " ".join(json.loads(meta.get("command", "[]"))[1:])
    return f"{path.name:17}  {state:9}  {events:>8,} events  {command}"


def _cut(text: str, width: int) -> str:
    """In one row of a terminal: the end of the command tells runs apart, so its start gives way. 0 for any width."""
    head = text.find(" events  ") + len(" events  ")
    tail = width - head - 1
    return text if not width or len(text) <= width or tail < 8 else f"{text[:head]}…{text[-tail:]}"
