"""Writes what happens to the run's timeline in batches; goes quiet, and says so, when the disk refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gradtui.events import CallSite
from gradtui.rules.finding import Finding, encode_finding
from gradtui.timeline import TimelineWriter, WriteError

SNAPSHOT_EVERY = 2000
"""Events between snapshots of the ledger: a seek folds at most so many."""


class Recorder:
    """The writing side of one run."""

    def __init__(self, path: Path, snapshot: Callable[[], bytes]) -> None:
        self._snapshot = snapshot
        self._since_snapshot = 0
        self._rows: list[tuple[int, str, int, int | None, bytes, bytes]] = []
        self._numbers: dict[tuple[str, int, str], int] = {}
        self._revision = 0
        self.output = 0
        """Bytes of output so far."""
        self.fault = ""
        """Why recording stopped; empty while it goes on."""
        self._writer: TimelineWriter | None = TimelineWriter(path)

    def _do(self, act: Callable[[TimelineWriter], None]) -> None:
        if self._writer is None:
            return
        try:
            act(self._writer)
        except WriteError as error:
            self.fault = f"recording stopped: {error}"
            self._writer = None

    def meta(self, key: str, value: str) -> None:
        """A fact about the whole run."""
        self._do(lambda writer: writer.set_meta(key, value))

    def site(self, number: int, site: CallSite) -> None:
        """A call site, before the first event that refers to it."""
        self._do(lambda writer: writer.add_site(number, site))

    def source(self, file: str, text: str) -> None:
        """A source file."""
        self._do(lambda writer: writer.add_source(file, text))

    def event(self, seq: int, kind: str, process: int, site: int | None, header: bytes, payload: bytes) -> None:
        """A fact, already folded into the ledger."""
        self._rows.append((seq, kind, process, site, header, payload))
        self._since_snapshot += 1
        if self._since_snapshot >= SNAPSHOT_EVERY:
            self._since_snapshot = 0
            self._flush()
            data = self._snapshot()
            if data:
                self._do(lambda writer: writer.add_snapshot(seq, data))

    def finding(self, finding: Finding) -> int:
        """A finding, new or changed; returns how many changes there have been."""
        number = self._numbers.setdefault((finding.rule, finding.process, finding.key), len(self._numbers) + 1)
        self._revision += 1
        revision = self._revision
        self._do(lambda writer: writer.put_finding(number, revision, encode_finding(finding)))
        return revision

    def wrote(self, seq: int, time: float, data: bytes) -> None:
        """Output of the script, after event `seq`."""
        offset = self.output
        self.output += len(data)
        self._do(lambda writer: writer.add_output(offset, seq, time, data))

    def _flush(self) -> None:
        rows, self._rows = self._rows, []
        if rows:
            self._do(lambda writer: writer.add_events(rows))

    def commit(self) -> None:
        """Make everything visible to readers."""
        self._flush()
        self._do(lambda writer: writer.commit())

    def close(self) -> None:
        """The run is over."""
        self._flush()
        self._do(lambda writer: writer.close())
        self._writer = None

    @property
    def revision(self) -> int:
        """Changes of findings so far."""
        return self._revision
