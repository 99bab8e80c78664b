"""Letters beside a parameter: what its gradient's state and the findings say about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isnan

from gradtui.ledger.state import GradState, ParameterState
from gradtui.rules.finding import Finding
from gradtui.tui.glyphs import Glyphs
from gradtui.tui.line import Line, Span, fit, line, wrap

FLAGS: dict[str, str] = {
    "N": "NaN in the gradient",
    "I": "infinite values in the gradient",
    "S": "new contributions on top of a gradient that a step has already used: not cleared",
    "Z": "the gradient is exactly zero after a backward",
    "U": "no backward has reached it yet",
    "A": "the gradient still carries a loss scale (AMP)",
    "C": "clipped since it was last cleared",
    "E": "edited by hand since it was last cleared",
    "F": "frozen: requires_grad is False",
    "D": "shared: known under more than one name",
}
"""What each letter means; `K` and the help print it."""


def explained(letters: Iterable[str], width: int) -> list[Line]:
    """A row or more for each letter: what it means."""
    return [
        line((fit("" if index else letter, 3), "key"), (row, ""))
        for letter in letters
        for index, row in enumerate(wrap(FLAGS.get(letter, ""), width - 3))
    ]


def marks(glyphs: Glyphs) -> dict[str, str]:
    """The marks in a row of Parameters that are not letters, and what they mean."""
    return {
        "'": "beside the norm: the last call changed this gradient",
        glyphs.error: "an error was found about it: 7 shows it",
        glyphs.warning: "a warning was found about it",
    }


_RULE_FLAGS = {"exploding-gradient": "X", "vanishing-gradient": "V", "dead-gradient": "Z", "stale-gradient": "S"}
_BAD = {"N", "I", "S"}


def stale(state: ParameterState) -> bool:
    """It holds contributions that a step has used, and newer ones on top of them."""
    used = [bool(item.used_by) for item in state.contributions]
    return state.steps_since_clear > 0 and (any(used) or state.folded > 0) and not all(used)


def letters(state: ParameterState, backwards: int) -> str:
    """Flags that follow from the gradient's state alone, gravest first."""
    info = state.info
    found = "" if state.finite else "N" if isnan(state.norm) else "I"
    found += "S" if stale(state) else ""
    found += "Z" if state.state == "fresh" and state.norm == 0.0 else ""
    found += "U" if info.requires_grad and not state.backwards and backwards else ""
    found += "A" if state.scale != 1.0 and state.state in ("fresh", "spent") else ""
    found += "C" if state.clipped else ""
    found += "E" if state.edited else ""
    return found + ("" if info.requires_grad else "F") + ("D" if info.shared else "")


def spans(state: ParameterState, backwards: int, findings: Sequence[Finding], glyphs: Glyphs) -> list[Span]:
    """The flags cell: letters, then the mark of the gravest finding about this parameter."""
    found = letters(state, backwards)
    found += "".join(
        letter for rule, letter in _RULE_FLAGS.items() if letter not in found and any(f.rule == rule for f in findings)
    )
    parts: list[Span] = [(letter, _role(letter)) for letter in found]
    for severity, mark in (("error", glyphs.error), ("warning", glyphs.warning)):
        if any(finding.severity == severity for finding in findings):
            return [*parts, (mark, severity)]
    return parts


def _role(letter: str) -> str:
    if letter in _BAD:
        return "error"
    return "warning" if letter in "ZXVA" else "dim"


def state_mark(state: GradState, glyphs: Glyphs) -> str:
    """The glyph of a gradient's state."""
    return {"none": glyphs.none, "zero": glyphs.zero, "fresh": glyphs.fresh, "spent": glyphs.spent}[state]


def state_role(state: GradState) -> str:
    """The colour of a gradient's state."""
    return {"none": "dim", "zero": "dim", "fresh": "ok", "spent": "warning"}[state]
