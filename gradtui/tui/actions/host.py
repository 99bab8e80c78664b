"""What the action mixins may use of the app: its parts by name, so that they can be checked without importing it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import App

if TYPE_CHECKING:
    from pathlib import Path

    from textual.geometry import Size

    from gradtui.tui.gate import PaintGate
    from gradtui.tui.glyphs import Glyphs
    from gradtui.tui.layout import PaneName, Wish
    from gradtui.tui.link import HostLink
    from gradtui.tui.palette import Palette
    from gradtui.tui.session import Session
    from gradtui.tui.settings import ScreenSettings
    from gradtui.tui.view import View
    from gradtui.tui.widgets.board import Board
    from gradtui.tui.widgets.prompt import Asked


class Host(App[int]):
    """The app, as its actions see it."""

    run_dir: Path
    session: Session
    settings: ScreenSettings
    link: HostLink
    gate: PaintGate
    board: Board
    wish: Wish
    view: View
    palette: Palette
    glyph_set: Glyphs

    def relayout(self, size: Size | None = None) -> None:
        raise NotImplementedError

    def paint(self) -> None:
        raise NotImplementedError

    def use_palette(self, palette: Palette) -> None:
        raise NotImplementedError

    def focus_pane(self, name: PaneName) -> None:
        raise NotImplementedError

    def open_prompt(self, asked: Asked, text: str) -> None:
        raise NotImplementedError

    def say(self, message: str, role: str = "") -> None:
        """Put a line in the ticker, and paint soon."""
        self.session.say(message, role)
        self.gate.ask()
