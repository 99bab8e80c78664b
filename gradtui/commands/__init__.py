"""The command line: one file a command, listed here in the order that `--help` shows. Imports neither torch nor textual."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

import click

from gradtui import __version__
from gradtui.errors import ExitCode, GradtuiError

_COMMANDS = {
    "run": "step through a training program in the terminal",
    "check": "run it to the end and report what is wrong; for CI",
    "explain": "what a rule means, and how to mend what it finds",
    "examples": "bundled training programs to try it on",
    "runs": "the runs on disk",
    "attach": "return to a live run",
    "open": "look back at a run that has ended",
    "doctor": "what this terminal can do",
}


class _Commands(click.Group):
    """Loads a command's file when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        command = importlib.import_module(f"gradtui.commands.{name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        name = args[0] if args else ""
        if name not in _COMMANDS and name.endswith(".py"):
            raise click.UsageError(f"no command {name!r}; to step through a script: gradtui run {name}", ctx)
        return super().resolve_command(ctx, args)


@click.command(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with:  gradtui run --example char_gru",
)
@click.version_option(__version__, message="gradtui %(version)s")
def gradtui() -> None:
    """A debugger for gradients in PyTorch.

    Starts your unmodified training program and stops before each backward, optimizer.step and zero_grad. Shows every
    parameter's gradient, which backward calls it is made of, and what is wrong.
    """


def main() -> None:
    """The console script."""
    try:
        code = gradtui(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(ExitCode.USAGE)
    except click.exceptions.Exit as exit_:
        sys.exit(exit_.exit_code)
    except click.Abort:
        sys.exit(130)
    except GradtuiError as error:
        click.echo(f"gradtui: {error}", err=True)
        sys.exit(ExitCode.USAGE)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nobody reads on: nor what Python would still flush
        sys.exit(ExitCode.USAGE)
    except OSError as error:
        if os.environ.get("GRADTUI_DEBUG"):
            raise
        click.echo(f"gradtui: {error}", err=True)
        sys.exit(ExitCode.USAGE)
    sys.exit(code if isinstance(code, int) else 0)
