"""`gradtui doctor`: what this terminal and this installation can do."""

from __future__ import annotations

import click


@click.command("doctor")
def command() -> None:
    """What this terminal can do: colours, size, multiplexer, round trip, clipboard; and the versions in use."""
    from gradtui.tui.doctor import report

    found = report()
    width = max(len(name) for name, _ in found)
    for name, value in found:
        click.echo(f"{name:{width}}  {value}")
