"""What to start and how: the person's command, their interpreter, and the environment that carries the probe along."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from gradtui.errors import UsageError

INJECT = Path(__file__).resolve().parent.parent / "probe" / "inject"


@dataclass(frozen=True, slots=True)
class Launch:
    """One program to run."""

    command: tuple[str, ...]
    """argv, with the interpreter resolved."""
    interpreter: str
    """For display; empty when the command brings its own."""
    why: str = ""
    """Why this interpreter: `--python`, `VIRTUAL_ENV`, `CONDA_PREFIX`, or `gradtui's own`."""
    script: str = ""
    """Path of the script, for the source pane before the first event."""


def interpreter(chosen: str | None) -> tuple[str, str]:
    """(path of the interpreter that runs a SCRIPT, why it is that one). Raises UsageError when --python names none."""
    if chosen:
        found = shutil.which(chosen)
        if found is None:
            raise UsageError(f"--python {chosen}: no such interpreter")
        return found, "--python"
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        prefix = os.environ.get(variable)
        if prefix:
            candidate = Path(prefix) / "bin" / "python"
            if candidate.is_file() and os.access(candidate, os.X_OK):
                return str(candidate), variable
    return sys.executable, "gradtui's own"


def of_script(script: str, arguments: tuple[str, ...], python: str | None = None) -> Launch:
    """`python SCRIPT ARGS`. Raises UsageError when the script is missing, a directory without __main__, or not Python."""
    path = Path(script)
    if script != "-":
        _check_script(path, script)
    executable, why = interpreter(python)
    return Launch((executable, script, *arguments), executable, why, "" if script == "-" else str(path.absolute()))


def _check_script(path: Path, script: str) -> None:
    try:
        path.stat()
        if path.is_dir() and not (path / "__main__.py").is_file():
            raise UsageError(f"{script}: is a directory without a __main__.py")
        if not path.is_file():
            return  # a directory, or a pipe, from which it can be read but once
        with path.open("rb") as file:
            head = file.read(8192)
    except FileNotFoundError as error:
        raise UsageError(f"{script}: no such file") from error
    except OSError as error:
        raise UsageError(f"{script[:80]}: {error.strerror or error}") from error
    if head[:4] == b"PK\x03\x04" or (head[:2] == b"#!" and b"PK\x03\x04" in head):
        return
    if b"\x00" in head and path.suffix != ".pyc":
        raise UsageError(f"{script}: is not a Python program (to run a command: gradtui run -- {script} …)")
    if head.startswith(b"#!") and b"python" not in head.split(b"\n", 1)[0]:
        raise UsageError(f"{script}: is not a Python program (to run a command: gradtui run -- {script} …)")


def of_module(module: str, arguments: tuple[str, ...], python: str | None = None) -> Launch:
    """`python -m MODULE ARGS`."""
    executable, why = interpreter(python)
    return Launch((executable, "-m", module, *arguments), executable, why)


def of_command(command: tuple[str, ...]) -> Launch:
    """Any program on PATH that ends up running Python. Raises UsageError when there is none of that name."""
    found = shutil.which(command[0])
    if found is None:
        raise UsageError(f"{command[0]}: no such command")
    if Path(command[0]).name.startswith("python"):
        script = next((part for part in command[1:] if not part.startswith("-")), "")
        return Launch((found, *command[1:]), found, "the command", str(Path(script).absolute()) if script else "")
    return Launch(command, "", "the command")


def environment(socket_path: str, watch: str = "params") -> dict[str, str]:
    """The person's environment, plus what children need to find the probe."""
    env = dict(os.environ)
    before = env.get("PYTHONPATH")
    env["PYTHONPATH"] = f"{INJECT}{os.pathsep}{before}" if before else str(INJECT)
    env["GRADTUI_SOCKET"] = socket_path
    if watch != "params":
        env["GRADTUI_WATCH"] = watch
    return env
