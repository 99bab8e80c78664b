"""The card of the first run: what the panes are and the six keys to know, while torch is being imported."""

from __future__ import annotations

from gradtui.tui.line import Line, fit, line, wrap

_PANES = (
    ("1 Source", "your program, an arrow on the gradient call about to run"),
    ("3 Parameters", "each gradient: none, zero, fresh (not used yet) or spent (used, not cleared)"),
    ("5 Accumulation", "what the selected gradient is made of, backward by backward"),
    ("7 Findings", "what is wrong, where, and what to do"),
)
_KEYS = (
    ("n", "run this call, stop before the next"),
    ("c", "continue; it stops by itself at an error finding"),
    ("B O Z", "run to the next backward, optimizer step, zero_grad"),
    ("[ ]", "look back and forth in what has happened; H returns to now"),
    ("1 … 8", "panes; z makes one large"),
    ("?", "all keys"),
)


def tour(width: int) -> list[Line]:
    """Rows of the card."""
    rows = [line()]
    for text in wrap(
        "gradtui stops your unmodified program before each call that changes gradients or uses them.", width
    ):
        rows.append(line(text))
    for table in (_PANES, _KEYS):
        rows.append(line())
        for name, text in table:
            for index, part in enumerate(wrap(text, width - 17)):
                rows.append(line((fit(name if not index else "", 16) + " ", "key"), part))
    return rows
