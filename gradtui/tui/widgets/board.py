"""The container of panes and bars: puts each where the plan says, and shows no others."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.geometry import NULL_OFFSET, Region, Size, Spacing
from textual.layout import ArrangeResult, Layout, WidgetPlacement
from textual.widget import Widget

from gradtui.tui.glyphs import UNICODE, Glyphs
from gradtui.tui.layout import PaneName, Place, Wish, plan
from gradtui.tui.palette import Palette
from gradtui.tui.panes.accumulation import AccumulationPane
from gradtui.tui.panes.events import EventsPane
from gradtui.tui.panes.findings import FindingsPane
from gradtui.tui.panes.flow import FlowPane
from gradtui.tui.panes.gradient import GradientPane
from gradtui.tui.panes.output import OutputPane
from gradtui.tui.panes.parameters import ParametersPane
from gradtui.tui.panes.source import SourcePane
from gradtui.tui.view import View
from gradtui.tui.widgets.bars import FooterBar, StatusBar, TabBar, TickerBar
from gradtui.tui.widgets.painted import Painted
from gradtui.tui.widgets.pane import Pane
from gradtui.tui.widgets.prompt import Prompt


class _Planned(Layout):
    name = "planned"

    def arrange(self, parent: Widget, children: list[Widget], size: Size, greedy: bool = True) -> ArrangeResult:
        assert isinstance(parent, Board)
        parent.pre_layout(self)
        places = parent.places
        return [
            WidgetPlacement(Region(at.x, at.y, at.width, at.height), NULL_OFFSET, Spacing(), child)
            for child in children
            if (at := places.get(child)) is not None
        ]


class Board(Widget):
    """All panes and bars, mounted once; a change of plan moves them and never makes them anew."""

    DEFAULT_CSS = """
    Board { width: 100%; height: 100%; }
    Board > * { min-width: 0; min-height: 0; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._planned = _Planned()
        self.status, self.tabs, self.ticker, self.footer = StatusBar(), TabBar(), TickerBar(), FooterBar()
        self.prompt = Prompt()
        self.panes: dict[PaneName, Pane] = {
            pane.name_: pane
            for pane in (
                SourcePane(),
                EventsPane(),
                ParametersPane(),
                GradientPane(),
                AccumulationPane(),
                FlowPane(),
                FindingsPane(),
                OutputPane(),
            )
        }
        self.plan = plan(80, 24, Wish())
        self.places: dict[Widget, Place] = {}

    @property
    def layout(self) -> Layout:
        return self._planned

    def compose(self) -> ComposeResult:
        yield self.status
        yield self.tabs
        yield from self.panes.values()
        yield self.ticker
        yield self.footer
        yield self.prompt

    @property
    def painted(self) -> list[Painted]:
        """Everything that shows a view."""
        return [self.status, self.tabs, *self.panes.values(), self.ticker, self.footer]

    def arrange_for(self, wish: Wish, width: int, height: int) -> None:
        """Lay out anew for a wish and a size."""
        self.plan = plan(width, height, wish)
        self.places = self._places(width, height)
        self.status.alone = self.plan.mode == "tiny"
        self.status.with_message = not self.plan.ticker
        self.tabs.shown = wish.main
        for name, pane in self.panes.items():
            pane.edged = name in self.plan.panes and self.plan.panes[name].gutter
        for widget in self.children:
            widget.display = widget in self.places
        self.status.refresh(layout=True)  # a child's refresh is what drops the arrangement that Textual keeps of us

    def _places(self, width: int, height: int) -> dict[Widget, Place]:
        places: dict[Widget, Place] = {self.status: Place(0, 0, width, 2 if self.plan.mode == "tiny" else 1)}
        if self.plan.tabs:
            places[self.tabs] = Place(0, 1, width, 1)
        places |= {self.panes[name]: place for name, place in self.plan.panes.items()}
        if self.plan.footer:
            last = self.footer if not self.prompt.asking or self.plan.ticker else self.prompt
            places[last] = Place(0, height - 1, width, 1)
        if self.plan.ticker:
            places[self.prompt if self.prompt.asking else self.ticker] = Place(0, height - 2, width, 1)
        return places

    def show(self, view: View) -> None:
        """Hand the view down to everything that is on screen."""
        for widget in self.painted:
            if widget.display:
                widget.view = view

    def use(self, palette: Palette, glyphs: Glyphs = UNICODE) -> None:
        """Change colours or alphabet everywhere."""
        for widget in self.painted:
            widget.use(palette, glyphs)
