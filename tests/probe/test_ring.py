"""The stream through shared memory."""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from gradtui.wire.ring import CAPACITY, RingReader, RingWriter, create


def never() -> bool:
    raise AssertionError("the ring was full")


@settings(max_examples=30, deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=300_000), max_size=40))
def test_what_is_read_is_what_was_written_across_the_end_of_the_memory(tmp_path_factory, pieces: list[bytes]) -> None:
    """Whatever the sizes, in order, without a gap, also where a piece wraps around."""
    path = str(tmp_path_factory.mktemp("ring") / "ring")
    reader = RingReader(create(path))
    writer = RingWriter(path)
    got = b""
    for piece in pieces:
        assert writer.write(piece, never)
        while data := reader.read():
            got += data
    assert got == b"".join(pieces)


def test_a_piece_larger_than_the_ring_goes_through_while_the_reader_reads(tmp_path: Path) -> None:
    """The writer waits for room; nothing is lost."""
    path = str(tmp_path / "ring")
    reader, writer = RingReader(create(path)), RingWriter(path)
    piece, got = os.urandom(CAPACITY * 2 + 17), bytearray()

    def wait() -> bool:
        got.extend(reader.read(1 << 20))
        return True

    assert writer.write(piece, wait)
    while data := reader.read():
        got += data
    assert bytes(got) == piece


def test_gives_up_when_nobody_reads(tmp_path: Path) -> None:
    """`wait` says that the host is gone: the write ends, it does not hang."""
    path = str(tmp_path / "ring")
    create(path)
    assert not RingWriter(path).write(bytes(CAPACITY + 1), lambda: False)
