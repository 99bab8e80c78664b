"""The card behind `K`: what a rule, a gradient's state or a pane means, in plain words."""

from __future__ import annotations

from collections.abc import Callable
from inspect import cleandoc

from gradtui.tui import flags
from gradtui.tui.line import Line, line, wrap
from gradtui.tui.view import View

STATES = {
    "none": "There is no gradient tensor: .grad is None. The next backward makes one.",
    "zero": "The gradient is a tensor of zeros: cleared with set_to_none=False. The next backward adds to it.",
    "fresh": "A backward has written it since it was last cleared, and no optimizer step has used it yet.",
    "spent": "An optimizer step has used it and nothing has cleared it since. A backward now would add on top of the old gradient, and the next step would use both: clear it first.",
}
_PANES = {
    "source": "Your program as it ran. The arrow is on the gradient call that is about to run; a dot marks a line that has made one, the red mark a breakpoint.",
    "events": "Every gradient call so far, in order. Moving here moves all panes back in time; H returns to now.",
    "parameters": "Every tensor that can hold a gradient: its gradient's state, its norm, how many backwards have added to it since it was cleared, and its trend over the last backwards. A ' beside the norm: the last call changed it.",
    "gradient": "The selected parameter's .grad now. Colour is the sign and size of each cell: orange positive, blue negative. Cells that stand for several numbers show the largest of them.",
    "accumulation": "backward() adds to .grad, it never replaces it. This is the list of what was added since the gradient was last cleared: the norm of each addition, and of the running sum. cos is the angle between an addition and the sum before it: +1 the same way, 0 unrelated, negative against it.",
    "flow": "The size of gradients from the first module to the last on a log scale. A steady fall towards the input is a vanishing gradient; a steep rise an exploding one.",
    "findings": "What the rules found, in order of first sign. A question mark is a suspicion: it becomes a finding when something uses the harm.",
    "output": "What the script writes to its terminal.",
}


def explanation(topic: str, view: View) -> tuple[str, Callable[[int], list[Line]]]:
    """Title and rows for a rule's slug or a pane's name."""
    rule = rule_text(topic)
    if rule is not None:
        return topic, lambda width: _prose(rule, width)
    text = _PANES.get(topic, "Nothing is known about this.")
    return topic.capitalize(), lambda width: [*_prose(text, width), *_states(topic, view, width)]


def rule_text(slug: str) -> str | None:
    """A rule's documentation; None when there is no such rule."""
    try:
        from gradtui.rules import RULES
    except ImportError:
        return None
    found = next((rule for rule in RULES if rule.slug == slug), None)
    return cleandoc(found.__doc__ or "") if found else None


def _prose(text: str, width: int) -> list[Line]:
    rows: list[Line] = []
    for paragraph in text.split("\n\n"):
        label, colon, rest = " ".join(paragraph.split()).partition(": ")
        if colon and len(label) < 24:
            rows += [line(), line((label, "title-focus"))]
            paragraph = rest[:1].upper() + rest[1:]
        else:
            rows.append(line())
        rows += [line((row, "")) for row in wrap(" ".join(paragraph.split()), width)]
    return rows


def _states(topic: str, view: View, width: int) -> list[Line]:
    if topic not in ("parameters", "accumulation"):
        return []
    rows: list[Line] = []
    state = view.selected
    for name, text in STATES.items():
        rows += [
            line(),
            line((name, "key"), ("   the selected one now" if state and state.state == name else "", "accent")),
        ]
        rows += [line("  ", (row, "")) for row in wrap(text, width - 2)]
    if state and (found := flags.letters(state, view.counts.backward)):
        rows += [line(), line(("Its flags", "title-focus"))]
        rows += flags.explained(found, width)
    return rows
