"""Writes a run to disk, in batches: facts, sites, sources, output, findings, ledger snapshots. One writer a run."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path

from gradtui.events import CallSite
from gradtui.timeline.schema import APPLICATION_ID, TABLES, VERSION

WriteError = sqlite3.Error
"""The disk refuses: full, read-only, gone."""


class TimelineWriter:
    """Appends to a new timeline. Nothing is visible to readers before `commit`. Raises WriteError when the disk refuses."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=OFF")  # the page cache outlives a killed host; only a power cut does not
        self._db.execute(f"PRAGMA application_id={APPLICATION_ID}")
        self._db.execute(f"PRAGMA user_version={VERSION}")
        self._db.executescript(TABLES)
        self._open = False
        self.bytes_written = 0

    def _begin(self) -> sqlite3.Connection:
        if not self._open:
            self._db.execute("BEGIN")
            self._open = True
        return self._db

    def set_meta(self, key: str, value: str) -> None:
        """One fact about the whole run (`command`, `started`, `exit_code`); a later value replaces an earlier one."""
        self._begin().execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def add_site(self, number: int, site: CallSite) -> None:
        """A call site, before the first event that refers to it."""
        self._begin().execute(
            "INSERT OR REPLACE INTO sites VALUES (?, ?, ?, ?, ?, ?, ?)",
            (number, site.file, site.line, site.function, site.source, site.expression, site.framework),
        )

    def add_source(self, file: str, text: str) -> None:
        """The text of a source file as it is now."""
        self._begin().execute("INSERT OR REPLACE INTO sources VALUES (?, ?)", (file, text))

    def add_events(self, rows: Iterable[tuple[int, str, int, int | None, bytes, bytes]]) -> None:
        """Rows of (seq, kind, process, site, header, payload)."""
        self._begin().executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", rows)

    def add_snapshot(self, seq: int, data: bytes) -> None:
        """The ledger's state just after event `seq`."""
        self._begin().execute("INSERT OR REPLACE INTO snapshots VALUES (?, ?)", (seq, data))

    def put_finding(self, number: int, revision: int, data: bytes) -> None:
        """A finding, new or changed; `revision` grows over the whole run."""
        self._begin().execute("INSERT OR REPLACE INTO findings VALUES (?, ?, ?)", (number, revision, data))

    def add_output(self, offset: int, seq: int, time: float, data: bytes) -> None:
        """Bytes the script wrote, at `offset` from the start of its output, after event `seq`."""
        self._begin().execute("INSERT INTO output VALUES (?, ?, ?, ?)", (offset, seq, time, data))
        self.bytes_written += len(data)

    def commit(self) -> None:
        """Make everything so far visible to readers."""
        if self._open:
            self._db.execute("COMMIT")
            self._open = False

    def close(self) -> None:
        """Commit, and fold the write-ahead log into the one file."""
        self.commit()
        try:
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.OperationalError:
            pass  # a reader is in the middle: the log stays beside the file and is read with it
        self._db.close()
