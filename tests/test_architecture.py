"""Who may load what: checked in fresh interpreters, and by reading the imports of the probe, which is a guest."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

import gradtui

ROOT = Path(gradtui.__file__).parent
PROBE = sorted((ROOT / "probe").rglob("*.py"))
PROBE_MAY_IMPORT = {"gradtui.errors", "gradtui.events", "gradtui.wire.encode", "gradtui.wire.ring"}


def loaded_after(code: str) -> set[str]:
    """Names of the top-level modules that a fresh interpreter holds after running `code`."""
    tail = "import sys; print(); print(' '.join({name.partition('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", f"{code}\n{tail}"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())


def needs(module: str) -> pytest.MarkDecorator:
    spec = find_spec(module)
    there = spec is not None and spec.origin is not None  # a folder without __init__.py is no room yet
    return pytest.mark.skipif(not there, reason=f"{module} is not there")


@pytest.mark.parametrize(
    ("code", "refused"),
    [
        pytest.param("import gradtui", {"torch", "textual", "numpy", "sqlite3", "msgspec", "asyncio"}, id="package"),
        pytest.param(
            "import gradtui.commands",
            {"torch", "textual", "numpy", "sqlite3"},
            marks=needs("gradtui.commands"),
            id="commands",
        ),
        pytest.param(
            "from gradtui.commands import main\ntry:\n    import sys; sys.argv = ['gradtui', '--help']; main()\n"
            "except SystemExit as end:\n    assert not end.code, end.code",
            {"torch", "textual", "numpy", "sqlite3"},
            marks=needs("gradtui.commands"),
            id="help",
        ),
        pytest.param("import gradtui.examples", {"torch", "textual", "numpy", "sklearn"}, id="examples"),
        pytest.param("import gradtui.ledger", {"torch", "textual", "numpy", "sqlite3"}, id="ledger"),
        pytest.param(
            "import gradtui.rules", {"torch", "textual", "numpy", "sqlite3"}, marks=needs("gradtui.rules"), id="rules"
        ),
        pytest.param("import gradtui.host", {"torch", "textual", "numpy"}, marks=needs("gradtui.host"), id="host"),
        pytest.param(
            "import gradtui.report", {"torch", "textual", "numpy"}, marks=needs("gradtui.report"), id="report"
        ),
        pytest.param("import gradtui.tui", {"torch", "numpy"}, marks=needs("gradtui.tui"), id="tui"),
    ],
)
def test_a_fresh_interpreter_stays_free_of(code: str, refused: set[str]):
    assert loaded_after(code) & refused == set()


def imports_of(path: Path) -> Iterator[str]:
    """Absolute names that a file imports anywhere; a relative import is spelled out."""
    package = ".".join(path.relative_to(ROOT.parent).parent.parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.rsplit(".", node.level - 1)[0] if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            yield from (f"{module}.{name.name}" for name in node.names)


def allowed_in_probe(name: str) -> bool:
    if name.partition(".")[0] == "gradtui":
        return any(name == room or name.startswith(room + ".") for room in {*PROBE_MAY_IMPORT, "gradtui.probe"})
    return name.partition(".")[0] in sys.stdlib_module_names | {"torch", "__future__"}


@pytest.mark.parametrize("path", PROBE, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_probe_needs_the_standard_library_and_torch_alone(path: Path):
    assert [name for name in imports_of(path) if not allowed_in_probe(name)] == []


@pytest.mark.parametrize("room", ["errors.py", "events.py", "wire/__init__.py", "wire/encode.py", "wire/ring.py"])
def test_what_the_probe_brings_along_is_standard_library_too(room: str):
    for name in imports_of(ROOT / room):
        assert allowed_in_probe(name), name
