"""Keys about the screen itself: panes, zoom, themes, help, copying, leaving."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from textual.actions import SkipAction

from gradtui.tui.actions.host import Host
from gradtui.tui.clipboard import copy
from gradtui.tui.export import free_name, parameters_csv
from gradtui.tui.layout import PANES, PaneName
from gradtui.tui.palette import PALETTES
from gradtui.tui.screens.card import Card
from gradtui.tui.screens.explain import explanation
from gradtui.tui.screens.help import help_rows
from gradtui.tui.screens.quit import Leaving
from gradtui.tui.view import Selection
from gradtui.tui.widgets.pane import Pane
from gradtui.wire.messages import Leave, Pause, Stop

_THEMES = ("dark", "light", "contrast", "ansi")


class ScreenActions(Host):
    """Panes, cards, clipboard, leaving."""

    # -- panes

    def action_pane(self, number: int) -> None:
        self.focus_pane(PANES[number - 1])

    def _focused_pane(self) -> Pane:
        focused = self.focused
        return focused if isinstance(focused, Pane) else self.board.panes[self.wish.main]

    def action_focus_next_pane(self) -> None:
        self._turn(1)

    def action_focus_previous_pane(self) -> None:
        self._turn(-1)

    def _turn(self, by: int) -> None:
        """To the next pane on screen; on small screens, where only one is, to the next there is."""
        narrow = self.board.plan.mode == "narrow" or self.wish.zoomed
        names: list[PaneName] = list(PANES) if narrow else [name for name in PANES if name in self.board.plan.panes]
        here = self._focused_pane().name_
        at = names.index(here) if here in names else 0
        self.focus_pane(names[(at + by) % len(names)])

    def action_process(self) -> None:
        """Show the next process of the run in all panes."""
        known = self.view.processes
        if len(known) < 2:
            self.say("one process takes part in this run")
            return
        here = known.index(self.session.selection.process) if self.session.selection.process in known else 0
        self.session.selection = Selection(process=known[(here + 1) % len(known)])
        self.session.picked = False
        self.say(f"process {self.session.selection.process} of {len(known)}")

    def action_zoom(self) -> None:
        self.wish = replace(self.wish, zoomed=not self.wish.zoomed, main=self._focused_pane().name_)
        self.relayout()

    def action_strip(self, by: int) -> None:
        self.wish = replace(self.wish, strip=min(max(self.wish.strip + by, 0), 9))
        self.relayout()

    def action_theme(self) -> None:
        at = _THEMES.index(self.palette.name) if self.palette.name in _THEMES else -1
        self.use_palette(PALETTES[_THEMES[(at + 1) % len(_THEMES)]])
        self.say(f"theme: {self.palette.name}")

    # -- cards

    def show_card(self, card: Card) -> None:
        """Lay a card over the panes."""
        card.use(self.palette, self.glyph_set)
        self.push_screen(card)

    def action_help(self) -> None:
        pane = self._focused_pane()
        self.show_card(Card("Keys", help_rows(pane.name_, pane.title, dict(self.settings.keymap), self.glyph_set)))

    def action_explain(self) -> None:
        title, rows = explanation(self._focused_pane().topic(), self.view)
        self.show_card(Card(title, rows))

    def action_palette(self) -> None:
        self.action_command_palette()

    # -- copying

    def action_copy(self) -> None:
        pane = self._focused_pane()
        self._copy(pane.copied() or pane.text())

    def action_copy_pane(self) -> None:
        self._copy(self._focused_pane().text())

    def _copy(self, text: str) -> None:
        self.say(copy(text, self._osc52))

    def _osc52(self, sequence: str) -> None:
        if self._driver is not None:
            self._driver.write(sequence)

    def action_export(self) -> None:
        """Write the parameters, as they are at the cursor, to a file beside where gradtui was started."""
        file = free_name(Path.cwd(), f"gradtui-event-{self.view.cursor}", ".csv")
        try:
            file.write_text(parameters_csv(self.view))
        except OSError as error:
            self.say(f"{file}: {error.strerror or error}", "error")
            return
        self.say(f"wrote {len(self.view.parameters)} parameters to {file.name}")

    def action_picture(self) -> None:
        """Save the screen as an SVG picture."""
        file = free_name(Path.cwd(), "gradtui-screen", ".svg")
        try:
            file.write_text(self.export_screenshot())
        except OSError as error:
            self.say(f"{file}: {error.strerror or error}", "error")
            return
        self.say(f"wrote {file.name}")

    def action_freeze(self) -> None:
        """Stop painting what comes; the run and its recording go on."""
        if not self.frozen:
            self.session.say("frozen: F lets the display go on", "warning")
            self.paint()
        self.frozen = not self.frozen
        if not self.frozen:
            self.say("")

    frozen = False

    # -- leaving

    def action_detach(self) -> None:
        """Leave the screen; the script runs on."""
        if self.session.state == "ended":
            self.exit()
        else:
            self._leave("detach")

    async def action_back(self) -> None:
        if self.wish.zoomed:
            self.action_zoom()
        elif self.session.state == "ended" or self.settings.recording or self.settings.readonly:
            self.exit()
        else:
            self.push_screen(Leaving(self.palette, self.glyph_set), self._leave)

    def _leave(self, answer: str | None) -> None:
        if answer == "kill":
            self.link.send(Stop("TERM"))
            self.say("ending the script…")
            self.leaving = True
            self.set_timer(3.0, self._kill)
        elif answer == "detach":
            self.link.send(Leave(free=True))
            self.exit(message=f"The run goes on. Come back with: gradtui attach {self.run_dir.name}")

    leaving = False
    """The person has asked to leave once the script has ended."""

    def _kill(self) -> None:
        self.link.send(Stop("KILL"))
        self.set_timer(1.0, self.exit)

    async def action_quit_now(self) -> None:
        self.link.send(Stop("TERM"))
        await self.link.close()
        self.exit()

    def action_suspend(self) -> None:
        """Pause the run first: a stopped screen must not hold up a running script half seen."""
        if self.session.state == "running":
            self.link.send(Pause())
        try:
            self.action_suspend_process()
        except SkipAction:
            self.say("this terminal cannot suspend")
