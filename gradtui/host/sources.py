"""Reads the person's source files: what a call looks like as written, what it was made on, and which line an unannounced edit is likely on."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

from gradtui.events import CallSite

EditKind = Literal["zeroed", "edited", "updated", "rebound"]

_MAX_SOURCE = 200
_MAX_FILE = 4 * 1024 * 1024
_IN_PLACE = re.compile(r"^(?!requires_grad_|retain_grad|share_memory_|register_)[a-z][a-z0-9_]*_$")
_FUNCTIONS_WITH_LOSS = ("backward", "manual_backward")


class SourceFile:
    """One file as it was when the run met it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = text.splitlines()
        self._tree: ast.Module | None = None
        self._parsed = False
        self._calls: dict[tuple[int, int], ast.Call] | None = None

    @property
    def tree(self) -> ast.Module | None:
        """Its syntax tree; None when it does not parse."""
        if not self._parsed:
            self._parsed = True
            try:
                self._tree = ast.parse(self.text)
            except (SyntaxError, ValueError, RecursionError):
                self._tree = None
        return self._tree

    def call_ending(self, line: int, column: int) -> ast.Call | None:
        """The call whose closing bracket is there. Where a call begins is no guide: Python dates `(a +⏎ b).backward()` from its last line."""
        if self._calls is None:
            nodes = ast.walk(self.tree) if self.tree is not None else ()
            calls = (node for node in nodes if isinstance(node, ast.Call))
            self._calls = {(node.end_lineno or 0, node.end_col_offset or 0): node for node in calls}
        return self._calls.get((line, column))

    def segment(self, span: list[int]) -> str:
        """The text of a span (line, end line, UTF-8 column, end column)."""
        start, end, column, end_column = span
        if column < 0 or not (0 < start <= end <= len(self.lines)):
            return ""
        rows = [row.encode() for row in self.lines[start - 1 : end]]
        rows[-1] = rows[-1][:end_column]
        rows[0] = rows[0][column:]
        return b"\n".join(rows).decode("utf-8", "replace")


class Sources:
    """Every file a call site was in. `on_new` is told path and text of each at first sight."""

    def __init__(self, on_new: Callable[[str, str], None] | None = None) -> None:
        self._files: dict[str, SourceFile | None] = {}
        self._on_new = on_new

    def file(self, path: str) -> SourceFile | None:
        """The file, read once; None when it cannot be read."""
        if path not in self._files:
            self._files[path] = self._read(path)
        return self._files[path]

    def _read(self, path: str) -> SourceFile | None:
        try:
            if path.startswith("<") or Path(path).stat().st_size > _MAX_FILE:
                return None
            text = Path(path).read_text("utf-8", "replace")
        except (OSError, ValueError):
            return None
        if self._on_new is not None:
            self._on_new(path, text)
        return SourceFile(text)

    def site(self, raw: dict[str, Any]) -> CallSite:
        """A call site from the probe's description of it."""
        file, line, span = str(raw["file"]), int(raw["line"]), [int(n) for n in raw["span"]]
        source = self.file(file)
        text = _one_line(source.lines[line - 1]) if source and 0 < line <= len(source.lines) else ""
        framework = raw.get("framework")
        if framework:
            expression = self._expression(str(framework["file"]), int(framework["line"]), framework["span"])
            shown = _framework(framework)
        else:
            expression, shown = self._expression(file, line, span), ""
        return CallSite(file, line, str(raw["function"]).replace("<locals>.", ""), text, expression, shown)

    def _expression(self, file: str, line: int, span: list[int]) -> str:
        source = self.file(file)
        if source is None:
            return ""
        segment = source.segment(span)
        call = source.call_ending(span[1], span[3]) or _call_in(segment)
        if call is not None:
            return _made_on(call, segment)
        for node in _calls_on(source, line):
            return _made_on(node, source.text)
        return ""

    def edit_line(self, kind: EditKind, near: CallSite | None, names: tuple[str, ...] = ()) -> CallSite | None:
        """The line that most likely made an edit nobody announced: in the function of the call before it, else elsewhere in its file."""
        if near is None:
            return None
        source = self.file(near.file)
        if source is None or source.tree is None:
            return None
        found = [node for node in ast.walk(source.tree) if isinstance(node, ast.stmt) and _edits(node, kind)]
        if not found:
            return None
        inside = _function_at(source.tree, near.line)
        variables = {name.split(".")[-1].split("[")[0] for name in names}

        def distance(node: ast.stmt) -> tuple[int, int, int]:
            mentions = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
            here = 0 if inside is not None and inside[0] <= node.lineno <= inside[1] else 1
            after = node.lineno - near.line
            return (0 if variables & mentions else 1, here, after if after >= 0 else 10_000 - after)

        best = min(found, key=distance)
        text = _one_line(source.lines[best.lineno - 1])
        return CallSite(near.file, best.lineno, _function_name(source.tree, best.lineno), text, "", "")


def _one_line(text: str) -> str:
    return " ".join(text.split())[:_MAX_SOURCE]


def _framework(raw: dict[str, Any]) -> str:
    parts = Path(str(raw["file"])).parts
    for marker in ("site-packages", "dist-packages"):
        if marker in parts:
            parts = parts[len(parts) - parts[::-1].index(marker) :]
    return f"{'/'.join(parts[-4:])}:{raw['line']} {raw['function']}"


def _call_in(segment: str) -> ast.Call | None:
    if not segment:
        return None
    try:
        node = ast.parse(f"({segment}\n)", mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return None
    return node if isinstance(node, ast.Call) else None


def _calls_on(source: SourceFile, line: int) -> Iterator[ast.Call]:
    if source.tree is None:
        return
    for node in ast.walk(source.tree):
        if (
            isinstance(node, ast.Call)
            and node.lineno <= line <= (node.end_lineno or node.lineno)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("backward", "step", "zero_grad")
        ):
            yield node


def _made_on(call: ast.Call, text: str) -> str:
    """What a call was made on, as written: the receiver, or the first argument where that is what matters."""
    del text
    function = call.func
    if isinstance(function, ast.Attribute):
        receiver: ast.expr = function.value
        if function.attr in _FUNCTIONS_WITH_LOSS and call.args:
            return _written(call.args[0])
        if function.attr.startswith("clip_grad") or (
            function.attr == "backward" and _written(receiver).endswith("autograd")
        ):
            return _written(call.args[0]) if call.args else ""
        if (
            isinstance(receiver, ast.Call)
            and isinstance(receiver.func, ast.Attribute)
            and receiver.func.attr == "scale"
        ):
            return _written(receiver.args[0]) if receiver.args else _written(receiver)
        return _written(receiver)
    if isinstance(function, ast.Name) and call.args:
        return _written(call.args[0])
    return ""


def _written(node: ast.expr) -> str:
    try:
        return _one_line(ast.unparse(node))[:120]
    except (ValueError, RecursionError):
        return ""


def _function_at(tree: ast.Module, line: int) -> tuple[int, int] | None:
    best: tuple[int, int] | None = None
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            end = node.end_lineno or node.lineno
            if node.lineno <= line <= end and (best is None or node.lineno >= best[0]):
                best = (node.lineno, end)
    return best


def _function_name(tree: ast.Module, line: int) -> str:
    span = _function_at(tree, line)
    for node in ast.walk(tree):
        if span and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.lineno == span[0]:
            return node.name
    return "<module>"


def _is_grad(node: ast.expr) -> bool:
    """`X.grad`, or `X.grad.data`, `X.grad.detach()` …"""
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        if isinstance(node, ast.Attribute):
            if node.attr == "grad":
                return True
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        else:
            node = node.value
    return False


def _uses_grad(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Attribute) and part.attr == "grad" for part in ast.walk(node))


def _edits(node: ast.stmt, kind: EditKind) -> bool:
    """The statement is written like an edit of that kind."""
    match kind:
        case "zeroed":
            return _zeroes(node)
        case "edited":
            return _changes_grad(node)
        case "updated":
            return _updates(node)
        case _:
            return _rebinds(node)


def _targets(node: ast.stmt) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        flat: list[ast.expr] = []
        for target in node.targets:
            flat.extend(target.elts if isinstance(target, ast.Tuple) else [target])
        return flat
    return [node.target] if isinstance(node, (ast.AugAssign, ast.AnnAssign)) else []


def _method(node: ast.stmt) -> tuple[ast.expr, str] | None:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
        return node.value.func.value, node.value.func.attr
    return None


def _zeroes(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assign):
        nothing = any(isinstance(part, ast.Constant) and part.value is None for part in ast.walk(node.value))
        return nothing and any(isinstance(t, ast.Attribute) and t.attr == "grad" for t in _targets(node))
    called = _method(node)
    return (
        called is not None
        and called[1] in ("zero_", "fill_", "zero_grad")
        and (_is_grad(called[0]) or called[1] == "zero_grad")
    )


def _changes_grad(node: ast.stmt) -> bool:
    if isinstance(node, (ast.Assign, ast.AugAssign)) and not _zeroes(node):
        return any(_is_grad(target) for target in _targets(node))
    called = _method(node)
    return called is not None and bool(_IN_PLACE.match(called[1])) and called[1] != "zero_" and _is_grad(called[0])


def _updates(node: ast.stmt) -> bool:
    if isinstance(node, ast.AugAssign):
        return not _is_grad(node.target) and (
            _uses_grad(node.value) or (isinstance(node.target, (ast.Name, ast.Attribute)) and _uses_grad(node))
        )
    if isinstance(node, ast.Assign):
        data = any(isinstance(t, ast.Attribute) and t.attr == "data" and not _is_grad(t) for t in _targets(node))
        return data or (_uses_grad(node.value) and not any(_is_grad(t) for t in _targets(node)))
    called = _method(node)
    return (
        called is not None
        and bool(_IN_PLACE.match(called[1]))
        and not _is_grad(called[0])
        and called[1] not in ("zero_", "backward_")
    )


def _rebinds(node: ast.stmt) -> bool:
    if not isinstance(node, ast.Assign) or not _uses_grad(node.value):
        return False
    names = {part.id for part in ast.walk(node.value) if isinstance(part, ast.Name)}
    return any(isinstance(target, ast.Name) and target.id in names for target in _targets(node))
