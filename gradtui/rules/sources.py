"""Finds the line a person must change by reading their source, where events alone name only the line that suffered. Parses; never runs.

What it returns is a likely line and is used as such: it never makes or unmakes a finding.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterable, Iterator

from gradtui.events import CallSite
from gradtui.ledger import Ledger

_CUTS = ("detach", "numpy", "item", "tolist", "argmax", "no_grad", "inference_mode", "detach_")
_MOST_FILES = 12


class Sources:
    """The person's files, read through a function that the host gives; empty without one."""

    def __init__(self, read: Callable[[str], str | None] | None = None) -> None:
        self._read = read
        self._trees: dict[str, tuple[ast.Module, list[str]] | None] = {}

    def files(self, ledger: Ledger) -> list[str]:
        """Files that make gradient calls, then local modules that these import."""
        if self._read is None:
            return []
        found: dict[str, None] = {}
        for lines in ledger.lines.values():
            found.update(dict.fromkeys(file for file, _ in lines if file and not file.startswith("<")))
        for file in list(found):
            found.update(dict.fromkeys(self._imports(file)))
        return list(found)[:_MOST_FILES]

    def _imports(self, file: str) -> Iterator[str]:
        parsed = self._parse(file)
        folder = os.path.dirname(file)
        for node in ast.walk(parsed[0]) if parsed else ():
            names: list[str] = []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            for name in names:
                path = os.path.join(folder, *name.split(".")) + ".py"
                if self._parse(path) is not None:
                    yield path

    def _parse(self, file: str) -> tuple[ast.Module, list[str]] | None:
        if file not in self._trees:
            self._trees[file] = None
            try:
                text = self._read(file) if self._read is not None else None
                if text is not None:
                    self._trees[file] = (ast.parse(text), text.splitlines())
            except (OSError, SyntaxError, ValueError, RecursionError):
                pass
        return self._trees[file]

    # -- what is looked for ---------------------------------------------------------------------------------------

    def requires_grad_set(self, near: CallSite | None) -> CallSite | None:
        """Where the loss itself is made to require a gradient, in the function of that backward."""
        for node in self._statements_around(near):
            if _sets_requires_grad(node):
                return self._site(near.file if near else "", node)
        return None

    def cuts(self, ledger: Ledger, modules: Iterable[str]) -> list[CallSite]:
        """Lines that cut the graph: in the forward of one of these classes or of a class that calls it, else in any forward."""
        wanted = set(modules)
        near: list[CallSite] = []
        far: list[CallSite] = []
        for file in self.files(ledger):
            parsed = self._parse(file)
            if parsed is None:
                continue
            for function, owner in _functions(parsed[0]):
                in_forward = owner != "" and function.name in ("forward", "__call__")
                for node in _simple_statements(function):
                    if _cuts_graph(node) and not _only_logs(node):
                        kept = near if owner in wanted else far if in_forward else None
                        if kept is not None:
                            kept.append(self._site(file, node, function.name))
        return (near or far)[:3]

    def holders(self, ledger: Ledger, names: Iterable[str]) -> list[CallSite]:
        """Lines that add something to one of these variables, or append to it."""
        wanted = {name.split(".")[-1].split("[")[0] for name in names}
        found = []
        for file in self.files(ledger):
            parsed = self._parse(file)
            for node in _all_statements(parsed[0]) if parsed else ():
                if wanted & _grown(node):
                    found.append(self._site(file, node))
        return found[:3]

    def growing(self, near: CallSite | None) -> list[tuple[str, CallSite]]:
        """(variable, line) of running sums of tensors in the function of that backward: `total += loss`."""
        found = []
        for node in self._statements_around(near):
            for name in _grown(node):
                if near is not None and not _takes_number(node) and _mentions(node, near.expression):
                    found.append((name, self._site(near.file, node)))
        return found

    def carried(self, near: CallSite | None) -> tuple[tuple[str, ...], CallSite | None]:
        """Variables that a call both takes and gives back in the function of that backward: `out, h = model(x, h)`."""
        for node in self._statements_around(near):
            if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
                continue
            taken = {
                part.id
                for arg in [*node.value.args, *(k.value for k in node.value.keywords)]
                for part in ast.walk(arg)
                if isinstance(part, ast.Name)
            }
            given = [part.id for target in node.targets for part in ast.walk(target) if isinstance(part, ast.Name)]
            names = tuple(name for name in given if name in taken)
            if names and near is not None:
                return names, self._site(near.file, node)
        return (), None

    def assigned(self, ledger: Ledger, attribute: str, calls: bool = True) -> list[CallSite]:
        """Lines that assign to `….attribute`, those in an `__init__` first; with `calls`, only those whose value is made by a call or a list."""
        found: list[tuple[bool, CallSite]] = []
        for file in self.files(ledger):
            parsed = self._parse(file)
            at_birth = (
                {
                    part
                    for function, _ in _functions(parsed[0])
                    if function.name == "__init__"
                    for part in ast.walk(function)
                }
                if parsed
                else set()
            )
            for node in _all_statements(parsed[0]) if parsed else ():
                if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                    hit = any(isinstance(t, ast.Attribute) and t.attr == attribute for t in targets)
                    if hit and (
                        not calls or isinstance(node.value, (ast.Call, ast.List, ast.Dict, ast.ListComp, ast.DictComp))
                    ):
                        found.append((node in at_birth, self._site(file, node)))
        found.sort(key=lambda pair: (not pair[0], pair[1].file, pair[1].line))
        return [site for _, site in found]

    def freezes(self, ledger: Ledger) -> list[CallSite]:
        """Lines that set `requires_grad`."""
        found = []
        for file in self.files(ledger):
            parsed = self._parse(file)
            for node in _all_statements(parsed[0]) if parsed else ():
                if _sets_requires_grad(node):
                    found.append(self._site(file, node))
        return found[:3]

    def rectified_outputs(self, ledger: Ledger) -> list[CallSite]:
        """`return relu(…)`, or `return …relu()`: a last layer that can be off for every sample."""
        found = []
        for file in self.files(ledger):
            parsed = self._parse(file)
            for function, _ in _functions(parsed[0]) if parsed else ():
                for node in ast.walk(function):
                    if isinstance(node, ast.Return) and node.value is not None and _is_relu(node.value):
                        found.append(self._site(file, node, function.name))
        return found[:2]

    def risky(self, ledger: Ledger) -> list[CallSite]:
        """Lines with an operation that has no finite slope somewhere: sqrt, log, a division by a sum, exp behind where, …"""
        found = []
        for file in self.files(ledger):
            parsed = self._parse(file)
            for node in _all_statements(parsed[0]) if parsed else ():
                if _is_risky(node):
                    found.append(self._site(file, node))
        return found[:3]

    # -- helpers --------------------------------------------------------------------------------------------------

    def _statements_around(self, near: CallSite | None) -> list[ast.stmt]:
        """Simple statements of the innermost function (or module) that holds this line."""
        parsed = self._parse(near.file) if near is not None else None
        if parsed is None or near is None:
            return []
        best: ast.FunctionDef | ast.AsyncFunctionDef | None = None
        for function, _ in _functions(parsed[0]):
            if function.lineno <= near.line <= (function.end_lineno or 0) and (
                best is None or function.lineno > best.lineno
            ):
                best = function
        return list(_simple_statements(best if best is not None else parsed[0]))

    def _site(self, file: str, node: ast.stmt, function: str = "") -> CallSite:
        parsed = self._parse(file)
        text = parsed[1][node.lineno - 1].strip() if parsed and node.lineno <= len(parsed[1]) else ""
        return CallSite(file, node.lineno, function, text[:200])


def _functions(tree: ast.Module) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, str]]:
    """Every function with the name of the class it is in."""

    def walk(node: ast.AST, owner: str) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, str]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield child, owner
            yield from walk(child, child.name if isinstance(child, ast.ClassDef) else owner)

    yield from walk(tree, "")


def _simple_statements(scope: ast.AST) -> Iterator[ast.stmt]:
    """Statements of one scope, not of functions inside it, in order; of compound statements only what they hold."""
    for child in ast.iter_child_nodes(scope):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        if isinstance(child, ast.stmt) and not hasattr(child, "body"):
            yield child
        elif isinstance(child, ast.With):
            yield child
            yield from _simple_statements(child)
        else:
            yield from _simple_statements(child)


def _all_statements(tree: ast.Module) -> Iterator[ast.stmt]:
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and not hasattr(node, "body"):
            yield node


def _attributes(node: ast.AST) -> set[str]:
    return {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}


def _parts_of(node: ast.stmt) -> ast.AST:
    """What a statement itself says: for `with`, its items and not its body."""
    return (
        ast.Module(body=[ast.Expr(item.context_expr) for item in node.items], type_ignores=[])
        if isinstance(node, ast.With)
        else node
    )


def _cuts_graph(node: ast.stmt) -> bool:
    attributes = _attributes(_parts_of(node))
    return bool(attributes & set(_CUTS)) or ("data" in attributes and isinstance(node, (ast.Assign, ast.Return)))


def _only_logs(node: ast.stmt) -> bool:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        function = node.value.func
        name = (
            function.id
            if isinstance(function, ast.Name)
            else function.attr
            if isinstance(function, ast.Attribute)
            else ""
        )
        return name in ("print", "append", "log", "info", "debug", "write", "add_scalar")
    return False


def _sets_requires_grad(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assign):
        return any(isinstance(t, ast.Attribute) and t.attr == "requires_grad" for t in node.targets) or any(
            isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "requires_grad_"
            for part in ast.walk(node.value)
        )
    return isinstance(node, ast.Expr) and "requires_grad_" in _attributes(node)


def _grown(node: ast.stmt) -> set[str]:
    """Variables that a statement adds to."""
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        return {_last_name(node.target)}
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp) and isinstance(node.value.op, ast.Add):
        parts = {_last_name(part) for part in ast.walk(node.value) if isinstance(part, (ast.Name, ast.Attribute))}
        return {name for target in node.targets if (name := _last_name(target)) in parts}
    called = node.value.func if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
    if isinstance(called, ast.Attribute) and called.attr in ("append", "extend"):
        return {_last_name(called.value)}
    return set()


def _last_name(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    return _last_name(node.value) if isinstance(node, ast.Subscript) else ""


def _takes_number(node: ast.stmt) -> bool:
    return bool(_attributes(node) & {"item", "detach", "data", "tolist", "numpy"}) or any(
        isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id == "float"
        for part in ast.walk(node)
    )


def _mentions(node: ast.stmt, expression: str) -> bool:
    value = node.value if isinstance(node, (ast.AugAssign, ast.Assign, ast.Expr)) else node
    return any(isinstance(part, ast.Name) and part.id == expression for part in ast.walk(value))


def _is_relu(node: ast.expr) -> bool:
    """The outermost operation, but for reshaping, is a ReLU."""
    while isinstance(node, ast.Call):
        function = node.func
        name = (
            function.attr
            if isinstance(function, ast.Attribute)
            else function.id
            if isinstance(function, ast.Name)
            else ""
        )
        if name in ("relu", "relu_", "ReLU", "clamp", "clamp_min", "hardtanh"):
            return True
        if name not in ("squeeze", "view", "reshape", "flatten", "unsqueeze") or not isinstance(
            function, ast.Attribute
        ):
            return False
        node = function.value
    return False


def _is_risky(node: ast.stmt) -> bool:
    names = {
        part.func.attr
        if isinstance(part.func, ast.Attribute)
        else part.func.id
        if isinstance(part.func, ast.Name)
        else ""
        for part in ast.walk(node)
        if isinstance(part, ast.Call)
    }
    if names & {"print", "manual_seed"}:
        return False
    if "where" in names and names & {"exp", "log", "sqrt", "div", "pow"}:
        return True
    if names & {"sqrt", "rsqrt", "log", "log2", "log10", "acos", "asin", "arccos", "arcsin", "atanh"}:
        return not names & {"clamp", "clamp_min", "max", "maximum", "log_softmax"} and not _adds_small(node)
    divides = [part.right for part in ast.walk(node) if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Div)]
    return any(_is_count(right) for right in divides)


def _is_count(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return node.func.attr in ("sum", "norm", "std", "prod")


def _adds_small(node: ast.stmt) -> bool:
    constants = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
    return any(isinstance(value, float) and 0.0 < value < 1e-2 for value in constants)
