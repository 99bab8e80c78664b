"""Flow: the size of gradients from the first module to the last, on a log scale, where vanishing and exploding show."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, floor, inf, isfinite, log10, sqrt

from textual.message import Message

from gradtui.ledger.state import ParameterState
from gradtui.tui import figures, flags
from gradtui.tui.line import Line, Span, elide, fit, line
from gradtui.tui.view import View
from gradtui.tui.widgets.list_pane import ListPane


@dataclass(slots=True)
class ModuleFlow:
    """One module's parameters taken together."""

    name: str
    states: list[ParameterState] = field(default_factory=list)

    @property
    def norm(self) -> float:
        """Norm of all its gradients as one vector; -1.0 when it has none."""
        held = [state.norm for state in self.states if state.state != "none"]
        return sqrt(sum(norm * norm for norm in held)) if held else -1.0

    @property
    def last(self) -> float:
        """The same after the last backward, also when it has been cleared since; -1.0 before any."""
        held = [state.history[-1] for state in self.states if state.history]
        return sqrt(sum(norm * norm for norm in held)) if held else -1.0


def modules(parameters: dict[int, ParameterState]) -> list[ModuleFlow]:
    """Parameters grouped by the module that holds them, in the order they were met."""
    found: dict[str, ModuleFlow] = {}
    for state in parameters.values():
        name = state.info.name
        owner = name.rpartition(".")[0] if state.info.module or state.info.registered else name
        found.setdefault(owner or name, ModuleFlow(owner or name)).states.append(state)
    return list(found.values())


class FlowPane(ListPane):
    """A bar a module."""

    name_ = "flow"
    title = "Flow"

    class Opened(Message):
        """The person wants to see a module's parameters."""

        def __init__(self, module: str, parameter: int) -> None:
            super().__init__()
            self.module = module
            self.parameter = parameter

    def __init__(self) -> None:
        super().__init__()
        self._modules: list[ModuleFlow] = []
        self._low, self._high = -6, 2

    def watch_view(self) -> None:
        self._modules = modules(self.view.parameters)
        shown = [norm for module in self._modules for norm in (module.norm, module.last)]
        norms = [log10(norm) for norm in shown if isfinite(norm) and norm > 0]
        low, high = (floor(min(norms)), ceil(max(norms) + 1e-9)) if norms else (-6, 2)
        self._low, self._high = max(low - 1, high - 16), max(high, low + 2)
        super().watch_view()

    def heading(self, view: View) -> tuple[list[Span], list[Span]]:
        cleared = any(module.norm < 0 <= module.last for module in self._modules)
        note = f"   {self.glyphs.old} cleared since" if cleared else ""
        return [(f"|grad| by module, log scale{note}", "dim")], self.place(view)

    def count(self, view: View) -> int:
        return len(self._modules)

    def _name_width(self, width: int) -> int:
        longest = max((len(module.name) for module in self._modules), default=8)
        return min(longest, max(width * 2 // 5, 12))

    def header(self, view: View, width: int) -> list[Line]:
        name = self._name_width(width - 2)
        room = max(width - 2 - name - 16, 4)
        scale = [" "] * (room + 6)
        step = max(1, ceil((self._high - self._low) * 7 / room))
        for exponent in range(self._low, self._high + 1, step):
            at = round((exponent - self._low) / (self._high - self._low) * room)
            for offset, char in enumerate(f"1e{exponent}"):
                if at + offset < len(scale):
                    scale[at + offset] = char
        return [line(" " * (name + 3), ("".join(scale), "dim"))]

    def row(self, view: View, index: int, width: int) -> list[Span]:
        module = self._modules[index]
        name = self._name_width(width)
        room = max(width - name - 16, 4)
        cleared = module.norm < 0 <= module.last
        norm = module.last if cleared else module.norm
        letters = sorted({c for s in module.states for c in flags.letters(s, view.counts.backward)} - set("FDC"))
        figure = "None" if norm < 0 else figures.norm(norm)
        finite = all(state.finite for state in module.states)
        return [
            (fit(elide(module.name, name, self.glyphs.ellipsis), name) + " ", ""),
            (fit(self._bar(norm, room, cleared), room), "error" if not finite else "dim" if cleared else "accent"),
            (" " + fit(figure, 9), "error" if not finite else "dim" if cleared else "strong"),
            (" " + "".join(letters), "warning" if finite else "error"),
        ]

    def _bar(self, norm: float, room: int, cleared: bool) -> str:
        if not isfinite(norm):
            return "!" * room
        if norm <= 0:
            return ""
        bar = figures.bar(log10(norm) - self._low, self._high - self._low, room, self.glyphs)
        return self.glyphs.old * len(bar) if cleared else bar

    def nothing(self, view: View, width: int) -> list[Line]:
        return self.empty(width, "Gradient sizes by module appear after the first backward. Press B to run to one.")

    def notable(self, view: View, index: int) -> bool:
        return not 0 < self._modules[index].norm < inf

    def opened(self) -> None:
        module = self._modules[self.cursor]
        self.post_message(self.Opened(module.name, module.states[0].info.id))

    def copied(self) -> str:
        return "\n".join(f"{module.name}\t{figures.norm(module.norm)}" for module in self._modules)
