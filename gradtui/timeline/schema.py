"""The tables of a timeline, and how a file is recognised as one."""

from __future__ import annotations

APPLICATION_ID = 0x67726474
"""`grdt`; SQLite keeps it in the file's header."""

VERSION = 1

TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE sites (
    id INTEGER PRIMARY KEY, file TEXT NOT NULL, line INTEGER NOT NULL, function TEXT NOT NULL,
    source TEXT NOT NULL, expression TEXT NOT NULL, framework TEXT NOT NULL
);
CREATE TABLE sources (file TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE events (
    seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, process INTEGER NOT NULL, site INTEGER,
    header BLOB NOT NULL, payload BLOB NOT NULL
);
CREATE TABLE snapshots (seq INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE findings (id INTEGER PRIMARY KEY, revision INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE output (offset INTEGER PRIMARY KEY, seq INTEGER NOT NULL, time REAL NOT NULL, data BLOB NOT NULL);
"""
