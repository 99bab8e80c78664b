"""`gradtui examples`: lists the bundled training programs."""

from __future__ import annotations

import shutil
import textwrap

import click

from gradtui.examples import examples


@click.command("examples")
def command() -> None:
    """List the bundled training programs.

    Each is an ordinary script that runs without gradtui too.
    """
    listed = examples()
    width = max(len(each.name) for each in listed)
    columns = max(shutil.get_terminal_size((120, 24)).columns, 40)
    for each in listed:
        head = f"{each.name:{width}}  "
        click.echo(textwrap.fill(each.title, columns, initial_indent=head, subsequent_indent=" " * len(head)))
    click.echo("\nStep through one:  gradtui run --example NAME", err=True)
