"""The part of a command line that names the person's program: SCRIPT, -m MODULE, --example NAME or -- COMMAND, and all that follows is its own."""

from __future__ import annotations

from typing import Any

import click

from gradtui.errors import UsageError
from gradtui.host.launch import Launch, of_command, of_module, of_script

_COMMAND = "gradtui.command"


class ProgramCommand(click.Command):
    """A command whose arguments end in a program: options after the program's name are the program's, `--help` included."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        args = list(args)
        takes_value = {
            name: not (isinstance(option, click.Option) and option.is_flag)
            for option in self.get_params(ctx)
            for name in option.opts
            if isinstance(option, click.Option)
        }
        index = 0
        while index < len(args):
            argument = args[index]
            if argument == "--":
                ctx.meta[_COMMAND] = True
                break
            named, attached = _names_program(argument)
            if named:
                index += 1 if attached else 2
            elif argument.startswith("-") and argument != "-":
                index += 2 if takes_value.get(argument, False) else 1
                continue
            if index <= len(args):
                args.insert(index, "--")
            break
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return ["[OPTIONS]", "SCRIPT | -m MODULE | --example NAME | -- COMMAND", "[ARGS]..."]


def _names_program(option: str) -> tuple[bool, bool]:
    """(this option names the program, its value is attached): -m X, -mX, -qm X, --example X, --example=X."""
    if option.startswith("--"):
        name, equals, _ = option.partition("=")
        return name == "--example", bool(equals)
    if not option.startswith("-"):
        return False, False
    _, module, value = option.partition("m")
    return bool(module), bool(value)


def program_options(function: Any) -> Any:
    """Options and arguments that name the program."""
    function = click.argument("program", nargs=-1, type=click.UNPROCESSED)(function)
    function = click.option(
        "--python", metavar="PATH", help="Interpreter that runs SCRIPT (default: the active environment's)."
    )(function)
    function = click.option("--example", metavar="NAME", help="Run a bundled example (`gradtui examples` lists them).")(
        function
    )
    return click.option("-m", "module", metavar="MODULE", help="Run a module, as python -m does.")(function)


def launch_of(
    ctx: click.Context, program: tuple[str, ...], module: str | None, example: str | None, python: str | None
) -> Launch:
    """What to start. Raises UsageError when nothing, or nothing that exists, is named."""
    if example is not None:
        from gradtui.examples import example as find

        return of_script(str(find(example).path), program, python)
    if module is not None:
        return of_module(module, program, python)
    if not program:
        raise UsageError("which program? Give a SCRIPT, -m MODULE, --example NAME, or -- COMMAND")
    if ctx.meta.get(_COMMAND):
        return of_command(program)
    return of_script(program[0], program[1:], python)
