"""Accumulation: what the selected gradient is made of: each backward that added to it, what used it, and who cleared it last."""

from __future__ import annotations

from math import isfinite
from pathlib import PurePath

from textual.message import Message

from gradtui.events import CallSite
from gradtui.ledger.state import Contribution, ParameterState
from gradtui.tui import figures, flags
from gradtui.tui.line import Line, Span, clip, elide, fit, justify, line, width_of
from gradtui.tui.view import View
from gradtui.tui.widgets.list_pane import ListPane


class AccumulationPane(ListPane):
    """The history of one gradient since it was last cleared."""

    name_ = "accumulation"
    title = "Accumulation"

    class Opened(Message):
        """The person wants to go to the event that made a contribution."""

        def __init__(self, seq: int) -> None:
            super().__init__()
            self.seq = seq

    def __init__(self) -> None:
        super().__init__()
        self._followed: tuple[int, int, int] = (0, 0, 0)

    def watch_view(self) -> None:
        state = self.view.selected
        if state is not None:
            here = (state.info.id, len(state.contributions), self.view.cursor)
            if here != self._followed:
                self._followed = here
                self.cursor = max(len(state.contributions) - 1, 0)
        super().watch_view()

    def heading(self, view: View) -> tuple[list[Span], list[Span]]:
        state = view.selected
        if state is None:
            return [], []
        writes = len(state.contributions) + state.folded
        right = f"{writes} contribution{'' if writes == 1 else 's'}" if writes else ""
        name = elide(state.info.name, max(self.size.width - 44, 16), self.glyphs.ellipsis)
        return [(name, "accent")], [(right, "dim")]

    def count(self, view: View) -> int:
        return len(view.selected.contributions) if view.selected else 0

    def content(self, view: View, width: int, height: int) -> list[Line]:
        state = view.selected
        if state is None:
            return self.nothing(view, width)
        head = self.header(view, width) if state.contributions else []
        before = [*self._cleared(state, width), *self._folded(state), *head]
        after = self._sum(view, state, width)
        total = len(state.contributions)
        self._page = max(height - len(before) - len(after), 1)
        if not total:
            return [*before, *after]
        self._keep_in_sight(total)
        rows = [self._row(view, index, width) for index in range(self.top, min(self.top + self._page, total))]
        return [*before, *rows, *after]

    # -- rows

    def _cleared(self, state: ParameterState, width: int) -> list[Line]:
        cleared = state.cleared
        if cleared is None:
            return [line("  ", ("never cleared in this run", "dim"))]
        left = "None" if cleared.how == "none" else "zeros"
        who = {"hand": "by hand", "backward": "inside a backward"}.get(cleared.by, f"by {cleared.owner}")
        text = f"cleared {self.glyphs.to} {left}  {who}"
        return [justify([("  ", ""), (text, "w1")], [(_at(cleared.site) + " ", "dim")], width)]

    def _folded(self, state: ParameterState) -> list[Line]:
        return [line("  ", (f"{state.folded} older contributions", "dim"))] if state.folded else []

    def header(self, view: View, width: int) -> list[Line]:
        at = Widths(width - 2, _longest(view))
        names = [fit("backward", at.label), fit("loss", at.loss), fit("added", 10), fit("", at.own)]
        names += [fit("running sum", at.running), fit("cos", at.cosine), fit("used", at.used), fit("line", at.site)]
        return [line("  ", ("".join(names), "dim"))]

    def row(self, view: View, index: int, width: int) -> list[Span]:
        state = view.selected
        assert state is not None
        item = state.contributions[index]
        role = f"w{(state.folded + index) % 4}"
        at = Widths(width, _longest(view))
        cosine = f"{item.cosine:+.2f}" if item.cosine is not None and isfinite(item.cosine) else ""
        return [
            (fit(f"#{item.backward}", at.label), role),
            (fit(clip(item.loss, max(at.loss - 1, 0)), at.loss), ""),
            (fit("+" + figures.norm(item.incoming), 10), "strong" if item.finite else "error"),
            *self._bars(state, item, at, role),
            (fit(cosine, at.cosine), "positive" if cosine.startswith("-") else "dim"),
            (fit("by step" if item.used_by else "", at.used), "warning"),
            (fit(f":{item.site.line}" if item.site else "", at.site), "dim"),
        ]

    def _bars(self, state: ParameterState, item: Contribution, at: Widths, role: str) -> list[Span]:
        """What this backward added, and the running sum it gives."""
        if not at.running:
            return []
        full = max([c.after for c in state.contributions if isfinite(c.after)] + [0.0])
        largest = max([c.incoming for c in state.contributions if isfinite(c.incoming)] + [0.0])
        added = figures.bar(item.incoming, largest, at.own - 1, self.glyphs)
        total = figures.bar(item.after, full, at.running - 1, self.glyphs)
        old = figures.bar(item.before, full, at.running - 1, self.glyphs) if item.before > 0 else ""
        old = self.glyphs.old * len(old[: len(total)])
        return [(fit(added, at.own), role), (old, "dim"), (fit(total[len(old) :], at.running - len(old)), role)]

    def _sum(self, view: View, state: ParameterState, width: int) -> list[Line]:
        """The state of the gradient now, what has used it, what is wrong with it."""
        mark = flags.state_mark(state.state, self.glyphs)
        spans: list[Span] = [("  ", ""), (f"{mark} {state.state}", flags.state_role(state.state))]
        if state.state != "none":
            spans += [("   |.grad| = ", "dim"), (figures.norm(state.norm), "strong" if state.finite else "error")]
        writes = len(state.contributions) + state.folded
        if writes > 1 and isfinite(state.norm):
            spans.append((f"   if averaged {figures.norm(state.norm / writes)}", "dim"))
        if state.scale != 1.0:
            spans.append((f"   loss scale {self.glyphs.times}{figures.short(state.scale)}", "warning"))
        if state.clipped:
            spans.append(("   clipped", "dim"))
        return [Line(tuple(spans)), *self._remarks(view, state, width)]

    def _remarks(self, view: View, state: ParameterState, width: int) -> list[Line]:
        remarks: list[Span] = []
        times = "once" if state.steps_since_clear == 1 else f"{state.steps_since_clear} times"
        if flags.stale(state):
            remarks.append(
                (
                    f"{self.glyphs.warning} not cleared: a step has used this gradient {times}, and a backward added on top",
                    "error",
                )
            )
        elif state.state == "spent":
            remarks.append((f"a step has used it {times}; nothing has cleared it since", "warning"))
        if not state.owners and state.info.requires_grad and view.optimizers:
            remarks.append(("no optimizer owns this parameter", "warning"))
        return [line("  ", (clip(text, width - 2), role)) for text, role in remarks]

    def nothing(self, view: View, width: int) -> list[Line]:
        if not view.parameters:
            return self.empty(
                width, "What a gradient is made of appears after the first backward. Press B to run to one."
            )
        return self.empty(width, "Choose a parameter in pane 3 to see what its gradient is made of.")

    # -- what the person did

    def opened(self) -> None:
        state = self.view.selected
        if state and state.contributions:
            self.post_message(self.Opened(state.contributions[self.cursor].seq))

    def copied(self) -> str:
        state = self.view.selected
        if not state or not state.contributions:
            return ""
        item = state.contributions[self.cursor]
        return f"{state.info.name}\tbackward #{item.backward}\t{item.loss}\t{figures.norm(item.incoming)}\t{_at(item.site)}"


class Widths:
    """Columns of a row of `width` cells; the loss, what used it, and the bars give way in that order."""

    def __init__(self, width: int, longest: int) -> None:
        self.label = 9 if width >= 44 else 6
        self.loss = min(max(longest + 1, 6), width // 4) if width >= 62 else 0
        self.used = 8 if width >= 54 else 0
        self.cosine = 7 if width >= 34 else 0
        self.site = 6
        bars = width - self.label - self.loss - self.used - self.cosine - self.site - 10
        self.own = bars * 2 // 5 if bars >= 16 else 0
        self.running = bars - self.own if bars >= 8 else 0


def _longest(view: View) -> int:
    """Cells of the longest loss in the list."""
    return max((width_of(item.loss) for item in view.selected.contributions), default=0) if view.selected else 0


def _at(site: CallSite | None) -> str:
    return f"{PurePath(site.file).name}:{site.line}" if site else ""
