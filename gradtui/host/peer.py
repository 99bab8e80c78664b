"""One process of the debuggee on the host's probe socket: decodes what it sends, in order, into facts of the run."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import struct
from typing import Any, Protocol

from gradtui.errors import WireError
from gradtui.events import CallSite, Event
from gradtui.host.kept import Figures, Kept
from gradtui.wire.decode import event_of, unpack
from gradtui.wire.encode import FIGURES, PacketReader
from gradtui.wire.ring import RingReader, create, usable

_LENGTH = struct.Struct("<I")
_SOON, _LATER = 0.005, 0.02
"""Seconds between looks at a ring."""


class PeerOwner(Protocol):
    """What a peer needs of the run."""

    def joined(self, peer: Peer, hello: dict[str, Any]) -> None: ...

    def site_seen(self, peer: Peer, number: int, raw: dict[str, Any]) -> None: ...

    def happened(self, peer: Peer, kind: str, header: bytes, payload: bytes, fields: dict[str, Any]) -> None: ...

    def happened_again(self, peer: Peer, kept: Kept, figures: Figures) -> None: ...

    def stopped_at(self, peer: Peer, raw: dict[str, Any]) -> None: ...

    def replied(self, peer: Peer, raw: dict[str, Any]) -> None: ...

    def left(self, peer: Peer, fault: str) -> None: ...


class Peer(asyncio.Protocol):
    """A connection from a probe. The same user's processes only."""

    def __init__(self, owner: PeerOwner) -> None:
        self.owner = owner
        self.index = -1
        self.pid = 0
        self.slot = 0
        self.sites: dict[int, tuple[int, CallSite]] = {}
        """Local number → (number in the run, site)."""
        self.kept: dict[int, Kept] = {}
        """Facts that it may tell again, by its number for them."""
        self.last_site: CallSite | None = None
        self.stopped: dict[str, Any] | None = None
        self.main = False
        self._reader = PacketReader()
        self._ring: RingReader | None = None
        self._ring_packets = PacketReader()
        self._timer: asyncio.TimerHandle | None = None
        self._pause = _SOON
        self._transport: asyncio.Transport | None = None
        self._gone = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if not same_user(transport.get_extra_info("socket")):
            self._gone = True
            transport.abort()

    def open_ring(self, path: str) -> str:
        """Make a ring for the probe's facts at `path`; returns it, or nothing where memory keeps no order."""
        if not usable():
            return ""
        self._ring = RingReader(create(path))
        self._listen()
        return path

    def _listen(self) -> None:
        """Read the ring every few milliseconds while facts come, less often while none do."""
        if self._gone:
            return
        self._pause = _SOON if self.read_ring() else min(self._pause * 1.5, _LATER)
        self._timer = asyncio.get_running_loop().call_later(self._pause, self._listen)

    def read_ring(self) -> bool:
        """Take every fact that is in the ring now; False when there was none."""
        ring, some = self._ring, False
        while ring is not None and (data := ring.read()):
            some = True
            self._feed(self._ring_packets, data)
        return some

    def data_received(self, data: bytes) -> None:
        self.read_ring()
        self._feed(self._reader, data)

    def _feed(self, reader: PacketReader, data: bytes) -> None:
        try:
            for header, payload in reader.feed(data):
                self._take(header, payload)
        except (ValueError, KeyError, TypeError, struct.error, WireError) as error:
            self._leave(f"{type(error).__name__}: {error}")
            if self._transport is not None:
                self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave("")

    def _leave(self, fault: str) -> None:
        if self._gone:
            return
        self.read_ring()
        self._gone = True
        if self._timer is not None:
            self._timer.cancel()
        self.owner.left(self, fault)

    def _take(self, header: bytes, payload: bytes) -> None:
        if not header:
            number, *figures = FIGURES.unpack(payload)
            self.owner.happened_again(self, self.kept[number], Figures(*figures))
            return
        fields = unpack(header, payload)
        match fields.get("t"):
            case "event":
                self.owner.happened(self, str(fields["k"]), header, payload, fields)
            case "site":
                self.owner.site_seen(self, int(fields["id"]), fields)
            case "stopped":
                self.stopped = fields
                self.owner.stopped_at(self, fields)
            case "sync":
                self.send({"do": "synced"})
            case "reply":
                self.owner.replied(self, fields)
            case "hello":
                self.owner.joined(self, fields)
            case other:
                raise WireError(f"unknown packet {other!r}")

    def send(self, request: dict[str, Any]) -> None:
        """A request to the probe."""
        raw = json.dumps(request).encode()
        if self._transport is not None and not self._gone:
            self._transport.write(_LENGTH.pack(len(raw)) + raw)


def same_user(connection: Any) -> bool:
    """The other end runs as the same user as we do."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True  # the socket's directory is 0700
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, uid, _ = struct.unpack("3i", raw)
    return bool(uid == os.getuid())


def event_from(kind: str, fields: dict[str, Any], seq: int, process: int, site: CallSite | None) -> Event:
    """A fact with its place in the run."""
    fields.update(seq=seq, process=process)
    event = event_of(kind, fields)
    object.__setattr__(event, "site", site)
    return event
