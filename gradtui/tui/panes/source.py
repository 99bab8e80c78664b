"""Source: the program as it ran, an arrow on the call about to run, marks on lines that made gradient calls."""

from __future__ import annotations

from pathlib import PurePath

from gradtui.tui import figures
from gradtui.tui.code_lines import coloured
from gradtui.tui.line import Line, Span, clip, justify, width_of
from gradtui.tui.view import View
from gradtui.tui.widgets.list_pane import ListPane

_WORDS = {
    "zero_grad": "zero_grad",
    "scaler_step": "scaler.step",
    "scaler_update": "scaler.update",
}


class SourcePane(ListPane):
    """A listing that follows the arrow until the person moves in it."""

    name_ = "source"
    title = "Source"

    def __init__(self) -> None:
        super().__init__()
        self._followed: tuple[str, int, int] = ("", 0, 0)

    def watch_view(self) -> None:
        view = self.view
        here = (view.source.file if view.source else "", view.line, view.cursor)
        if here != self._followed:
            self._followed = here
            self._centre(view)
        super().watch_view()

    def on_resize(self) -> None:
        self._page = max(self.size.height - 1, 1)
        self._centre(self.view)

    def _centre(self, view: View) -> None:
        if view.line:
            self.cursor = view.line - 1
            self.top = max(self.cursor - (self._page - 1) // 2, 0)

    def count(self, view: View) -> int:
        return len(view.source.lines) if view.source else 0

    def heading(self, view: View) -> tuple[list[Span], list[Span]]:
        if not view.source:
            return [], []
        name = PurePath(view.source.file).name
        right = "" if view.source.kept else "as on disk now"
        place = f"{name}:{view.line}" if view.line else name
        stack = " < ".join(frame.function.rpartition(".")[2] for frame in view.frames[:4])
        room = self.size.width - width_of(place) - 22
        return [(place, "dim")], [(clip(stack or right, max(room, 0), self.glyphs.ellipsis), "dim")]

    def _row(self, view: View, index: int, width: int) -> Line:
        assert view.source is not None
        number = index + 1
        here = number == view.line
        digits = max(3, len(str(len(view.source.lines))))
        rows = coloured("\n".join(view.source.lines))
        code = rows[index] if index < len(rows) else ()
        arrow = (self.glyphs.arrow if view.live else self.glyphs.back) if here else " "
        spans: list[Span] = [
            (f"{arrow}{number:>{digits}}", "current" if here else "dim"),
            self._mark(view, number),
            (" ", ""),
        ]
        spans += _cropped(code, width - digits - 4)
        room = width - sum(width_of(text) for text, _ in spans) - 2
        note = next(([note] for note in self._notes(view, number) if width_of(note[0]) <= room), [])
        bar = "current" if here else "select" if self.has_focus and index == self.cursor else ""
        return Line(justify(spans, note, width).spans, bar)

    def _mark(self, view: View, number: int) -> Span:
        assert view.source is not None
        if any(b.line == number and b.file == view.source.file for b in view.breakpoints):
            return (self.glyphs.breakpoint, "breakpoint")
        return (self.glyphs.event, "accent") if number in view.marks else (" ", "")

    def _notes(self, view: View, number: int) -> list[Span]:
        """What may stand at the right end of a line, the longest first: the call about to run, or how often one ran here."""
        if number == view.line and view.live and view.where:
            where = view.where
            name = f"{self.glyphs.stopped} {_WORDS.get(where.kind, where.kind)} #{where.ordinal}"
            value = f" = {figures.short(where.value)}" if where.value is not None else ""
            on = f"  {clip(where.expression, 24)}{value}" if where.kind == "backward" and where.expression else ""
            texts = (f"{name} next{on} ", f"{name} next ", f"{name} ", f"{self.glyphs.stopped} ")
            return [(text, "stopped") for text in texts]
        mark = view.marks.get(number)
        if mark is None:
            return []
        times = f"{self.glyphs.times}{figures.count(mark.count)} "
        return [(f"{_WORDS.get(mark.kind, mark.kind)} {times}", "dim"), (times, "dim")]

    def nothing(self, view: View, width: int) -> list[Line]:
        if view.source is not None:
            return self.empty(width, "The file is empty.")
        if view.state in ("starting", "running"):
            return self.empty(width, "The program's source appears here at its first gradient call.")
        return self.empty(width, "The source of this call cannot be read.")

    def notable(self, view: View, index: int) -> bool:
        return index + 1 in view.marks

    def copied(self) -> str:
        source = self.view.source
        return (
            f"{source.file}:{self.cursor + 1}: {source.lines[self.cursor].strip()}" if source and source.lines else ""
        )


def _cropped(code: tuple[Span, ...], room: int) -> list[Span]:
    kept: list[Span] = []
    for text, role in code:
        if room <= 0:
            break
        piece = clip(text, room) if width_of(text) > room else text
        kept.append((piece, role))
        room -= width_of(piece)
    return kept
