"""The run on disk: one SQLite file in WAL mode, written by the host, read by any number of clients. The only user of sqlite3."""

from gradtui.timeline.reader import OutputChunk, Sequenced, TimelineReader
from gradtui.timeline.writer import TimelineWriter, WriteError

__all__ = ["OutputChunk", "Sequenced", "TimelineReader", "TimelineWriter", "WriteError"]
