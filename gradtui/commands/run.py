"""`gradtui run`: step through a training program in the terminal."""

from __future__ import annotations

import shutil
import sys
from typing import Any

import click

from gradtui.commands.program import ProgramCommand, launch_of, program_options
from gradtui.commands.screen import screen_options, screen_settings
from gradtui.commands.settings import table
from gradtui.errors import UsageError


@click.command("run", cls=ProgramCommand)
@program_options
@click.option(
    "--watch",
    type=click.Choice(["params", "ops"]),
    default="params",
    help="ops: watch every operation, so that the first NaN or Inf is named by its operation and line.",
)
@screen_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    program: tuple[str, ...],
    module: str | None,
    example: str | None,
    python: str | None,
    watch: str,
    **options: object,
) -> int:
    """Step through a training program in the terminal.

    The program runs unmodified, in its own interpreter, and stops before each backward, optimizer.step and zero_grad.
    Everything after its name belongs to it. gradtui ends with the program's own exit code.

    \b
      gradtui run train.py --epochs 3
      gradtui run -m pkg.train --lr 0.1
      gradtui run -- torchrun --nproc-per-node 2 train.py
      gradtui run --example gan
    """
    launch = launch_of(ctx, program, module, example, python)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("run needs a terminal; without one use: gradtui check …")
    from gradtui.host.runs import new_run, start_host

    found, _ = table()
    settings: dict[str, Any] = {key: found[key] for key in ("select", "ignore", "thresholds") if key in found}
    directory = new_run()
    columns, rows = shutil.get_terminal_size()
    start_host(directory, launch, settings, (rows, columns), watch)
    from gradtui.tui import open_screen

    return open_screen(directory, settings=screen_settings(script=launch.script, **options))
