"""The command palette: every action, parameter, finding and theme by name, behind `:`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from gradtui.tui import figures, keymap
from gradtui.tui.panes.parameters import ParametersPane

if TYPE_CHECKING:
    from gradtui.tui.app import GradtuiApp

Command = tuple[str, str, Callable[[], object]]
"""Name, explanation, what it does."""
MOST = 2_000
"""Parameters looked through."""


class Commands(Provider):
    """Searches what there is to do and to see."""

    @property
    def _gradtui(self) -> GradtuiApp:
        return cast("GradtuiApp", self.app)

    def _actions(self) -> Iterator[Command]:
        app = self._gradtui
        for key in keymap.KEYS:
            if key.scope == "app" and key.action != "palette" and keymap.allowed(key, app.session.state):
                name = keymap.shown(key, dict(app.settings.keymap))
                yield f"{name:<8} {key.help}", "", partial(app.run_action, key.action)

    def _things(self) -> Iterator[Command]:
        app = self._gradtui
        for state in list(app.view.parameters.values())[:MOST]:
            text = f"parameter {state.info.name}"
            yield text, f"{state.state}, norm {figures.norm(state.norm)}", partial(self._select, state.info.id)
        for item in app.view.findings:
            finding = item.finding
            yield f"finding {finding.rule}", finding.message, partial(app.go_to_finding, finding)

    def _select(self, parameter: int) -> None:
        app = self._gradtui
        app.post_message(ParametersPane.Selected(parameter))
        app.focus_pane("accumulation")

    async def discover(self) -> Hits:
        for name, why, do in self._actions():
            yield DiscoveryHit(Content(name), do, text=name, help=why or None)

    async def search(self, query: str) -> AsyncIterator[Hit]:
        matcher = self.matcher(query)
        for name, why, do in (*self._actions(), *self._things()):
            if (score := matcher.match(name)) > 0:
                yield Hit(score, matcher.highlight(name), do, text=name, help=why or None)
