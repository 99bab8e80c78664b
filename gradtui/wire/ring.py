"""A stream of bytes through shared memory, one writer and one reader: no system call on either side, and it outlives a killed writer.

A file of `HEADER + capacity` bytes. The first two little-endian u64 count the bytes ever written and ever read. The writer stores data
before it moves its count; that order is only kept by processors with strong store order, so `usable()` says where it may be used.
"""

from __future__ import annotations

import mmap
import os
import platform
import struct
from collections.abc import Callable

HEADER = 64
CAPACITY = 4 * 1024 * 1024
_COUNT = struct.Struct("<Q")


def usable() -> bool:
    """Stores become visible in the order they were made (x86)."""
    return platform.machine() in ("x86_64", "AMD64", "i686", "i386")


def create(path: str) -> mmap.mmap:
    """Make the file, for this user alone, and map it."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.ftruncate(handle, HEADER + CAPACITY)
        return mmap.mmap(handle, HEADER + CAPACITY)
    finally:
        os.close(handle)


class RingWriter:
    """The writing end."""

    def __init__(self, path: str) -> None:
        handle = os.open(path, os.O_RDWR)
        try:
            self._memory = mmap.mmap(handle, HEADER + CAPACITY)
        finally:
            os.close(handle)
        (self._written,) = _COUNT.unpack_from(self._memory, 0)
        self._limit = CAPACITY
        """Bytes that may be written before the reader's count must be looked at again."""

    def write(self, data: bytes, wait: Callable[[], bool]) -> bool:
        """Append; while it is full `wait` is called, and when that returns False the rest is given up."""
        size = len(data)
        written = self._written
        at = written % CAPACITY
        if written + size <= self._limit and at + size <= CAPACITY:
            start = HEADER + at
            self._memory[start : start + size] = data
            self._written = written + size
            _COUNT.pack_into(self._memory, 0, written + size)
            return True
        return self._write_slowly(memoryview(data), wait)

    def _write_slowly(self, data: memoryview, wait: Callable[[], bool]) -> bool:
        while data:
            (read,) = _COUNT.unpack_from(self._memory, 8)
            self._limit = read + CAPACITY
            at = self._written % CAPACITY
            size = min(len(data), self._limit - self._written, CAPACITY - at)
            if size <= 0:
                if not wait():
                    return False
                continue
            start = HEADER + at
            self._memory[start : start + size] = data[:size]
            self._written += size
            _COUNT.pack_into(self._memory, 0, self._written)
            data = data[size:]
        return True

    def close(self) -> None:
        """Release the mapping."""
        self._memory.close()


class RingReader:
    """The reading end, over memory that `create` made."""

    def __init__(self, memory: mmap.mmap) -> None:
        self._memory = memory
        self._read = 0

    def read(self, limit: int = 256 * 1024) -> bytes:
        """What has been written since, at most `limit` bytes; empty when there is nothing."""
        (written,) = _COUNT.unpack_from(self._memory, 0)
        size = min(written - self._read, limit)
        if size <= 0:
            return b""
        at = self._read % CAPACITY
        first = min(size, CAPACITY - at)
        data = self._memory[HEADER + at : HEADER + at + first]
        if first < size:
            data += self._memory[HEADER : HEADER + size - first]
        self._read += size
        _COUNT.pack_into(self._memory, 8, self._read)
        return data

    def close(self) -> None:
        """Release the mapping."""
        self._memory.close()
