"""Parameters: every tensor that can hold a gradient, its gradient's state, norm, trend and flags. Sorts and filters; changes nothing."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from math import inf, isfinite, isnan

from textual.message import Message

from gradtui.ledger.state import ParameterState
from gradtui.rules.finding import Finding
from gradtui.tui import figures, flags
from gradtui.tui.line import Line, Span, fit, fit_right, initials, line
from gradtui.tui.view import View
from gradtui.tui.widgets.list_pane import ListPane

SORTS: tuple[str, ...] = ("order", "|grad|", "name", "writes", "state", "flags")


class ParametersPane(ListPane):
    """The table of parameters."""

    name_ = "parameters"
    title = "Parameters"

    class Selected(Message):
        """Another parameter is under the cursor."""

        def __init__(self, parameter: int) -> None:
            super().__init__()
            self.parameter = parameter

    class Opened(Message):
        """The person wants to see what a parameter's gradient is made of."""

        def __init__(self, parameter: int) -> None:
            super().__init__()
            self.parameter = parameter

    def __init__(self) -> None:
        super().__init__()
        self.sort = "order"
        self._order: list[ParameterState] = []
        self._findings: dict[int, list[Finding]] = {}
        self._ordered_for: tuple[object, ...] = ()
        self._root = ""
        self._longest = 0
        self._named = 0
        self._picked = 0

    def watch_view(self) -> None:
        self._arrange(self.view)
        self._follow(self.view.selection.parameter)
        super().watch_view()

    def _follow(self, selected: int) -> None:
        """Put the cursor on the selected parameter, unless the person has moved on and the view does not know yet."""
        if self._picked not in (0, selected):
            return
        self._picked = 0
        if not (self.cursor < len(self._order) and self._order[self.cursor].info.id == selected):
            self.cursor = next((i for i, state in enumerate(self._order) if state.info.id == selected), self.cursor)

    # -- rows

    def _arrange(self, view: View) -> None:
        key = (view.cursor, id(view.parameters), len(view.parameters), id(view.findings), self.sort, self.filter)
        if key == self._ordered_for:
            return
        self._ordered_for = key
        self._findings = _by_parameter(view)
        if len(view.parameters) != self._named:
            self._named = len(view.parameters)
            self._root = common_root([state.info.name for state in view.parameters.values()])
            self._longest = max((len(self._short(state)) for state in view.parameters.values()), default=0)
        wanted = wanted_by(self.filter, view.counts.backward)
        self._order = [state for state in view.parameters.values() if wanted(state)]
        if self.sort != "order":
            self._order.sort(key=self._sort_key())

    def _sort_key(self) -> Callable[[ParameterState], tuple[object, ...]]:
        backwards = self.view.counts.backward
        return {
            "|grad|": lambda s: (-(inf if isnan(s.norm) else s.norm),),
            "name": lambda s: (s.info.name,),
            "writes": lambda s: (-(len(s.contributions) + s.folded),),
            "state": lambda s: (("fresh", "spent", "zero", "none").index(s.state),),
            "flags": lambda s: (
                -len(self._findings.get(s.info.id, ())),
                s.finite,
                -len(flags.letters(s, backwards)),
            ),
        }[self.sort]

    def count(self, view: View) -> int:
        self._arrange(view)
        return len(self._order)

    def heading(self, view: View) -> tuple[list[Span], list[Span]]:
        total = len(view.parameters)
        shown = f"{self.cursor + 1} of {len(self._order)}" if self._order else ""
        if self.filter:
            shown += f" (filter {self.filter}, {total} in all)"
        shown += f"  in {self._root}" if self._root else ""
        sort = f"sort: {self.sort}" if self.sort != "order" else ""
        return [(shown, "dim")], [(sort, "dim")]

    def header(self, view: View, width: int) -> list[Line]:
        return [line("  ", (Columns(width - 2, self._longest).head(), "dim"))]

    def row(self, view: View, index: int, width: int) -> list[Span]:
        state = self._order[index]
        at = Columns(width, self._longest)
        writes = len(state.contributions) + state.folded
        norm_role = "error" if not state.finite else "dim" if state.state in ("none", "zero") else "strong"
        trend = figures.spark(state.history, at.trend - 1, self.glyphs)
        spans: list[Span] = [
            (fit(initials(self._short(state), at.name, self.glyphs.ellipsis), at.name), ""),
            (fit(" " + figures.shape(state.info.shape), at.shape), "dim"),
            (" " + fit_right(_norm(state), 8), norm_role),
            ("'" if state.info.id in view.changed else " ", "accent"),
            (fit_right(str(writes) if writes and at.writes else "", at.writes), "" if writes > 1 else "dim"),
            (f" {flags.state_mark(state.state, self.glyphs)} {state.state:<5}", flags.state_role(state.state)),
            (fit(" " + trend, at.trend), "accent"),
            (fit(" " + _owners(state, view), at.owner), "dim"),
            (fit(" " + _cleared(state), at.cleared), "dim"),
        ]
        found = self._findings.get(state.info.id, [])
        return [*spans, (" ", ""), *flags.spans(state, view.counts.backward, found, self.glyphs)]

    def _short(self, state: ParameterState) -> str:
        """Without the root that every parameter has in common; the title names it."""
        return state.info.name.removeprefix(f"{self._root}.")

    def nothing(self, view: View, width: int) -> list[Line]:
        if self.filter:
            return self.empty(
                width, f"No parameter matches {self.filter}. Press / and Enter on an empty line to show all."
            )
        if view.state == "starting":
            return self.empty(width, "Starting the script. Parameters appear at its first gradient call.")
        return self.empty(
            width, "No parameters met yet: they appear with the first backward, step or zero_grad. Press B."
        )

    def set_filter(self, text: str) -> None:
        self.filter = text
        self.cursor = self.top = 0
        self.paint()

    def matches(self, view: View, index: int) -> bool:
        return bool(flags.letters(self._order[index], view.counts.backward).strip("FDC"))

    # -- what the person did

    def moved(self) -> None:
        self._picked = self._order[self.cursor].info.id
        self.post_message(self.Selected(self._order[self.cursor].info.id))

    def opened(self) -> None:
        self.post_message(self.Opened(self._order[self.cursor].info.id))

    def action_sort(self, by: int = 1) -> None:
        self.sort = SORTS[(SORTS.index(self.sort) + by) % len(SORTS)]
        self.watch_view()

    def copied(self) -> str:
        if not self.count(self.view):
            return ""
        state = self._order[self.cursor]
        return f"{state.info.name}\t{figures.shape(state.info.shape)}\t{_norm(state)}\t{state.state}"


class Columns:
    """Widths for a row of `width` cells whose longest name takes `longest`.

    Names come first; shape, trend and the count of writes give way in that order, owner and clear come with spare room.
    """

    def __init__(self, width: int, longest: int) -> None:
        wanted = min(max(longest, 8), 30)
        self.writes, self.trend, self.shape, self.owner, self.cleared = 4, 9, 10, 0, 0
        fixed = 9 + 1 + 8 + 6
        if width - fixed - 4 - 9 - 10 < wanted:
            self.shape = 0
        if width - fixed - 4 - 9 - self.shape < min(wanted, 22):
            self.trend = 0
        if width - fixed - 4 - self.trend - self.shape < 10:
            self.writes = 0
        spare = width - fixed - self.writes - self.trend - self.shape
        self.name = min(spare, max(longest, 12))
        spare -= self.name
        if spare >= 16 and self.trend:
            self.owner, spare = 16, spare - 16
        if spare >= 26 and self.owner:
            self.cleared, spare = 26, spare - 26
        if spare >= 16 and self.trend:
            self.trend += 16

    def head(self) -> str:
        """The header row."""
        names = [
            fit("name", self.name),
            fit(" shape", self.shape),
            "   |grad| ",
            fit_right("#", self.writes) if self.writes else "",
        ]
        names += [
            " state  ",
            fit(" trend", self.trend),
            fit(" optimizer", self.owner),
            fit(" last cleared", self.cleared),
        ]
        return "".join(names) + " flags"


def common_root(names: list[str]) -> str:
    """The first part of dotted names that all share, where every name has more parts than that."""
    roots = {name.partition(".")[0] for name in names}
    return roots.pop() if len(roots) == 1 and len(names) > 1 and all("." in name for name in names) else ""


def _norm(state: ParameterState) -> str:
    return "None" if state.state == "none" else figures.norm(state.norm)


def _owners(state: ParameterState, view: View) -> str:
    names = [view.optimizers[id].info.name for id in state.owners if id in view.optimizers]
    return ", ".join(names) or ("none" if view.optimizers else "")


def _cleared(state: ParameterState) -> str:
    if state.cleared is None:
        return "never" if state.backwards else ""
    site = state.cleared.site
    return f"{state.cleared.owner or state.cleared.by}" + (f" :{site.line}" if site else "")


def _by_parameter(view: View) -> dict[int, list[Finding]]:
    found: dict[int, list[Finding]] = defaultdict(list)
    for item in view.findings:
        if item.finding.status != "withdrawn" and item.finding.process == view.selection.process:
            for parameter in item.finding.parameter_ids:
                found[parameter].append(item.finding)
    return found


def wanted_by(text: str, backwards: int = 0) -> Callable[[ParameterState], bool]:
    """A test for one filter line: every word must hold. `!nan !zero !none !fresh !spent !stale !flag >1e-3 <1e-6 ~regex part-of-name`."""
    tests = [_test(word, backwards) for word in text.split()]
    return lambda state: all(test(state) for test in tests)


def _test(word: str, backwards: int) -> Callable[[ParameterState], bool]:
    if word[0] == "!" and len(word) > 1:
        return _state_test(word[1:].lower(), backwards)
    if word[0] in "<>" and (limit := _number(word[1:])) is not None:
        if word[0] == ">":
            return lambda s: s.state != "none" and not s.norm <= limit
        return lambda s: s.state != "none" and s.norm < limit
    if word[0] == "~":
        try:
            pattern = re.compile(word[1:])
        except re.error:
            return lambda s: False
        return lambda s: bool(pattern.search(s.info.name))
    return lambda s: word.lower() in s.info.name.lower()


def _state_test(word: str, backwards: int) -> Callable[[ParameterState], bool]:
    if word == "nan":
        return lambda s: not s.finite or not isfinite(s.norm)
    if word == "zero":
        return lambda s: s.state != "none" and s.norm == 0.0
    if word == "stale":
        return flags.stale
    if word == "flag":
        return lambda s: bool(flags.letters(s, backwards))
    return lambda s: s.state == word


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
