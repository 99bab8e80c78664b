"""The screen of one run: composes panes and bars, routes keys to requests and messages to views. Draws nothing itself."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.geometry import Size
from textual.screen import Screen
from textual.theme import Theme

from gradtui.errors import TimelineError
from gradtui.timeline import TimelineReader
from gradtui.tui import keymap
from gradtui.tui.actions.palette import Commands
from gradtui.tui.actions.run import RunActions
from gradtui.tui.actions.screen import ScreenActions
from gradtui.tui.actions.script import ScriptActions
from gradtui.tui.gate import PaintGate
from gradtui.tui.glyphs import ASCII, UNICODE
from gradtui.tui.layout import SLOT, PaneName, Wish
from gradtui.tui.link import HostLink, LinkError
from gradtui.tui.palette import PALETTES, Palette
from gradtui.tui.panes.accumulation import AccumulationPane
from gradtui.tui.panes.events import EventsPane
from gradtui.tui.panes.findings import FindingsPane
from gradtui.tui.panes.flow import FlowPane
from gradtui.tui.panes.gradient import GradientPane
from gradtui.tui.panes.parameters import ParametersPane
from gradtui.tui.screens.card import Card
from gradtui.tui.screens.main import MainScreen
from gradtui.tui.screens.tour import tour
from gradtui.tui.session import Session
from gradtui.tui.settings import ScreenSettings, theme_of, wants_ascii
from gradtui.tui.story import Story
from gradtui.tui.terminal import TerminalWatch
from gradtui.tui.view import TensorSight, TensorWish, View
from gradtui.tui.widgets.bars import TabBar
from gradtui.tui.widgets.board import Board
from gradtui.tui.widgets.list_pane import ListPane
from gradtui.tui.widgets.prompt import Asked, Prompt
from gradtui.wire.messages import Ended, Resize, ViewTensor, view_of

SILENCE = 0.7
"""Seconds without a word from the host after which the script may be waiting for input."""


class GradtuiApp(RunActions, ScreenActions, ScriptActions):
    """One client of one run."""

    CSS_PATH = "screen.tcss"
    ENABLE_COMMAND_PALETTE = True
    COMMAND_PALETTE_BINDING = "ctrl+p"
    BINDINGS: ClassVar[list[BindingType]] = [*keymap.bindings("app")]
    COMMANDS = {Commands}
    TITLE = "gradtui"

    def __init__(self, run_dir: Path, settings: ScreenSettings | None = None) -> None:
        super().__init__()
        self.run_dir = run_dir
        self.settings = settings or ScreenSettings()
        self.session = Session(script=self.settings.script or _script_ordered(run_dir))
        self.link = HostLink()
        self.wish = Wish()
        self.view = View()
        self.tensor_wish: TensorWish | None = None
        self.gate = PaintGate(self, self.paint, fps=2.0 if self.settings.link == "slow" else 20.0)
        self.watch_terminal = TerminalWatch(self)
        self._script_size: Resize | None = None
        self._tensor_asked: tuple[object, ...] = ()
        self._themes_named()

    # -- the screen

    def _themes_named(self) -> None:
        for palette in PALETTES.values():
            if not palette.native:
                self.register_theme(_textual_theme(palette))
        self.glyph_set = ASCII if wants_ascii(self.settings) else UNICODE
        self.use_palette(PALETTES[theme_of(self.settings)])

    def use_palette(self, palette: Palette) -> None:
        """Change the colours of everything."""
        self.palette = palette
        self.theme = ("ansi-dark" if palette.dark else "ansi-light") if palette.native else f"gradtui-{palette.name}"
        if self.is_running:
            self.board.use(palette, self.glyph_set)

    def get_default_screen(self) -> Screen[object]:
        return MainScreen(id="_default")

    def compose(self) -> ComposeResult:
        self.board = Board()
        yield self.board

    def on_mount(self) -> None:
        self.set_keymap(dict(self.settings.keymap))
        self.board.footer.remapped = dict(self.settings.keymap)
        self.board.use(self.palette, self.glyph_set)
        self.relayout()
        self.watch_terminal.start()
        self.run_worker(self._follow_run(), name="run", exit_on_error=True)
        self.focus_pane("parameters")
        if self.settings.wrong:
            self.say(self.settings.wrong[0], "warning")
        if self.settings.tour:
            self.show_card(Card("Welcome", tour, any_key=True))

    def on_resize(self, event: events.Resize) -> None:
        self.relayout(event.size)  # our own size is still the old one

    def on_descendant_focus(self) -> None:
        self.gate.ask()

    def on_cursor_position(self) -> None:
        self.gate.answered()

    def relayout(self, size: Size | None = None) -> None:
        """Place the panes for the present size and wish, and give the script a terminal of the Output pane's width."""
        size = size or self.size
        if not size:
            return
        self.board.arrange_for(self.wish, size.width, size.height)
        self.gate.ask()
        place = self.board.plan.panes.get("output")
        self._size_script(Resize(size.height, place.width - place.gutter - 1 if place else size.width))

    def _size_script(self, wanted: Resize) -> None:
        if wanted != self._script_size and self.session.welcome:
            self._script_size = wanted
            self.link.send(wanted)

    def paint(self) -> None:
        """Fold what is new, make one view, hand it down. Called by the gate."""
        if self.frozen and self.session.state == "running":
            return
        story = self.session.story
        if story and not story.catch_up():
            self.gate.ask()
        gradient = self.board.panes["gradient"]
        assert isinstance(gradient, GradientPane)
        gradient.plain = self.settings.link == "slow" or self.gate.slow
        events_pane = self.board.panes["events"]
        self.view = self.session.view(
            self.gate.round_trip, max(events_pane.size.height, 8) if events_pane.display else 8
        )
        focused = self.screen_stack[0].focused
        pane = focused.name_ if isinstance(focused, ListPane) else "app"
        asked = "input" if self.board.prompt.asking == "input" else "filter"
        self.board.footer.scope = f"prompt:{asked}" if isinstance(focused, Prompt) else pane
        if len(self.view.parameters) != self.wish.parameters:
            self.wish = replace(self.wish, parameters=len(self.view.parameters))
            self.relayout()
        self.board.show(self.view)
        self._ask_for_tensor()

    # -- the run

    async def _follow_run(self) -> None:
        self._silence = self.set_timer(SILENCE, self._silent)
        if self.settings.recording:
            self._open_recording()
            return
        try:
            welcome = await self.link.connect(self.run_dir / "client.sock", self.settings.readonly)
            self.session.story = Story(TimelineReader(Path(welcome.timeline)))
        except (LinkError, TimelineError) as error:
            self.exit(return_code=1, message=f"gradtui: {error}")
            return
        self.session.greet(welcome)
        self.relayout()
        async for message in self.link.messages():
            self.session.hear(message)
            self._read_beside()
            self.gate.ask()
            self._listen_for_silence()
            if self.leaving and isinstance(message, Ended):
                self.exit()
        self.session.lost()
        self.gate.ask()

    def _listen_for_silence(self) -> None:
        self._silence.stop()
        self._silence = self.set_timer(SILENCE, self._silent)

    def _silent(self) -> None:
        if self.session.heard_nothing():
            self.gate.ask()

    def _open_recording(self) -> None:
        try:
            reader = TimelineReader(self.run_dir if self.run_dir.is_file() else self.run_dir / "timeline.db")
        except TimelineError as error:
            self.exit(return_code=1, message=f"gradtui: {error}")
            return
        self.session.story = Story(reader)
        self.session.open_recording(reader.meta(), reader.last_seq())
        self._read_beside()
        self.gate.ask()

    def _read_beside(self) -> None:
        story = self.session.story
        if story:
            story.read_findings()
            if story.read_output(self.session.output_told):
                self.set_timer(0.01, self._read_beside)

    # -- the tensor on show

    def _ask_for_tensor(self) -> None:
        view, wish = self.view, self.tensor_wish
        if wish is None or not self.board.panes["gradient"].display or not view.selection.parameter:
            return
        if view.state != "stopped" or not view.live:
            self._no_tensor(view)
            return
        asked = (view.selection, wish, view.cursor, view.where.call if view.where else 0)
        if asked != self._tensor_asked:
            self._tensor_asked = asked
            self.run_worker(self._read_tensor(view, wish), group="tensor", exclusive=True)

    def _no_tensor(self, view: View) -> None:
        """Keep the last picture while the run goes on; say what is needed otherwise."""
        self._tensor_asked = ()
        old = self.session.tensor
        if view.live and view.state == "running" and old.view and old.view.parameter == view.selection.parameter:
            return
        note = {
            "running": "Values can be read while the run is stopped: space pauses it.",
            "starting": "Values can be read once the run has stopped.",
            "ended": "The script has ended: its tensors are gone. Norms and contributions stay, in panes 3 and 5.",
        }.get(view.state, "Values are those of now; H goes back to now. Norms of then are in panes 3 and 5.")
        if old.view is not None or old.note != note:
            self.session.tensor = TensorSight(None, note)
            self.gate.ask()

    async def _read_tensor(self, view: View, wish: TensorWish) -> None:
        request = ViewTensor(
            0, view.selection.parameter, wish.what, view.selection.process, wish.rows, wish.columns,
            index=wish.index, values_at=wish.values_at, values=wish.values,
        )  # fmt: skip
        reply = await self.link.view(request)
        if reply.result is not None:
            self.session.tensor = TensorSight(view_of(reply.result))
        else:
            self.session.tensor = TensorSight(None, reply.error or "The tensor cannot be read.")
        self.gate.ask()

    # -- what panes say

    @on(ParametersPane.Selected)
    def _parameter_selected(self, event: ParametersPane.Selected) -> None:
        self.session.pick(event.parameter)
        self.gate.ask()

    @on(ParametersPane.Opened)
    def _parameter_opened(self, event: ParametersPane.Opened) -> None:
        self.focus_pane("accumulation")

    @on(AccumulationPane.Opened)
    def _contribution_opened(self, event: AccumulationPane.Opened) -> None:
        self.travel(event.seq)

    @on(EventsPane.Travelled)
    def _travelled(self, event: EventsPane.Travelled) -> None:
        self.travel_by(event.by, event.to)

    @on(FlowPane.Opened)
    def _module_opened(self, event: FlowPane.Opened) -> None:
        self.session.pick(event.parameter)
        self.focus_pane("parameters")

    @on(FindingsPane.Selected)
    def _finding_selected(self, event: FindingsPane.Selected) -> None:
        self.session.selection = replace(self.session.selection, finding=event.finding)

    @on(FindingsPane.Opened)
    def _finding_opened(self, event: FindingsPane.Opened) -> None:
        self.go_to_finding(event.finding)

    @on(GradientPane.Wished)
    def _wished(self, event: GradientPane.Wished) -> None:
        self.tensor_wish = event.wish
        self._ask_for_tensor()

    @on(TabBar.Chosen)
    def _tab_chosen(self, event: TabBar.Chosen) -> None:
        self.action_pane(event.number)

    @on(ListPane.FilterAsked)
    def _filter_asked(self, event: ListPane.FilterAsked) -> None:
        self.open_prompt(event.pane.name_, event.pane.filter)

    @on(Prompt.Filtered)
    def _filtered(self, event: Prompt.Filtered) -> None:
        if event.pane == "input":
            self._typed(event)
            return
        pane = self.board.panes[event.pane]
        assert isinstance(pane, ListPane)
        pane.set_filter(event.text)
        if event.done:
            self.relayout()
            pane.focus()

    def _typed(self, event: Prompt.Filtered) -> None:
        if event.done:
            self.type_line(event.text)
        if self.board.prompt.asking is None:
            self.focus_pane(self.wish.main)

    def open_prompt(self, asked: Asked, text: str) -> None:
        """Give the keys to the prompt at once: what is typed next must not reach the panes."""
        self.board.prompt.ask(asked, text)
        self.board.prompt.display = True
        self.screen.set_focus(self.board.prompt, scroll_visible=False)
        self.relayout()

    # -- which pane

    def focus_pane(self, name: PaneName) -> None:
        """Show a pane and give it the keys."""
        if name not in self.board.plan.panes or self.wish.zoomed:
            slot = name if name in SLOT else self.wish.slot
            self.wish = replace(self.wish, main=name, slot=slot)
        else:
            self.wish = replace(self.wish, main=name)
        pane = self.board.panes[name]
        pane.display = True  # so that it can take the keys before the one that has them is hidden
        self.screen.set_focus(pane, scroll_visible=False)
        self.relayout()
        self.board.show(self.view)

    # -- leaving

    @property
    def exit_code(self) -> int:
        """The script's own exit code, or 128 + the signal that ended it; 0 while it lives."""
        ended: Ended | None = self.session.ended
        if ended is None:
            return 0
        return 128 + ended.signal if ended.signal else ended.exit_code or 0


def _textual_theme(palette: Palette) -> Theme:
    """Colours for Textual's own widgets (input, palette), taken from ours."""
    return Theme(
        name=f"gradtui-{palette.name}",
        primary=palette.roles["accent"].rpartition(" ")[2],
        foreground=palette.roles[""],
        background=palette.background,
        surface=palette.background,
        panel="#303030" if palette.dark else "#e4e4e4",
        dark=palette.dark,
    )


def _script_ordered(run_dir: Path) -> str:
    """The script that the host was told to run, from the run's own folder."""
    try:
        orders = json.loads((run_dir / "orders.json").read_text())
        return str(orders["launch"]["script"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""
