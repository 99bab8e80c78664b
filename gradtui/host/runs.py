"""Where runs live on disk, and how the host of a new one is started. Keeps the newest few."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import platformdirs

from gradtui.errors import UsageError
from gradtui.host.launch import Launch

KEPT = 20
"""Runs that stay on disk; older ones are removed when a new one starts."""


def runs_directory() -> Path:
    """The folder of all runs: `$XDG_STATE_HOME/gradtui/runs`, or one below the temporary folder where that path is too long for a socket."""
    path = Path(platformdirs.user_state_path("gradtui")) / "runs"
    if len(str(path)) > 70:
        path = Path(tempfile.gettempdir()) / f"gradtui-{os.getuid()}" / "runs"
    return path


def new_run() -> Path:
    """A fresh folder for a run, for this user alone."""
    base = runs_directory()
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    _prune(base)
    stamp = datetime.now().strftime("%m%d-%H%M%S")
    for name in (f"{stamp}-{os.getpid()}{again}" for again in ("", *(f"-{n}" for n in range(2, 1000)))):
        with contextlib.suppress(FileExistsError):
            (base / name).mkdir(mode=0o700)
            return base / name
    raise UsageError(f"{base}: no room for another run")


def saved_runs() -> list[Path]:
    """Folders of the runs on disk, newest first."""
    base = runs_directory()
    if not base.is_dir():
        return []
    found = [path for path in base.iterdir() if (path / "timeline.db").is_file()]
    return sorted(found, key=_started, reverse=True)


def _started(path: Path) -> float:
    """When its host was told to start: reading a run touches the other files of its folder."""
    orders = path / "orders.json"
    return orders.stat().st_mtime if orders.exists() else path.stat().st_mtime


def is_live(path: Path) -> bool:
    """A host serves it."""
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(str(path / "client.sock"))
        except OSError:
            return False
    return True


def _prune(base: Path) -> None:
    old = sorted((p for p in base.iterdir() if p.is_dir()), key=_started)[:-KEPT]
    for path in old:
        if not (path / "client.sock").exists():
            shutil.rmtree(path, ignore_errors=True)


def start_host(directory: Path, launch: Launch, settings: dict[str, Any], size: tuple[int, int], watch: str) -> None:
    """Start the host in a session of its own: it outlives us and our terminal."""
    orders = {"launch": asdict(launch), "settings": settings, "size": size, "watch": watch, "stop_first": True}
    (directory / "orders.json").write_text(json.dumps(orders))
    with (directory / "host.log").open("wb") as log:
        subprocess.Popen(
            [sys.executable, "-c", _HOST, str(directory)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            close_fds=False,
        )


_ROOT = Path(__file__).resolve().parent.parent.parent
_HOST = f"import sys; sys.path[0] = {str(_ROOT)!r}; from gradtui.host.__main__ import main; main()"
"""`python -m gradtui.host`, but for the working directory: a `random.py` of the person's there is not ours to import."""
