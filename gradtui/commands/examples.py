"""`gradtui examples`: lists the bundled training programs."""

from __future__ import annotations

import click

from gradtui.examples import examples


@click.command("examples")
def command() -> None:
    """List the bundled training programs.

    Each is an ordinary script that runs without gradtui too.
    """
    listed = examples()
    width = max(len(each.name) for each in listed)
    for each in listed:
        click.echo(f"{each.name:{width}}  {each.title}")
    click.echo("\nStep through one:  gradtui run --example NAME", err=True)
