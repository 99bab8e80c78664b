"""Real programs, run bare and run under a host, so that both can be compared."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest

from gradtui.events import Event
from gradtui.host.launch import Launch, of_script
from gradtui.host.run import Ending, Run, Steering
from gradtui.rules.judge import JudgeSettings
from gradtui.timeline import TimelineReader

PATIENCE = 60.0
"""Seconds after which a child that never answers fails the test."""


@dataclass
class Observed:
    """What came of a program under gradtui."""

    out: str
    err: str
    ending: Ending
    events: list[Event]
    snapshot: tuple[int, bytes] | None
    """The newest snapshot of the ledger: after which event, and its bytes."""

    @property
    def kinds(self) -> list[str]:
        """Classes of the facts, without those that only describe."""
        return [name for e in self.events if (name := type(e).__name__) not in ("ParametersSeen", "OptimizerSeen")]

    def all(self, kind: type) -> list:
        """Every fact of one class."""
        return [event for event in self.events if isinstance(event, kind)]


class Folder:
    """A folder with a program in it."""

    def __init__(self, path: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self.path = path
        self._capfd = capfd

    def write(self, name: str, text: str) -> Path:
        """A file; its text is dedented."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
        return path

    def bare(self, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """The program without gradtui."""
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.path,
            env=dict(os.environ),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            input=stdin,
        )

    def observed(self, launch: Launch | str, *arguments: str, size: tuple[int, int] | None = None) -> Observed:
        """The program under a host that stops it nowhere and records everything."""
        made = of_script(str(self.path / launch), arguments) if isinstance(launch, str) else launch
        self._capfd.readouterr()
        with tempfile.TemporaryDirectory(prefix="gradtui-") as directory:
            before = os.getcwd()
            os.chdir(self.path)
            try:
                ending = asyncio.run(asyncio.wait_for(_run(Path(directory), made, size), PATIENCE))
            finally:
                os.chdir(before)
            captured = self._capfd.readouterr()
            reader = TimelineReader(Path(directory) / "timeline.db")
            events = list(reader.all_events())
            snapshot = reader.snapshot_before(1 << 62)
            typed = b"".join(chunk.data for chunk in reader.output(limit=10_000)).decode()
            reader.close()
        return Observed(typed if size else captured.out, captured.err, ending, events, snapshot)


async def _run(directory: Path, launch: Launch, size: tuple[int, int] | None) -> Ending:
    run = Run(directory, JudgeSettings(), Steering(), record=True)
    try:
        await run.start(launch, size)
        await run.finished.wait()
        return run.ending
    finally:
        run.close()


@pytest.fixture
def folder(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Folder:
    """An empty folder; the interpreter is this one."""
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH"):
        monkeypatch.delenv(variable, raising=False)
    return Folder(tmp_path, capfd)
