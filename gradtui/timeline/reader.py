"""Reads a run from disk, live or recorded: the client's only source of facts. Never writes, never executes what it reads."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gradtui.errors import TimelineError, WireError
from gradtui.events import CallSite, Event
from gradtui.timeline.schema import APPLICATION_ID, VERSION
from gradtui.wire.decode import event_of, unpack


@dataclass(frozen=True, slots=True)
class OutputChunk:
    """Bytes the script wrote at once."""

    offset: int
    seq: int
    """Events that had happened by then."""
    time: float
    data: bytes


@dataclass(frozen=True, slots=True)
class Sequenced:
    """A finding as stored: its revision tells whether it changed since it was last read."""

    id: int
    revision: int
    data: bytes


class TimelineReader:
    """Opens a timeline read-only. Raises TimelineError when the file is missing, damaged, foreign, or of a later version."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.is_file():
            raise TimelineError(f"{path}: no such recording")
        try:
            self._db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
            (application,) = self._db.execute("PRAGMA application_id").fetchone()
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
        except sqlite3.Error as error:
            raise TimelineError(f"{path}: not a gradtui recording ({error})") from error
        if application != APPLICATION_ID:
            raise TimelineError(f"{path}: not a gradtui recording")
        if version > VERSION:
            raise TimelineError(f"{path}: made by a later gradtui (format {version}, this one reads {VERSION})")
        self._sites: dict[int, CallSite] = {}

    def _rows(self, query: str, arguments: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
        try:
            return self._db.execute(query, arguments).fetchall()
        except sqlite3.Error as error:
            raise TimelineError(f"{self.path}: damaged recording ({error})") from error

    def meta(self) -> dict[str, str]:
        """Facts about the whole run."""
        return {str(key): str(value) for key, value in self._rows("SELECT key, value FROM meta")}

    def last_seq(self) -> int:
        """Sequence number of the newest event; 0 when there is none."""
        ((seq,),) = self._rows("SELECT coalesce(max(seq), 0) FROM events")
        return int(seq)  # type: ignore[call-overload, no-any-return]

    def _site(self, number: int | None) -> CallSite | None:
        if number is None:
            return None
        site = self._sites.get(number)
        if site is None:
            rows = self._rows(
                "SELECT file, line, function, source, expression, framework FROM sites WHERE id = ?", (number,)
            )
            if not rows:
                return None
            site = self._sites[number] = CallSite(*rows[0])  # type: ignore[arg-type]
        return site

    def events(self, after: int = 0, upto: int | None = None, limit: int = 2000) -> list[Event]:
        """Events with `after` < seq ≤ `upto`, oldest first, at most `limit`."""
        top = upto if upto is not None else (1 << 62)
        rows = self._rows(
            "SELECT seq, kind, process, site, header, payload FROM events WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?",
            (after, top, limit),
        )
        found: list[Event] = []
        for seq, kind, process, number, header, payload in rows:
            try:
                fields = unpack(header, payload)  # type: ignore[arg-type]
                fields.update(seq=seq, process=process, site=None)
                event = event_of(str(kind), fields)
            except WireError as error:
                raise TimelineError(f"{self.path}: event {seq} is damaged ({error})") from error
            object.__setattr__(event, "site", self._site(number))  # type: ignore[arg-type]
            found.append(event)
        return found

    def event(self, seq: int) -> Event | None:
        """One event."""
        found = self.events(seq - 1, seq, 1)
        return found[0] if found else None

    def all_events(self, batch: int = 2000) -> Iterator[Event]:
        """Every event, oldest first, a batch in memory at a time."""
        after = 0
        while found := self.events(after, limit=batch):
            yield from found
            after = found[-1].seq

    def snapshot_before(self, seq: int) -> tuple[int, bytes] | None:
        """The newest ledger snapshot at or before `seq`, with the event it was taken after."""
        rows = self._rows("SELECT seq, data FROM snapshots WHERE seq <= ? ORDER BY seq DESC LIMIT 1", (seq,))
        return (int(rows[0][0]), bytes(rows[0][1])) if rows else None  # type: ignore[call-overload]

    def findings(self, after_revision: int = 0) -> list[Sequenced]:
        """Findings new or changed since that revision, oldest finding first."""
        rows = self._rows("SELECT id, revision, data FROM findings WHERE revision > ? ORDER BY id", (after_revision,))
        return [Sequenced(int(i), int(r), bytes(d)) for i, r, d in rows]  # type: ignore[call-overload]

    def output(self, after_offset: int = -1, limit: int = 256) -> list[OutputChunk]:
        """Chunks of output that begin after that offset, oldest first."""
        rows = self._rows(
            "SELECT offset, seq, time, data FROM output WHERE offset > ? ORDER BY offset LIMIT ?", (after_offset, limit)
        )
        return [OutputChunk(int(o), int(s), float(t), bytes(d)) for o, s, t, d in rows]  # type: ignore[call-overload, arg-type]

    def source(self, file: str) -> str | None:
        """Text of a source file as it was when the run met it; None when it was not kept."""
        rows = self._rows("SELECT text FROM sources WHERE file = ?", (file,))
        return str(rows[0][0]) if rows else None

    def close(self) -> None:
        """Release the file."""
        self._db.close()
