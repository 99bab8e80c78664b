"""The probe's end of the socket to the host: joins the run at the first gradient call, sends packets, reads requests.

Nothing here ever raises into the person's program: when the host is gone the link goes quiet for good and training goes on.
Packets that wait for an accelerator's numbers keep their place in the queue and hold up those behind them.
"""

from __future__ import annotations

import json
import mmap
import os
import select
import socket
import struct
import sys
from collections import deque
from collections.abc import Callable
from time import monotonic, sleep
from typing import Any

from gradtui.wire.ring import RingWriter

_LENGTH = struct.Struct("<I")


def _identity(connection: socket.socket) -> tuple[int, int] | None:
    """Which socket it is; None when its descriptor is closed."""
    try:
        status = os.fstat(connection.fileno())
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _readable(connection: socket.socket) -> bool:
    waiting = select.poll()  # not select: a program with a thousand open files is beyond it
    waiting.register(connection, select.POLLIN)
    return bool(waiting.poll(0))


class Link:
    """One connection, made lazily, one process. `dead` is True once the host cannot be reached any more."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.dead = False
        self.config: dict[str, Any] = {}
        self._socket: socket.socket | None = None
        self._identity: tuple[int, int] | None = None
        self.page: mmap.mmap | bytes = b"\0"
        self.slot = 0
        """A request waits when this byte of shared memory is not 0."""
        self._ring: RingWriter | None = None
        self._looked = 0.0
        self._buffer = bytearray()
        self._queue: deque[tuple[Callable[[bool], bytes | None] | None, bytes]] = deque()

    @property
    def joined(self) -> bool:
        """A connection has been made."""
        return self._socket is not None

    def join(self, hello: bytes) -> bool:
        """Connect, say hello and wait for the host's configuration. False when there is no host."""
        plugs: list[int] = []
        try:
            while (
                plug := os.open(os.devnull, os.O_RDWR)
            ) <= 2:  # a closed stdout of the person's must not come to be ours
                plugs.append(plug)
            os.close(plug)
            return self._connect(hello)
        except OSError:
            self._let_go()
            self.dead = True
            return False
        finally:
            for plug in plugs:
                os.close(plug)

    def _connect(self, hello: bytes) -> bool:
        self._socket = connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._identity = _identity(connection)
        connection.settimeout(None)  # whatever the person's program sets as its default
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * 1024 * 1024)
        connection.connect(self.path)
        connection.sendall(hello)
        config = self.receive()
        if config is None:
            return False
        self.config = config
        page = config.get("page")
        if page:
            handle = os.open(page, os.O_RDWR)
            try:
                self.page = mmap.mmap(handle, mmap.PAGESIZE)
            finally:
                os.close(handle)
            self.slot = int(config.get("slot", 0))
        if config.get("ring"):
            self._ring = RingWriter(config["ring"])
        return True

    def _ours(self) -> socket.socket | None:
        """The connection while there is one. A program that closes every descriptor it finds (a daemon does) closes it too,
        and may have a file of its own at that number."""
        connection = self._socket
        if connection is not None and _identity(connection) != self._identity:
            connection.detach()
            self._socket = None
            self.dead = True
        return self._socket if not self.dead else None

    def _let_go(self) -> None:
        connection, self._socket = self._ours(), None
        if connection is not None:
            connection.close()

    def clear_attention(self) -> None:
        """Before reading what waits: a request that comes later sets the byte again."""
        if isinstance(self.page, mmap.mmap):
            self.page[self.slot] = 0

    def send(self, packet: bytes) -> None:
        """Send now, or after the packets that still wait for their numbers."""
        if self._queue:
            self._queue.append((None, packet))
            self.settle(wait=False)
        elif self._ring is None:
            self._send_on_socket(packet)
        elif not self.dead and not self._ring.write(packet, self._wait):
            self._lose()

    def send_later(self, ready: Callable[[bool], bytes | None]) -> None:
        """Send what `ready(wait)` returns once it returns something; `wait` True allows it to block for it."""
        self._queue.append((ready, b""))
        self.settle(wait=False)

    def settle(self, wait: bool) -> None:
        """Send every queued packet whose numbers have arrived; with `wait`, all of them."""
        queue = self._queue
        while queue:
            ready, packet = queue[0]
            if ready is not None:
                made = ready(wait or len(queue) > 512)
                if made is None:
                    return
                packet = made
            queue.popleft()
            self._write(packet)

    @property
    def behind(self) -> bool:
        """Facts wait for an accelerator's numbers."""
        return bool(self._queue)

    def send_word(self, packet: bytes) -> None:
        """Send something the host is to act on at once, after all that was sent before: it reads the ring first."""
        self.settle(wait=True)
        self._send_on_socket(packet)

    def _write(self, packet: bytes) -> None:
        ring = self._ring
        if ring is None:
            self._send_on_socket(packet)
        elif not self.dead and not ring.write(packet, self._wait):
            self._lose()

    def _wait(self) -> bool:
        """The ring is full: give the host time to read; False when it is gone."""
        sleep(0.0005)
        now = monotonic()
        if now - self._looked > 0.05:
            self._looked = now
            connection = self._ours()
            if connection is None:
                return False
            if _readable(connection) and not self._fill():
                return False
        return True

    def _send_on_socket(self, packet: bytes) -> None:
        connection = self._ours()
        if connection is None:
            return
        try:
            connection.sendall(packet, getattr(socket, "MSG_NOSIGNAL", 0))
        except OSError:
            self._lose()

    def receive(self) -> dict[str, Any] | None:
        """The next request, waiting for it; None when the host is gone. Ctrl-C passes through to the person's program."""
        while True:
            request = self._next()
            if request is not None:
                return request
            if not self._fill():
                return None

    def poll(self) -> dict[str, Any] | None:
        """The next request if one has come."""
        request = self._next()
        if request is not None:
            return request
        connection = self._ours()
        if connection is not None and _readable(connection) and self._fill():
            return self._next()
        return None

    def _fill(self) -> bool:
        connection = self._ours()
        if connection is None:
            return False
        try:
            data = connection.recv(65536)
        except OSError:
            data = b""
        if not data:
            self._lose()
            return False
        self._buffer += data
        return True

    def _next(self) -> dict[str, Any] | None:
        buffer = self._buffer
        if len(buffer) < 4:
            return None
        (size,) = _LENGTH.unpack_from(buffer)
        if len(buffer) < 4 + size:
            return None
        raw = bytes(buffer[4 : 4 + size])
        del buffer[: 4 + size]
        request = json.loads(raw)
        return request if isinstance(request, dict) else {}

    def _lose(self) -> None:
        if self.dead:
            return
        connection = self._ours()
        self.dead = True
        self._queue.clear()
        if connection is not None:
            connection.close()
            try:
                sys.stderr.write("gradtui: the host is gone; the program goes on unobserved\n")
            except Exception:
                pass  # the terminal went with the host

    def forget(self) -> None:
        """In a forked child: drop the parent's connection without a word to the host."""
        self._let_go()
        self.page, self.slot = b"\0", 0
        self._ring = None
        self._buffer.clear()
        self._queue.clear()
