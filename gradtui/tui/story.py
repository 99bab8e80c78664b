"""The run as the client knows it: facts read from the timeline and folded up to a cursor. Reads, folds, seeks; never writes or steers."""

from __future__ import annotations

from collections import OrderedDict, deque
from pathlib import Path
from time import perf_counter

from gradtui.errors import WireError
from gradtui.events import Event, OptimizerStepped
from gradtui.ledger import Ledger, RunLedger, restore
from gradtui.rules.finding import decode_finding
from gradtui.timeline import TimelineReader
from gradtui.tui.event_rows import row_of
from gradtui.tui.terminal_text import TerminalText
from gradtui.tui.view import EventRow, Listed, SourceText

KEPT_ROWS = 6_000
"""Lines of the timeline kept at hand; others are read again."""
BLOCK = 200
MORSEL = 16
"""Events decoded at once."""
MOST_BEHIND = 1_000
"""Events that a following client may be behind before it starts again from a newer snapshot."""
OUTPUT_BACKLOG = 1 << 19
"""Bytes of the script's output that may wait to be read; of a longer backlog only the end is."""
OUTPUT_KEPT = 1 << 16
"""Bytes of that end: about 7 ms of work."""
CHUNKS = 16
"""Chunks of output read at once."""


class Story:
    """Facts of one run, up to `cursor`. While `following`, the cursor goes with the head."""

    def __init__(self, reader: TimelineReader) -> None:
        self.reader = reader
        self.head = 0
        self.cursor = 0
        self.following = True
        self.ledger = RunLedger()
        self.output = TerminalText()
        self.findings: tuple[Listed, ...] = ()
        self._rows: OrderedDict[int, EventRow | None] = OrderedDict()
        self._ahead: deque[Event] = deque()
        """Decoded and not yet folded."""
        self._revision = 0
        self._offset = -1
        self._written = 0
        self._found: dict[int, Listed] = {}
        self._sources: dict[str, SourceText | None] = {}

    # -- growing

    def grow(self, head: int) -> None:
        """The timeline holds events up to `head`."""
        self.head = max(self.head, head)

    def catch_up(self, budget: float = 0.012) -> bool:
        """Fold towards the head while following, for about `budget` seconds; True when there."""
        if not self.following:
            return True
        start = perf_counter()
        if self.head - self.cursor > MOST_BEHIND:
            self._leap(self.head)
        while self.cursor < self.head and perf_counter() - start < budget:
            self._next()
        return self.cursor >= self.head

    def _next(self) -> None:
        """Fold one event; of 10,000 parameters it takes 30 ms, so the clock is looked at after each."""
        if not (self._ahead and self._ahead[0].seq == self.cursor + 1):
            self._ahead = deque(self.reader.events(self.cursor, self.head, MORSEL))
        if self._ahead:
            self._take(self._ahead.popleft())
        else:
            self.cursor = self.head

    def _fold(self, upto: int, limit: int) -> bool:
        events = self.reader.events(self.cursor, upto, limit)
        for event in events:
            self._take(event)
        if not events:
            self.cursor = upto
        return bool(events)

    def _take(self, event: Event) -> None:
        self.ledger.apply(event)
        self.cursor = event.seq
        self._keep(event)

    def _keep(self, event: Event) -> EventRow | None:
        row = row_of(event, self.ledger.of(event.process).optimizers)
        self._rows[event.seq] = row
        if len(self._rows) > KEPT_ROWS:
            self._rows.popitem(last=False)
        return row

    def _leap(self, seq: int) -> None:
        """Start from the newest snapshot at or before `seq`, when that is nearer than where we are."""
        found = self.reader.snapshot_before(seq)
        if found is None or (found[0] <= self.cursor <= seq):
            if self.cursor > seq:
                self.ledger, self.cursor = RunLedger(), 0
            return
        at, data = found
        try:
            ledger = restored(data)
        except WireError:
            if self.cursor > seq:
                self.ledger, self.cursor = RunLedger(), 0
            return
        self.ledger, self.cursor = ledger, at

    # -- travelling

    def seek(self, seq: int) -> None:
        """Put the cursor after event `seq`."""
        seq = min(max(seq, 0), self.head)
        self.following = False
        if seq < self.cursor or seq - self.cursor > BLOCK:
            self._leap(seq)
        while self.cursor < seq and self._fold(seq, BLOCK):
            pass

    def live(self) -> None:
        """Back to the head."""
        self.seek(self.head)
        self.following = True

    def row(self, seq: int) -> EventRow | None:
        """The line of one event."""
        if seq not in self._rows:
            self._load(seq - 1, seq)
        return self._rows.get(seq)

    def _load(self, after: int, upto: int) -> None:
        for event in self.reader.events(after, upto, upto - after):
            self._keep(event)

    def rows_before(self, seq: int, wanted: int) -> list[EventRow]:
        """The newest lines at or before `seq`, oldest first."""
        found: list[EventRow] = []
        while seq > 0 and len(found) < wanted:
            if seq not in self._rows:
                self._load(max(seq - max(2 * wanted, MORSEL), 0), seq)
            row = self._rows.get(seq)
            if row is not None:
                found.append(row)
            seq -= 1
        return found[::-1]

    def rows_after(self, seq: int, wanted: int) -> list[EventRow]:
        """The oldest lines after `seq`."""
        found: list[EventRow] = []
        while seq < self.head and len(found) < wanted:
            seq += 1
            if seq not in self._rows:
                self._load(seq - 1, min(seq - 1 + max(2 * wanted, MORSEL), self.head))
            row = self._rows.get(seq)
            if row is not None:
                found.append(row)
        return found

    def neighbour(self, by: int) -> int:
        """Sequence number of the line `by` lines away from the cursor; the nearest there is."""
        if by > 0:
            rows = self.rows_after(self.cursor, by)
            return rows[-1].seq if rows else self.head
        rows = self.rows_before(self.cursor, 1 - by)
        return rows[0].seq if rows else self.cursor

    def step_away(self, by: int, most: int = 20_000) -> int:
        """The nearest optimizer step before or after the cursor; the cursor itself when there is none within `most` events."""
        kind = OptimizerStepped.__name__
        seq = self.cursor
        for _ in range(most):
            rows = self.rows_after(seq, 1) if by > 0 else self.rows_before(seq - 1, 1)
            if not rows:
                break
            seq = rows[0].seq
            if rows[0].kind == kind:
                return seq
        return self.cursor

    # -- beside the facts

    def read_findings(self) -> None:
        """Take in findings that are new or changed."""
        changed = self.reader.findings(self._revision)
        for stored in changed:
            self._revision = max(self._revision, stored.revision)
            self._found[stored.id] = Listed(stored.id, decode_finding(stored.data))
        if changed:
            self.findings = tuple(self._found[id] for id in sorted(self._found))

    def findings_at(self, cursor: int) -> tuple[Listed, ...]:
        """Findings whose first sign is at or before the cursor; withdrawn ones only when nothing else is told."""
        if cursor >= self.head:
            return self.findings
        return tuple(
            item
            for item in self.findings
            if (item.finding.first.seq if item.finding.first else item.finding.seq) <= cursor
        )

    def read_output(self, total: int = 0) -> bool:
        """Take in the script's output; True when there may be more to read."""
        if total - self._written > OUTPUT_BACKLOG:
            start = total - OUTPUT_KEPT
            self.output.skip(start - self._written)
            self._offset = self._written = start
        return len(self.raw_output()) > 0 and self._written < total

    def raw_output(self) -> bytes:
        """Output that is new since the last reading, as bytes for a real terminal; it is taken in as well."""
        chunks = self.reader.output(self._offset, CHUNKS)
        for chunk in chunks:
            self.output.feed(chunk.data)
            self._offset, self._written = chunk.offset, chunk.offset + len(chunk.data)
        return b"".join(chunk.data for chunk in chunks)

    def source(self, file: str) -> SourceText | None:
        """The text of a file: as the run kept it, else as it is on disk now."""
        found = self._sources.get(file)
        if found is None:
            found = self._sources[file] = self._read_source(file)
        if found is not None and not found.kept and (text := self.reader.source(file)) is not None:
            found = self._sources[file] = SourceText(file, tuple(text.splitlines()))
        return found

    def _read_source(self, file: str) -> SourceText | None:
        text = self.reader.source(file)
        return SourceText(file, tuple(text.splitlines())) if text is not None else source_on_disk(file)


def source_on_disk(file: str) -> SourceText | None:
    """The file as it is now; None when it cannot be read or is no text."""
    try:
        data = Path(file).read_bytes()[: 4 << 20]
    except (OSError, ValueError):
        return None
    return None if b"\0" in data else SourceText(file, tuple(data.decode("utf-8", "replace").splitlines()), kept=False)


def restored(data: bytes) -> RunLedger:
    """The ledger of a run from a snapshot that the host took. Raises WireError when it is not one."""
    ledger = RunLedger()
    one: Ledger = restore(data)
    ledger.processes[one.process.process if one.process else 0] = one
    return ledger
