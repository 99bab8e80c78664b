"""`gradtui explain`: what a rule means, and how to mend what it finds."""

from __future__ import annotations

import sys
from difflib import get_close_matches

import click

from gradtui.commands.check import style
from gradtui.errors import UsageError


@click.command("explain")
@click.argument("rule", required=False)
def command(rule: str | None) -> None:
    """What a RULE means, why it matters, and what to do. Without RULE: all of them, a line each."""
    from gradtui.report.explain import explain, overview
    from gradtui.rules import BY_SLUG

    if rule is None:
        click.echo(overview(style(sys.stdout)), nl=False)
        return
    if rule not in BY_SLUG:
        near = get_close_matches(rule, BY_SLUG, n=3, cutoff=0.4)
        hint = f"; did you mean {' or '.join(near)}?" if near else "; `gradtui explain` lists them"
        raise UsageError(f"no rule named {rule!r}{hint}")
    click.echo(explain(rule, style(sys.stdout)), nl=False)
