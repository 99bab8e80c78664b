"""The client's end of the run's socket: requests out, messages in, replies matched to what was asked. Knows nothing of the screen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec

from gradtui.errors import GradtuiError
from gradtui.wire.messages import Hello, Message, Reply, Request, ViewTensor, Welcome, decode_message, encode_line

LONGEST = 32 << 20
"""Bytes of one message; a longer one is a fault of the host."""
PATIENCE = 10.0
"""Seconds that the host may take to open its socket."""


class LinkError(GradtuiError):
    """The host cannot be reached, or says what no host says."""


class HostLink:
    """One connection to the host of a run."""

    def __init__(self) -> None:
        self._writer: asyncio.StreamWriter | None = None
        self._reader: asyncio.StreamReader | None = None
        self._waiting: dict[int, asyncio.Future[Reply]] = {}
        self._next = 0

    async def connect(self, socket: Path, readonly: bool = False, patience: float = PATIENCE) -> Welcome:
        """Wait for the socket, say hello, and return where the run stands. Raises LinkError."""
        deadline = asyncio.get_running_loop().time() + patience
        while True:
            try:
                self._reader, self._writer = await asyncio.open_unix_connection(socket, limit=LONGEST)
                break
            except (FileNotFoundError, ConnectionRefusedError) as error:
                if asyncio.get_running_loop().time() > deadline:
                    raise LinkError(f"the run's host does not answer at {socket}") from error
                await asyncio.sleep(0.02)
            except OSError as error:
                raise LinkError(f"{socket}: {error.strerror or error}") from error
        self.send(Hello(readonly=readonly))
        async for message in self.messages():
            if isinstance(message, Welcome):
                return message
        raise LinkError("the run's host closed the connection before it said anything")

    async def messages(self) -> AsyncIterator[Message]:
        """Messages as they come, until the host goes away. Replies go to whoever asked."""
        assert self._reader is not None
        while True:
            try:
                row = await self._reader.readline()
            except (ValueError, ConnectionError):
                return
            if not row.endswith(b"\n"):
                return
            message = _decoded(row)
            if isinstance(message, Reply):
                self._answer(message)
            elif message is not None:
                yield message

    def _answer(self, reply: Reply) -> None:
        waiting = self._waiting.pop(reply.id, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(reply)

    def send(self, request: Request) -> None:
        """Send without waiting; nothing happens when the host is gone."""
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(encode_line(request) + b"\n")

    async def view(self, request: ViewTensor, patience: float = PATIENCE) -> Reply:
        """Ask for a tensor; the reply's `error` tells when the host did not answer in time."""
        self._next += 1
        request = msgspec.structs.replace(request, id=self._next)
        waiting = self._waiting[request.id] = asyncio.get_running_loop().create_future()
        self.send(request)
        try:
            return await asyncio.wait_for(waiting, patience)
        except TimeoutError:
            return Reply(request.id, error="the script did not answer: it may be busy in a long call")
        finally:
            self._waiting.pop(request.id, None)

    async def close(self) -> None:
        """Send what is left, and hang up."""
        if self._writer is None:
            return
        try:
            await asyncio.wait_for(self._writer.drain(), 1.0)
        except (TimeoutError, OSError):
            pass  # the host is gone or stuck: there is nobody to tell
        self._writer.close()


def _decoded(row: bytes) -> Message | None:
    """The message; None for one of a kind that this client does not know."""
    try:
        return decode_message(row)
    except msgspec.DecodeError:
        return None
