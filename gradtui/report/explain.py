"""A rule's documentation as text for `gradtui explain`: its docstring is what people read."""

from __future__ import annotations

import inspect

from gradtui.report.style import Style
from gradtui.rules import BY_SLUG, RULES
from gradtui.rules.rule import Rule


def overview(style: Style | None = None) -> str:
    """Every rule with its severity and its first sentence, in the order of the rooms they belong to."""
    style = style or Style()
    width = max(len(rule.slug) for rule in RULES) + 2
    lines = []
    for rule in RULES:
        first = _paragraphs(rule)[0]
        indent = " " * (width + 8)
        head = f"{rule.severity.ljust(8)}{rule.slug.ljust(width)}"
        body = style.wrap(first, indent, head)
        lines.append(style.severity(rule.severity) + body[len(rule.severity) :])
    lines.append("")
    lines.append("gradtui explain RULE says more about one of them.")
    return "\n".join(lines) + "\n"


def explain(slug: str, style: Style | None = None) -> str:
    """What a rule means, why it matters, and what to do. Raises KeyError for a slug that is none."""
    style = style or Style()
    rule = BY_SLUG[slug]
    title = f"{style.paint(rule.slug, 'bold')} ({style.severity(rule.severity)})"
    blocks = [title]
    for paragraph in _paragraphs(rule):
        label, colon, rest = paragraph.partition(": ")
        if colon and label in ("What it means", "Why it matters", "What to do"):
            blocks.append(style.paint(label, "bold") + "\n" + style.wrap(rest[:1].upper() + rest[1:], "  "))
        else:
            blocks.append(style.wrap(paragraph, ""))
    return "\n\n".join(blocks) + "\n"


def _paragraphs(rule: type[Rule]) -> list[str]:
    text = inspect.cleandoc(rule.__doc__ or rule.slug)
    return [" ".join(block.split()) for block in text.split("\n\n")]
