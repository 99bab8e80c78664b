"""Options of every command that opens a screen."""

from __future__ import annotations

from typing import Any

import click

from gradtui.tui.settings import ScreenSettings


def screen_options(function: Any) -> Any:
    """--theme, --color, --ascii, --no-mouse, --link."""
    for option in (
        click.option(
            "--link",
            type=click.Choice(["auto", "fast", "slow"]),
            default="auto",
            help="How much to paint; slow: glyphs, 2 a second.",
        ),
        click.option("--no-mouse", is_flag=True, help="Leave the mouse to the terminal."),
        click.option("--ascii", "ascii_only", is_flag=True, help="Draw with ASCII characters only."),
        click.option(
            "--color", type=click.Choice(["auto", "true", "256", "16", "none"]), default="auto", help="Colours to use."
        ),
        click.option(
            "--theme",
            type=click.Choice(["auto", "dark", "light", "contrast", "ansi", "none"]),
            default="auto",
            help="Looks.",
        ),
    ):
        function = option(function)
    return function


def screen_settings(
    *, theme: Any, color: Any, ascii_only: Any, no_mouse: Any, link: Any, **others: Any
) -> ScreenSettings:
    """Settings of the screen from these options."""
    return ScreenSettings(theme=theme, color=color, ascii=ascii_only, mouse=not no_mouse, link=link, **others)
