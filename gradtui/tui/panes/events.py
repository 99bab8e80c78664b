"""Events: the timeline around the cursor; moving here moves the whole screen through time."""

from __future__ import annotations

from pathlib import PurePath

from textual.message import Message

from gradtui.tui import figures
from gradtui.tui.line import Line, Span, clip, fit, fit_right, width_of
from gradtui.tui.view import EventRow, View
from gradtui.tui.widgets.list_pane import ListPane


class EventsPane(ListPane):
    """A window on the timeline. Its cursor is the run's cursor."""

    name_ = "events"
    title = "Events"

    class Travelled(Message):
        """The person moved to another event: so many lines away, or to an end of the run."""

        def __init__(self, by: int = 0, to: str = "") -> None:
            super().__init__()
            self.by = by
            self.to = to

    def count(self, view: View) -> int:
        return len(view.events)

    def watch_view(self) -> None:
        row = self.view.event
        self.cursor = self.view.events.index(row) if row else 0
        self.top = self.cursor - self._page // 2 if not self.view.live else self.cursor
        super().watch_view()

    def heading(self, view: View) -> tuple[list[Span], list[Span]]:
        place = f"{view.cursor} of {view.head}" if view.head else ""
        return [(place, "dim")], [("live" if view.live else "past", "running" if view.live else "stopped")]

    def row(self, view: View, index: int, width: int) -> list[Span]:
        row = view.events[index]
        ordinal = f"#{row.ordinal}" if row.ordinal else ""
        took = figures.duration(row.duration) if width >= 70 else ""
        name = "  " * row.depth + row.what
        left: list[Span] = [
            (self.glyphs.fresh + " ", row.mark),
            (fit(f"{name} {ordinal} ", 15 if width < 60 else 19), "" if row.mark != "error" else "error"),
        ]
        site = self._site(view, row)
        right: list[Span] = [
            (fit_right(took, 8) if took or width >= 70 else "", "dim"),
            (" " + fit_right(site, 16 if width >= 64 else max(5, min(width_of(site), 12))), "dim"),
        ]
        room = width - sum(width_of(text) for text, _ in (*left, *right)) - 1
        return [*left, (fit(clip(row.detail, room, self.glyphs.ellipsis), room), _detail_role(row)), *right]

    def _site(self, view: View, row: EventRow) -> str:
        """The line; with the file's name where that is not the script's."""
        if not row.file:
            return ""
        return f":{row.line}" if row.file == view.script else f"{PurePath(row.file).name}:{row.line}"

    def nothing(self, view: View, width: int) -> list[Line]:
        if view.state in ("starting", "running"):
            return self.empty(width, "No gradient call yet. Each backward, step and zero_grad becomes a line here.")
        return self.empty(width, "The script made no gradient call.")

    def notable(self, view: View, index: int) -> bool:
        return view.events[index].kind in ("CallRaised", "WarningSeen", "NonfiniteOrigin")

    # -- moving here is travelling

    def go(self, index: int) -> None:
        self.post_message(self.Travelled(by=index - self.cursor))

    def action_move(self, by: int) -> None:
        self.post_message(self.Travelled(by=by))

    def action_page(self, by: int) -> None:
        self.post_message(self.Travelled(by=by * max(self._page - 1, 1)))

    def action_first(self) -> None:
        self.post_message(self.Travelled(to="start"))

    def action_last(self) -> None:
        self.post_message(self.Travelled(to="live"))

    def copied(self) -> str:
        row = self.view.event
        return f"{row.what} #{row.ordinal}\t{row.detail}\t{row.file}:{row.line}" if row else ""


def _detail_role(row: EventRow) -> str:
    return {"CallRaised": "error", "NonfiniteOrigin": "error", "WarningSeen": "warning"}.get(row.kind, "dim")
