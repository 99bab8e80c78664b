"""The screen below all cards: it has nothing of its own to draw, and so is never drawn when only the focus moved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.geometry import Region
from textual.screen import Screen

if TYPE_CHECKING:
    from typing_extensions import Self


class MainScreen(Screen[object]):
    """Holds the board."""

    def refresh(self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False) -> Self:
        """Textual repaints a whole screen (5 kB at 80x24) each time its focus moves: not here."""
        whole = repaint and not (regions or layout or recompose)
        return self if whole else super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)
