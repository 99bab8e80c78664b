"""A probe in this very process and, on a thread, a stand-in for the host at the other end of a real socket."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import pytest
import torch
from torch.optim import Optimizer, lr_scheduler

from gradtui import events
from gradtui.events import CallSite, Event, OptimizerInfo, ParameterInfo
from gradtui.host.sources import Sources
from gradtui.probe.hooks.backward import _Incoming
from gradtui.probe.start import Probe
from gradtui.wire.decode import event_of, unpack
from gradtui.wire.encode import FIGURES, PacketReader, packet

E = TypeVar("E")
approx: Any = pytest.approx
"""As an Any: mypy finds comparisons with it impossible."""
_PATIENCE = 30.0
"""Seconds after which a handshake that never comes fails the test."""

Request = dict[str, Any]


class Collector(threading.Thread):
    """Speaks the host's side: answers hello, keeps what comes, and answers each stop with the next requests of its queue."""

    def __init__(self, path: Path) -> None:
        super().__init__(daemon=True)
        self.config: dict[str, Any] = {}
        self.packets: list[dict[str, Any]] = []
        self.stops: list[dict[str, Any]] = []
        self.replies: list[dict[str, Any]] = []
        self.moves: list[list[Request] | Callable[[], list[Request]]] = []
        """What to send at each stop, in order; after the last one: continue."""
        self.hang_up_at_stop = False
        self.again = 0
        """Facts that came as figures only."""
        self.changed = threading.Condition()
        self.connection: socket.socket | None = None
        self._marks = 0
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(8)
        self.start()

    def run(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.connection = connection
                self._serve(connection)

    def _serve(self, connection: socket.socket) -> None:
        reader = PacketReader()
        while data := connection.recv(1 << 16):
            for header, payload in reader.feed(data):
                self._take(unpack(header, payload) if header else self._again(payload), connection)

    def _again(self, payload: bytes) -> dict[str, Any]:
        """A fact told before, with other figures."""
        number, *figures = FIGURES.unpack(payload)
        self.again += 1
        kept = next(fields for fields in reversed(self.packets) if fields.get("keep") == number)
        fields = {**kept, **dict(zip(("call", "parent", "ordinal", "time", "duration", "value"), figures, strict=True))}
        if kept.get("value") is None:
            del fields["value"]
        return {key: value for key, value in fields.items() if key != "keep"}

    def _take(self, fields: dict[str, Any], connection: socket.socket) -> None:
        kind = fields["t"]
        if kind == "hello":
            self.send(self.config)
        with self.changed:
            if kind == "mark":
                self._marks = fields["n"]
            elif kind == "stopped":
                self.stops.append(fields)
            elif kind == "reply":
                self.replies.append(fields)
            self.packets.append(fields)
            self.changed.notify_all()
        if kind == "stopped":
            if self.hang_up_at_stop:
                connection.shutdown(socket.SHUT_RDWR)
                return
            moves = self.moves.pop(0) if self.moves else [{"do": "continue"}]
            for request in moves() if callable(moves) else moves:
                self.send(request)

    def send(self, request: Request) -> None:
        raw = json.dumps(request).encode()
        assert self.connection is not None
        self.connection.sendall(struct.pack("<I", len(raw)) + raw)

    def wait(self, condition: Callable[[], bool]) -> None:
        with self.changed:
            assert self.changed.wait_for(condition, _PATIENCE)

    def reached(self, mark: int) -> None:
        self.wait(lambda: self._marks >= mark)

    def close(self) -> None:
        for end in (self._listener, self.connection):
            if end is not None:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
                end.close()
        self.join(_PATIENCE)


class Probed:
    """What a test sees: the probe, and the facts it has told so far. Without a `__dict__`, so that the probe finds no names in it."""

    __slots__ = ("_marks", "_seen_sources", "collector", "page", "probe")

    def __init__(self, directory: Path) -> None:
        path = directory / "probe.sock"
        self.page = directory / "page"
        self.page.write_bytes(bytes(4096))
        self.collector = Collector(path)
        self.collector.config = {"page": str(self.page), "slot": 0, "stop_first": False, "remembers": True}
        self.probe = Probe(str(path))
        self._marks = 0
        self._seen_sources = Sources()

    def configure(self, **config: Any) -> None:
        """Before the first call: what the host says first."""
        self.collector.config.update(config)

    def at_stops(self, *moves: Any) -> None:
        """What the host does at the first stop, at the second, … ; a move is a name, a request, or a list of requests."""
        for move in moves:
            listed = move if isinstance(move, list) else [move]
            self.collector.moves.append([{"do": one} if isinstance(one, str) else one for one in listed])

    @property
    def again(self) -> int:
        """Facts that came as figures only."""
        return self.collector.again

    def _settle(self) -> None:
        link = self.probe.session.link
        if not link.joined or link.dead:
            return
        link.settle(wait=True)
        self._marks += 1
        link.send(packet({"t": "mark", "n": self._marks}))
        self.collector.reached(self._marks)

    def events(self, failures: bool = False) -> list[Event]:
        """Every fact so far, decoded, at its line. A fault of the probe's own fails the test, unless `failures`."""
        self._settle()
        sites: dict[int, CallSite] = {}
        found: list[Event] = []
        for raw in self.collector.packets:
            fields = dict(raw)
            if fields["t"] == "site":
                sites[fields["id"]] = self._seen_sources.site(fields)
            elif fields["t"] == "event":
                site = sites.get(fields.get("s", 0))
                if site is not None and fields.get("loss") == "":
                    fields["loss"] = site.expression
                fields["seq"] = len(found) + 1
                for described in [fields, *fields.get("parameters", ()), fields.get("optimizer")]:
                    for key in ("made", "forward"):
                        if isinstance(described, dict) and isinstance(described.get(key), int):
                            described[key] = asdict(sites[described[key]])
                event = event_of(fields["k"], fields)
                object.__setattr__(event, "site", site)
                found.append(event)
        faults = [event for event in found if isinstance(event, events.ProbeFailed)]
        assert failures or not faults, faults
        return found

    def all(self, kind: type[E]) -> list[E]:
        """Every fact of one class."""
        return [event for event in self.events() if isinstance(event, kind)]

    def one(self, kind: type[E]) -> E:
        """The only fact of its class."""
        (event,) = self.all(kind)
        return event

    def last(self, kind: type[E]) -> E:
        """The latest fact of its class."""
        return self.all(kind)[-1]

    def kinds(self) -> list[str]:
        """Classes of the facts, without those that only describe."""
        names = [type(event).__name__ for event in self.events()]
        return [name for name in names if name not in ("ParametersSeen", "OptimizerSeen")]

    def parameters(self) -> dict[int, ParameterInfo]:
        """By id, latest description."""
        return {info.id: info for event in self.all(events.ParametersSeen) for info in event.parameters}

    def names(self, ids: tuple[int, ...] | None = None) -> list[str]:
        """Names of these parameters, or of all."""
        known = self.parameters()
        return [known[number].name for number in (known if ids is None else ids)]

    def optimizers(self) -> dict[int, OptimizerInfo]:
        """By id, latest description."""
        return {event.optimizer.id: event.optimizer for event in self.all(events.OptimizerSeen)}


def _subclasses(cls: type) -> set[type]:
    found: set[type] = {cls}
    below: list[type] = cls.__subclasses__()
    for sub in below:
        found |= _subclasses(sub)
    return found


def _patched() -> dict[tuple[str, str], Any]:
    """Every attribute of torch that a hook may replace, as it is now."""
    owners: list[tuple[Any, tuple[str, ...]]] = [
        (torch.autograd, ("backward",)),
        (torch.nn.Module, ("zero_grad", "register_parameter")),
        (Optimizer, ("profile_hook_step", "_patch_step_function", "__init__", "zero_grad")),
        (torch.nn.utils, ("clip_grad_norm_", "clip_grad_value_")),
        (torch.nn.utils.clip_grad, ("clip_grad_norm_", "clip_grad_value_")),
        (torch.amp.GradScaler, ("scale", "unscale_", "step", "update")),
    ]
    owners += [(cls, ("step",)) for cls in vars(lr_scheduler).values() if isinstance(cls, type)]
    found = {}
    for owner, names in owners:
        for name in names:
            if name in vars(owner):
                found[f"{owner.__module__ if isinstance(owner, type) else ''}.{owner.__name__}", name] = vars(owner)[
                    name
                ]
    return found


def _ours_left() -> list[str]:
    """Optimizer classes whose methods still carry a mark of ours."""
    return [
        f"{cls.__name__}.{name}"
        for cls in _subclasses(Optimizer)
        for name in ("step", "zero_grad")
        if any(mark.startswith("_gradtui") for mark in vars(getattr(cls, name)))
    ]


@pytest.fixture
def probed() -> Iterator[Probed]:
    """A probe at work. Afterwards nothing of ours is left in torch, on any leaf, or among the threads."""
    from torch.optim import optimizer as module

    before, threads = _patched(), set(threading.enumerate())
    hooks = dict(module._global_optimizer_pre_hooks), dict(module._global_optimizer_post_hooks)
    with tempfile.TemporaryDirectory(prefix="gradtui-") as directory:
        probed = Probed(Path(directory))
        probed.probe.install()
        try:
            yield probed
        finally:
            probed.probe.remove()
            leaves = [leaf for entry in probed.probe.registry.tracked if (leaf := entry.ref()) is not None]
            probed.probe.session.link.forget()
            probed.collector.close()
    assert _patched() == before
    assert _ours_left() == []
    assert (dict(module._global_optimizer_pre_hooks), dict(module._global_optimizer_post_hooks)) == hooks
    for leaf in leaves:
        assert not any(isinstance(hook, _Incoming) for hook in (leaf._backward_hooks or {}).values())
    until = time.monotonic() + _PATIENCE
    while set(threading.enumerate()) - threads and time.monotonic() < until:
        threading.Event().wait(0.01)
    assert set(threading.enumerate()) <= threads


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)
