"""A probe's connection: what does not fit the facts ends the connection, never the run."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from gradtui.host.launch import Launch
from gradtui.host.run import Run, Steering
from gradtui.rules.judge import JudgeSettings
from gradtui.wire.encode import packet

HELLO = packet({"t": "hello", "pid": 1, "ppid": 0, "rank": 0, "world_size": 1, "argv": ["x"], "time": 0.0})
ZEROED = packet({"t": "event", "k": "GradsZeroed", "by": "hand", "owner": "", "how": "none", "time": 1.0, "s": 0})


async def host(directory: Path, speak: Callable[[Run, Path], Awaitable[None]]) -> Run:
    """A run whose program waits on its terminal while the test speaks to the probe socket; ended afterwards."""
    run = Run(directory, JudgeSettings(), Steering(), record=True)
    try:
        await run.start(Launch(("/bin/cat",), ""), (24, 80))
        await asyncio.wait_for(speak(run, directory / "probe.sock"), 20)
        run.debuggee.type(b"\x04")
        await asyncio.wait_for(run.finished.wait(), 20)
        return run
    finally:
        run.close()


async def greeted(path: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection that has said hello and been answered."""
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(HELLO)
    (size,) = struct.unpack("<I", await reader.readexactly(4))
    await reader.readexactly(size)
    return reader, writer


@pytest.mark.parametrize(
    "nonsense",
    [
        b"\xff" * 64,
        packet({"t": "party"}),
        packet({"t": "event", "k": "NoSuchFact", "s": 0}),
        packet({"t": "event", "k": "GradsZeroed", "by": 3, "s": 0}),
        packet({"t": "event"}),
        struct.pack("<II", 12, 8) + b"not json",
        packet({"t": "event", "k": "BackwardEnded", "s": "x", "loss": ""}),
        packet({"t": "site", "id": 1, "file": "x", "line": 1, "span": 7, "function": "f"}),
    ],
    ids=["bytes", "kind", "fact", "field", "nothing", "json", "site number", "span"],
)
async def test_nonsense_ends_the_connection_and_is_told_once(tmp_path: Path, nonsense: bytes):
    """The probe's program finds its host gone and goes on; the run says that a probe failed."""

    async def speak(run: Run, path: Path) -> None:
        reader, writer = await greeted(path)
        writer.write(ZEROED + nonsense)
        assert await reader.read() == b""
        writer.close()

    run = await host(tmp_path, speak)
    assert run.kinds == {"ProcessJoined": 1, "GradsZeroed": 1, "ProbeFailed": 1, "ProcessEnded": 1}


async def test_a_stream_cut_anywhere_is_put_together(tmp_path: Path):
    """One byte at a time."""

    async def speak(run: Run, path: Path) -> None:
        reader, writer = await greeted(path)
        for byte in ZEROED * 3:
            writer.write(bytes([byte]))
            await writer.drain()
        writer.write_eof()
        assert await reader.read() == b""
        writer.close()

    run = await host(tmp_path, speak)
    assert run.kinds["GradsZeroed"] == 3


async def test_a_stranger_that_says_nothing_is_no_process(tmp_path: Path):
    """A connection without hello leaves no trace."""

    async def speak(run: Run, path: Path) -> None:
        _, writer = await asyncio.open_unix_connection(path)
        writer.close()

    assert (await host(tmp_path, speak)).kinds == {}


async def test_the_sockets_are_for_this_user_alone(tmp_path: Path):
    """Mode 0600; another user's connection would be refused by its uid, which one user cannot try."""

    async def speak(run: Run, path: Path) -> None:
        assert path.stat().st_mode & 0o777 == 0o600
        assert (tmp_path / "page").stat().st_mode & 0o777 == 0o600

    await host(tmp_path, speak)
