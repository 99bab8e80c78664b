"""Python source to coloured rows: Pygments' tokens, cut at line ends, with roles instead of colours."""

from __future__ import annotations

from functools import lru_cache

from gradtui.tui.line import Span, printable

_TOO_LONG = 400_000
"""Characters beyond which a file is shown without colours: colouring takes about a second a megabyte."""


@lru_cache(maxsize=16)
def coloured(text: str) -> tuple[tuple[Span, ...], ...]:
    """One tuple of spans a line; never raises, whatever the text is."""
    if len(text) > _TOO_LONG:
        return tuple(((printable(row.expandtabs(4)), ""),) for row in text.split("\n"))
    from pygments.lexers.python import PythonLexer  # type: ignore[import-untyped]

    rows: list[tuple[Span, ...]] = []
    current: list[Span] = []
    for token, value in PythonLexer(stripnl=False, ensurenl=False).get_tokens(text.expandtabs(4)):
        role = _role(str(token))
        first, *more = value.split("\n")
        current.append((printable(first), role))
        for piece in more:
            rows.append(tuple(current))
            current = [(printable(piece), role)]
    rows.append(tuple(current))
    return tuple(rows)


def _role(token: str) -> str:
    """`Token.Keyword.Constant` to a role."""
    if token.startswith(("Token.Keyword", "Token.Operator.Word")):
        return "code-keyword"
    if token.startswith(("Token.Literal.String", "Token.String")):
        return "code-string"
    if token.startswith(("Token.Literal.Number", "Token.Number")):
        return "code-number"
    if token.startswith("Token.Comment"):
        return "code-comment"
    if token.startswith(("Token.Name.Function", "Token.Name.Class", "Token.Name.Decorator")):
        return "code-name"
    return ""
