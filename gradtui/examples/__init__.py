"""Training scripts that come with gradtui, to try it on; finds and describes them without importing or running any."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from gradtui.errors import UsageError

_HERE = Path(__file__).resolve().parent

_NAMES = (
    "char_gru",
    "digits_cnn",
    "accumulate",
    "two_losses",
    "gan",
    "amp",
    "lbfgs",
    "by_hand",
    "no_zero_grad",
)
"""In the order shown to people."""


@dataclass(frozen=True, slots=True)
class Example:
    """A bundled training script; an ordinary program that runs without gradtui too."""

    name: str
    title: str
    """First line of its docstring, without the full stop."""
    path: Path


def examples() -> tuple[Example, ...]:
    """All bundled scripts, simplest to start with first."""
    return tuple(_described(name) for name in _NAMES)


def example(name: str) -> Example:
    """The script of that name. Raises UsageError, naming near ones, when there is none."""
    if name in _NAMES:
        return _described(name)
    near = get_close_matches(name, _NAMES, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(_NAMES)}"
    raise UsageError(f"no example named {name!r}: {hint}")


def _described(name: str) -> Example:
    path = _HERE / f"{name}.py"
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or name
    return Example(name, docstring.splitlines()[0].rstrip("."), path)
