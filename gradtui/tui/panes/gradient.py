"""Gradient: the selected parameter's live `.grad`, as a signed heat map or as numbers, with its statistics. Asks for what fits, no more."""

from __future__ import annotations

from typing import Literal

from textual.message import Message

from gradtui.tui import figures, heat
from gradtui.tui.glyphs import UNICODE
from gradtui.tui.line import Line, Span, clip, elide, line, width_of
from gradtui.tui.view import TensorWish, View
from gradtui.tui.widgets.list_pane import ListPane
from gradtui.wire.messages import TensorView

STATS = 29
"""Width of the column of statistics."""
CELL = 10
"""Width of a number."""
Mode = Literal["heat", "values"]


class GradientPane(ListPane):
    """A bounded picture of one tensor."""

    name_ = "gradient"
    title = "Gradient"

    class Wished(Message):
        """The pane could show this much of the tensor."""

        def __init__(self, wish: TensorWish) -> None:
            super().__init__()
            self.wish = wish

    plain = False
    """Draw with glyphs whatever the palette: a cell takes 2 bytes where a coloured one takes 27 to 43."""

    def __init__(self) -> None:
        super().__init__()
        self.mode: Mode = "heat"
        self.scale: heat.Scale = "linear"
        self.what: Literal["grad", "value"] = "grad"
        self.absolute = False
        self.index: tuple[int, ...] = ()
        self.spot = (0, 0)
        """Row and column: of the marked cell in heat, of the first number in values."""
        self._wished: tuple[int, TensorWish] | None = None

    # -- asking

    def watch_view(self) -> None:
        state = self.view.selected
        if state is not None and self._wished and self._wished[0] != state.info.id:
            self.index, self.spot = (), (0, 0)
        super().watch_view()
        self._wish()

    def on_resize(self) -> None:
        self._wish()

    def _wish(self) -> None:
        state = self.view.selected
        width, height = self.size.width - self.edged, self.size.height - 1
        if state is None or not self.display or width < 20 or height < 3:
            return
        room = self._room(width)
        rows = height if self._by_glyphs else 2 * height
        wish = TensorWish(
            what=self.what,
            rows=rows if self.mode == "heat" else 1,
            columns=room if self.mode == "heat" else 1,
            index=self.index,
            values_at=self.spot if self.mode == "values" else (0, 0),
            values=(height - 1, max(room // CELL, 1)) if self.mode == "values" else (0, 0),
        )
        if self._wished != (state.info.id, wish):
            self._wished = (state.info.id, wish)
            self.post_message(self.Wished(wish))

    @property
    def _by_glyphs(self) -> bool:
        return self.plain or not self.palette.heat or self.glyphs is not UNICODE

    def _room(self, width: int) -> int:
        return width - STATS - 3 if width >= 56 else width - 2

    # -- drawing

    def heading(self, view: View) -> tuple[list[Span], list[Span]]:
        state = view.selected
        if state is None:
            return [], []
        name = elide(state.info.name, max(self.size.width - 40, 12), self.glyphs.ellipsis)
        suffix = ".grad" if self.what == "grad" else " (value)"
        how = f"{self.mode} {'|g| ' if self.absolute else ''}{self.scale}" if self.mode == "heat" else self.mode
        picture = view.tensor.view
        other = picture is not None and (picture.parameter != state.info.id or picture.what != self.what)
        age = "reading, " if other else "old, " if view.tensor.stale else ""
        return [(name + suffix, "accent")], [(age, "warning"), (how, "dim")]

    def count(self, view: View) -> int:
        return 1 if view.tensor.view else 0

    def content(self, view: View, width: int, height: int) -> list[Line]:
        picture = view.tensor.view
        if view.selected is None:
            return self.nothing(view, width)
        if picture is None:
            return self.empty(width, view.tensor.note or "Reading the tensor…")
        if picture.missing:
            return self.empty(width, *self._missing(view, picture))
        if width < 56 and height > 4:
            summary = self._summary(picture, width)[:2]
            return [*self._picture(picture, width - 2, height - len(summary)), *summary]
        if width < 56:
            return self._picture(picture, width - 2, height)
        left, right = self._picture(picture, self._room(width), height), self._summary(picture, STATS, height)
        return [self._side_by_side(left, right, y, self._room(width)) for y in range(height)]

    def _missing(self, view: View, picture: TensorView) -> list[str]:
        state = view.selected
        assert state is not None
        paragraphs = [picture.missing]
        if state.cleared:
            owner = {"hand": "by hand"}.get(state.cleared.by, f"by {state.cleared.owner}")
            site = state.cleared.site
            paragraphs.append(f"It was cleared {owner}" + (f" at line {site.line}." if site else "."))
        next_is_backward = view.where is not None and view.where.kind == "backward"
        how = "n runs the backward under the arrow" if next_is_backward else "B runs to the next backward"
        return [*paragraphs, f"{how}; w shows the parameter itself."]

    def _side_by_side(self, left: list[Line], right: list[Line], y: int, room: int) -> Line:
        shown = left[y].spans if y < len(left) else ()
        pad = room - sum(width_of(text) for text, _ in shown)
        return Line((*shown, (" " * (pad + 2), ""), *(right[y].spans if y < len(right) else ())))

    def _picture(self, picture: TensorView, width: int, height: int) -> list[Line]:
        if self.mode == "values":
            return self._numbers(picture, width, height)
        sizes = [[abs(value) for value in row] for row in picture.grid] if self.absolute else picture.grid
        shades = heat.Shades(sizes, self.scale)
        grid, down, across = heat.stretched(sizes, width - 1, height if self._by_glyphs else 2 * height)
        rows = heat.ramp(grid, shades, self.glyphs) if self._by_glyphs else heat.blocks(grid, shades)
        self._mark_spot(rows, down, across)
        return [line(" ", *row[: width - 1]) for row in rows[:height]]

    def _mark_spot(self, rows: list[list[Span]], tall: int, wide: int) -> None:
        if not self.has_focus:
            return
        down, across = self.spot[0] * tall + tall // 2, self.spot[1] * wide + (wide - 1) // 2
        down = down if self._by_glyphs else down // 2
        if down < len(rows) and across < len(rows[down]):
            rows[down][across] = ("+", "title-focus")

    def _numbers(self, picture: TensorView, width: int, height: int) -> list[Line]:
        top, left = picture.values_at
        columns = max((width - 6) // CELL, 1)
        head = "".join(
            f"{left + i:>{CELL}}" for i in range(min(columns, len(picture.values[0]) if picture.values else 0))
        )
        rows = [line((" " * 6 + head, "dim"))]
        for offset, numbers in enumerate(picture.values[: height - 1]):
            cells: list[Span] = [(f"{figures.signed(v):>{CELL}}", _sign_role(v)) for v in numbers[:columns]]
            rows.append(line((f"{top + offset:>5} ", "dim"), *cells))
        return rows

    def _summary(self, picture: TensorView, width: int, height: int = 2) -> list[Line]:
        """Shape, norm, extremes, odd values, and a histogram where there is room."""
        zeros = f"{picture.zeros / picture.count:.1%}" if picture.count else "-"
        bad = picture.nans + picture.infs
        device = f" {picture.device}" if picture.device else ""
        rows = [
            line(
                (clip(f"{figures.shape(picture.shape)} {picture.dtype.removeprefix('torch.')}{device}", width), "dim")
            ),
            line(("norm ", "dim"), (figures.norm(picture.norm), "strong"), (self._scale_note(picture), "warning")),
            line(
                ("mean ", "dim"),
                (f"{figures.signed(picture.mean)} ", ""),
                ("std ", "dim"),
                (figures.norm(picture.std), ""),
            ),
            self._extreme("min", picture.minimum, picture.minimum_at, width),
            self._extreme("max", picture.maximum, picture.maximum_at, width),
            line(
                ("zero ", "dim"), (zeros, ""), (f"  nan {picture.nans}  inf {picture.infs}", "error" if bad else "dim")
            ),
        ]
        tail = self._legend(picture, width)
        room = height - len(rows) - len(tail) - 2
        return [*rows, *(self._histogram(picture, min(room, 5)) if room >= 2 else []), *tail]

    def _scale_note(self, picture: TensorView) -> str:
        return f"  scaled {self.glyphs.times}{figures.short(picture.scale)}" if picture.scale != 1.0 else ""

    def _extreme(self, name: str, value: float, at: tuple[int, ...], width: int) -> Line:
        place = f" at {figures.shape(at)}" if at else ""
        return line((f"{name}  ", "dim"), (figures.signed(value), _sign_role(value)), (clip(place, width - 14), "dim"))

    def _histogram(self, picture: TensorView, height: int) -> list[Line]:
        if not picture.histogram:
            return []
        rows = [line((text, "accent")) for text in heat.histogram(picture.histogram, height, self.glyphs)]
        size = len(picture.histogram)
        low, high = figures.short(picture.edges[0]), figures.short(picture.edges[-1])
        return [line(), *rows, line((low + high.rjust(max(size - len(low), len(high) + 1)), "dim"))]

    def _legend(self, picture: TensorView, width: int) -> list[Line]:
        """How the picture is to be read: pooling, slice, the marked cell."""
        rows: list[Line] = []
        if self.mode == "heat":
            down, across = picture.pooled
            if down * across > 1:
                rows.append(line((f"cell = largest of {down}{self.glyphs.times}{across}", "dim")))
            if self.has_focus and (cell := self._cell(picture)):
                rows.append(line((clip(cell, width), "strong")))
        if len(picture.shape) > 2:
            rows.append(line((clip(f"slice {figures.shape(picture.index)}  x X other", width), "dim")))
        return rows

    def _cell(self, picture: TensorView) -> str:
        row, column = self.spot
        if row >= len(picture.grid) or column >= len(picture.grid[row]):
            return ""
        down, across = picture.pooled
        return f"[{row * down},{column * across}] {figures.signed(picture.grid[row][column])}"

    def nothing(self, view: View, width: int) -> list[Line]:
        if not view.parameters:
            return self.empty(
                width, "A picture of one gradient appears once there are parameters. Press B to run to a backward."
            )
        return self.empty(width, "Choose a parameter in pane 3 to see its gradient.")

    # -- what the person did

    def action_move(self, by: int) -> None:
        self._shift(by, 0)

    def action_shift(self, by: int) -> None:
        self._shift(0, by)

    def action_page(self, by: int) -> None:
        self._shift(by * 10, 0)

    def action_first(self) -> None:
        self.spot = (0, 0)
        self._shift(0, 0)

    def action_last(self) -> None:
        self._shift(1 << 20, 1 << 20)

    def _shift(self, down: int, across: int) -> None:
        picture = self.view.tensor.view
        if picture is None:
            return
        rows, columns = picture.plane
        if self.mode == "heat":
            rows, columns = len(picture.grid), len(picture.grid[0]) if picture.grid else 0
        row, column = self.spot
        self.spot = (min(max(row + down, 0), max(rows - 1, 0)), min(max(column + across, 0), max(columns - 1, 0)))
        self._wish()
        self.paint()

    def action_view(self) -> None:
        self.mode = "values" if self.mode == "heat" else "heat"
        self.spot = (0, 0)
        self._wish()
        self.paint()

    def action_scale(self) -> None:
        self.scale = heat.SCALES[(heat.SCALES.index(self.scale) + 1) % len(heat.SCALES)]
        self.paint()

    def action_absolute(self) -> None:
        self.absolute = not self.absolute
        self.paint()

    def action_what(self) -> None:
        self.what = "value" if self.what == "grad" else "grad"
        self._wish()
        self.paint()

    def action_slice(self, by: int) -> None:
        """Step through the leading dimensions as one number, odometer fashion."""
        picture = self.view.tensor.view
        leading = picture.shape[:-2] if picture else ()
        if not leading:
            return
        index = list(self.index or (0,) * len(leading))
        for axis in range(len(leading) - 1, -1, -1):
            index[axis] += by
            if 0 <= index[axis] < leading[axis]:
                break
            index[axis] %= leading[axis]
        self.index = tuple(index)
        self._wish()
        self.paint()

    def copied(self) -> str:
        picture = self.view.tensor.view
        return self._cell(picture) if picture and self.mode == "heat" else self.text()


def _sign_role(value: float) -> str:
    if value - value != 0:
        return "error"
    return "positive" if value > 0 else "negative" if value < 0 else "dim"
