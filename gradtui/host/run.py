"""One run: takes facts from the probes, gives them their place, has them judged and recorded, and steers the gate."""

from __future__ import annotations

import asyncio
import contextlib
import json
import mmap
import os
import signal
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import time
from typing import Any, Protocol

from gradtui import events
from gradtui.events import CallSite, Event
from gradtui.host.kept import Figures, Kept
from gradtui.host.launch import Launch, environment
from gradtui.host.peer import Peer, event_from
from gradtui.host.process import Debuggee
from gradtui.host.recorder import Recorder
from gradtui.host.sources import EditKind, Sources
from gradtui.ledger import snapshot
from gradtui.rules.finding import Finding
from gradtui.rules.judge import Judge
from gradtui.rules.settings import JudgeSettings
from gradtui.wire.decode import event_packet
from gradtui.wire.messages import Breakpoint

_LINGER = 5.0
"""Seconds that processes which outlive the program may still send after it has ended."""


class Audience(Protocol):
    """Who hears what happens: the server of clients, or nobody in `check`."""

    def grown(self) -> None: ...

    def stopped(self) -> None: ...

    def running(self, free: bool) -> None: ...

    def replied(self, raw: dict[str, Any]) -> None: ...

    def ended(self) -> None: ...


class Nobody:
    """An audience that is not there."""

    def grown(self) -> None:
        """Not heard."""

    def stopped(self) -> None:
        """Not heard."""

    def running(self, free: bool) -> None:
        """Not heard."""

    def replied(self, raw: dict[str, Any]) -> None:
        """Not heard."""

    def ended(self) -> None:
        """Not heard."""


@dataclass(slots=True)
class Steering:
    """How the run is to stop."""

    stop_first: bool = False
    stops: tuple[str, ...] = events.DEFAULT_STOPS
    on_error: bool = True
    on_suspicion: bool = False
    breakpoints: tuple[Breakpoint, ...] = ()
    free: bool = True
    """No stop is planned."""
    to_finding: bool = False
    watch: str = "params"


@dataclass(slots=True)
class Ending:
    """How the script ended."""

    exit_code: int | None = None
    signal: int | None = None
    over: bool = False
    observed: bool = False
    """Some process joined the run."""
    calls: bool = False
    """Some gradient call was seen."""


@dataclass(slots=True)
class _Page:
    """Shared memory with one attention byte a process."""

    path: Path
    memory: mmap.mmap = field(init=False)

    def __post_init__(self) -> None:
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        os.ftruncate(handle, mmap.PAGESIZE)
        self.memory = mmap.mmap(handle, mmap.PAGESIZE)
        os.close(handle)

    def ring(self, slot: int) -> None:
        self.memory[slot] = 1


class Run:
    """Everything about one run on the host's side. `size` None: the script keeps our terminal and nothing is recorded of its output."""

    def __init__(
        self, directory: Path, settings: JudgeSettings, steering: Steering, record: bool, umask: int = -1
    ) -> None:
        self.directory = directory
        self.steering = steering
        self._umask = umask
        self.judge = Judge(settings, read=self._source_text)
        self.ending = Ending()
        self.seq = 0
        self.kinds: Counter[str] = Counter()
        self.audience: Audience = Nobody()
        self.peers: dict[int, Peer] = {}
        self.recorder = Recorder(directory / "timeline.db", self._snapshot) if record else None
        self.sources = Sources(self.recorder.source if self.recorder else None)
        self.debuggee = Debuggee(self._program_ended)
        self.finished: asyncio.Event = asyncio.Event()
        self.launch: Launch | None = None
        self._page = _Page(directory / "page")
        self._joined = 0
        self._stopped_for: set[tuple[str, int, str, str, bool]] = set()
        """Findings that have been new once, whether or not a free run stopped for them."""
        self._site_numbers: dict[CallSite, int] = {}
        self._pending_edits: dict[int, list[tuple[Event, str, bytes, bytes]]] = {}
        self._server: asyncio.Server | None = None
        self._socket_directory: tempfile.TemporaryDirectory[str] | None = None

    def _snapshot(self) -> bytes:
        """What the ledger knows, for quick seeks; nothing while several processes take part."""
        ledgers = list(self.judge.ledger.processes.values())
        return snapshot(ledgers[0]) if len(ledgers) == 1 else b""

    def _source_text(self, path: str) -> str | None:
        found = self.sources.file(path)
        return found.text if found is not None else None

    # -- life -----------------------------------------------------------------------------------------------------

    async def start(self, launch: Launch, size: tuple[int, int] | None) -> None:
        """Open the probe socket and start the program. Raises UsageError when it cannot be started."""
        self.launch = launch
        path = str(self.directory / "probe.sock")
        if len(path) > 100:
            self._socket_directory = tempfile.TemporaryDirectory(prefix="gradtui-")
            path = str(Path(self._socket_directory.name) / "probe.sock")
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(lambda: Peer(self), path)
        os.chmod(path, 0o600)
        if self.recorder is not None:
            self.recorder.meta("command", json.dumps(launch.command))
            self.recorder.meta("interpreter", launch.interpreter)
            self.recorder.meta("directory", os.getcwd())
            self.recorder.meta("started", repr(time()))
            if launch.script:
                self.sources.file(launch.script)
            self.recorder.commit()
        self.debuggee.start(launch.command, environment(path, self.steering.watch), size, self._umask)
        if self.debuggee.master >= 0:
            loop.add_reader(self.debuggee.master, self._output)

    def _output(self) -> None:
        try:
            data = os.read(self.debuggee.master, 262144)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(self.debuggee.master)
            return
        if self.recorder is not None:
            self.recorder.wrote(self.seq, time(), data)
            self.audience.grown()

    def _program_ended(self, exit_code: int | None, number: int | None) -> None:
        self.ending.exit_code, self.ending.signal = exit_code, number
        asyncio.get_running_loop().create_task(self._wind_up())

    async def _wind_up(self) -> None:
        """Wait for what is still in the sockets, then judge the whole and close."""
        loop = asyncio.get_running_loop()
        patience = loop.time() + _LINGER
        while self.peers and loop.time() < patience:
            await asyncio.sleep(0.005)
        for peer in list(self.peers.values()):
            self.left(peer, "")
        if self.debuggee.master >= 0:
            self._drain()
        self.ending.over = True
        self._tell(self.judge.finish(self.ending.exit_code, self.ending.signal))
        if self.recorder is not None:
            self.recorder.meta("exit_code", "" if self.ending.exit_code is None else str(self.ending.exit_code))
            self.recorder.meta("signal", "" if self.ending.signal is None else str(self.ending.signal))
            self.recorder.commit()
        self.audience.grown()
        self.audience.ended()
        self.finished.set()

    def _drain(self) -> None:
        with contextlib.suppress(OSError):
            asyncio.get_running_loop().remove_reader(self.debuggee.master)
            while data := os.read(self.debuggee.master, 262144):
                if self.recorder is not None:
                    self.recorder.wrote(self.seq, time(), data)

    def close(self) -> None:
        """Release sockets, terminal and timeline."""
        if self._server is not None:
            self._server.close()
        self.debuggee.close()
        if self.recorder is not None:
            self.recorder.close()
        if self._socket_directory is not None:
            self._socket_directory.cleanup()

    # -- facts ----------------------------------------------------------------------------------------------------

    def joined(self, peer: Peer, hello: dict[str, Any]) -> None:
        """A process made its first gradient call."""
        peer.index, self._joined = self._joined, self._joined + 1
        peer.slot = peer.index % mmap.PAGESIZE
        peer.pid = int(hello["pid"])
        peer.main = peer.pid == self.debuggee.pid
        self.peers[peer.index] = peer
        self.ending.observed = True
        event = events.ProcessJoined(
            pid=peer.pid,
            rank=int(hello.get("rank", 0)),
            world_size=int(hello.get("world_size", 1)),
            argv=tuple(hello.get("argv") or ()),
            python=str(hello.get("python", "")),
            torch=str(hello.get("torch", "")),
            main=peer.main,
            time=float(hello.get("time", 0.0)),
            process=peer.index,
        )
        self._add_own(event)
        steering = self.steering
        peer.send(
            {
                "page": str(self._page.path),
                "slot": peer.slot,
                "ring": peer.open_ring(str(self.directory / f"ring{peer.index}")),
                "stop_first": steering.stop_first,
                "stops": steering.stops,
                "breakpoints": [point_fields(point) for point in steering.breakpoints],
                "watch": steering.watch,
                "remembers": True,
                "verdicts": not isinstance(self.audience, Nobody),
            }
        )

    def _add_own(self, event: Event) -> None:
        header, payload = event_packet(event)
        self.seq += 1
        object.__setattr__(event, "seq", self.seq)
        self._record(event, type(event).__name__, header, payload, None)

    def site_seen(self, peer: Peer, number: int, raw: dict[str, Any]) -> None:
        """A line of the person's program that makes calls."""
        site = self.sources.site(raw)
        peer.sites[number] = (self._site_number(site), site)

    def _site_number(self, site: CallSite) -> int:
        number = self._site_numbers.get(site)
        if number is None:
            number = self._site_numbers[site] = len(self._site_numbers) + 1
            if self.recorder is not None:
                self.recorder.site(number, site)
        return number

    def happened(self, peer: Peer, kind: str, header: bytes, payload: bytes, fields: dict[str, Any]) -> None:
        """A fact from a probe."""
        number, site = peer.sites.get(int(fields.get("s") or 0), (None, None))
        if site is not None:
            if "loss" in fields and not fields["loss"]:
                fields["loss"] = site.expression
                header = header.replace(b'"loss":""', b'"loss":' + json.dumps(site.expression).encode(), 1)
            peer.last_site = site
        elif kind in _EDITS:
            site = self._edit_site(peer, kind, fields)
            number = self._site_number(site) if site is not None else None
        if kind in _WITH_SITES:
            header, fields = self._with_sites(peer, header, fields)
        self.seq += 1
        event = event_from(kind, fields, self.seq, peer.index, site)
        if fields.get("keep"):
            peer.kept[fields["keep"]] = Kept(kind, event, header, payload, number, site)
        self._record(event, kind, header, payload, number)

    def happened_again(self, peer: Peer, kept: Kept, figures: Figures) -> None:
        """A fact told before, with other figures."""
        if kept.site is not None:
            peer.last_site = kept.site
        self.seq += 1
        header = kept.header_at(figures) if self.recorder is not None else b""
        self._record(kept.event_at(self.seq, figures), kept.kind, header, kept.payload, kept.number)

    def _edit_site(self, peer: Peer, kind: str, fields: dict[str, Any]) -> CallSite | None:
        ledger = self.judge.ledger.of(peer.index)
        names = tuple(
            state.info.name
            for number in list(fields.get("parameters") or ())[:8]
            if (state := ledger.parameters.get(number))
        )
        what: EditKind = "rebound" if fields.get("rebound") else _EDITS[kind]
        return self.sources.edit_line(what, peer.last_site, tuple(fields.get("rebound") or ()) or names)

    def _with_sites(self, peer: Peer, header: bytes, fields: dict[str, Any]) -> tuple[bytes, dict[str, Any]]:
        """Put call sites in place of their local numbers inside a fact."""
        described = fields.get("parameters")
        changed = False
        for item in [fields, fields.get("optimizer"), *(described if isinstance(described, list) else ())]:
            for key in ("made", "forward"):
                if isinstance(item, dict) and isinstance(item.get(key), int):
                    _, site = peer.sites.get(item[key], (None, None))
                    item[key] = asdict(site) if site is not None else None
                    changed = True
        return (json.dumps(fields).encode() if changed else header), fields

    def _record(self, event: Event, kind: str, header: bytes, payload: bytes, site: int | None) -> None:
        self.kinds[kind] += 1
        if kind in events.CALL_OF or kind == "CallRaised":
            self.ending.calls = True
        changed = self.judge.feed(event)
        if self.recorder is not None:
            self.recorder.event(self.seq, kind, event.process, site, header, payload)
        if changed:
            self._tell(changed)
            self._stop_on(changed, event.process)
        self.audience.grown()

    def _tell(self, findings: list[Finding]) -> None:
        if self.recorder is not None:
            for finding in findings:
                self.recorder.finding(finding)

    # -- steering -------------------------------------------------------------------------------------------------

    def _stop_on(self, changed: list[Finding], process: int) -> None:
        steering = self.steering
        for finding in changed:
            if finding.status == "withdrawn" or finding.cause:
                continue
            suspicion = finding.status == "suspected"
            identity = (finding.rule, finding.process, finding.key, finding.severity, suspicion)
            if identity in self._stopped_for:
                continue
            self._stopped_for.add(identity)
            wanted = (
                (steering.to_finding and not suspicion)
                or (steering.on_error and finding.severity == "error" and not suspicion)
                or (steering.on_suspicion and suspicion)
                or any(point.rule == finding.rule for point in steering.breakpoints)
            )
            moving = steering.free or steering.to_finding
            if moving and wanted and not isinstance(self.audience, Nobody):
                self.pause(f"finding {finding.rule}")
                return

    def stopped_at(self, peer: Peer, raw: dict[str, Any]) -> None:
        """A process waits at the gate."""
        self.steering.free = False
        self.steering.to_finding = False
        self._tell(self.judge.refresh())
        if self.recorder is not None:
            self.recorder.commit()
        self.audience.stopped()

    def replied(self, peer: Peer, raw: dict[str, Any]) -> None:
        """A process answered a request."""
        self.audience.replied(raw)

    def left(self, peer: Peer, fault: str) -> None:
        """A process closed its connection."""
        if peer.index < 0 or self.peers.pop(peer.index, None) is None:
            return
        if fault:
            self._add_own(events.ProbeFailed(hook="link", error=fault[:500], process=peer.index, time=time()))
        ended = events.ProcessEnded(
            process=peer.index,
            time=time(),
            exit_code=self.ending.exit_code if peer.main else None,
            signal=self.ending.signal if peer.main else None,
        )
        self._add_own(ended)

    def waiting(self) -> list[Peer]:
        """Processes that wait at the gate."""
        return [peer for peer in self.peers.values() if peer.stopped is not None]

    def resume(self, request: dict[str, Any], free: bool) -> bool:
        """Let every waiting process go on; False when none waits."""
        waiting = self.waiting()
        for peer in waiting:
            peer.stopped = None
            peer.send(request)
        if waiting:
            self.steering.free = free
            self.audience.running(free)
        return bool(waiting)

    def pause(self, reason: str = "pause") -> None:
        """Have every process stop at its next call."""
        self.steering.stop_first = True
        self._to_all({"do": "pause", "reason": reason})

    def _to_all(self, request: dict[str, Any]) -> None:
        for peer in self.peers.values():
            peer.send(request)
            self._page.ring(peer.slot)

    def set_stops(self, kinds: tuple[str, ...], on_error: bool, on_suspicion: bool) -> None:
        """At which calls stepping stops, and what stops a free run."""
        self.steering.stops = kinds
        self.steering.on_error, self.steering.on_suspicion = on_error, on_suspicion
        self._to_all({"do": "set_stops", "kinds": kinds})

    def set_breakpoints(self, points: tuple[Breakpoint, ...]) -> None:
        """Replace all breakpoints."""
        self.steering.breakpoints = points
        self._to_all({"do": "set_breakpoints", "breakpoints": [point_fields(point) for point in points]})

    def end(self, number: int) -> None:
        """Send the program a signal; a waiting one is let go so that it can act on it."""
        self.debuggee.signal(number)
        if number != signal.SIGKILL:
            self.resume({"do": "continue"}, True)


_EDITS: Mapping[str, EditKind] = {"GradsZeroed": "zeroed", "GradsEdited": "edited", "ParametersEdited": "updated"}
_WITH_SITES = {"ParametersSeen", "OptimizerSeen", "NonfiniteOrigin"}


def point_fields(point: Breakpoint) -> dict[str, Any]:
    """A breakpoint as the probe takes it."""
    return {
        "id": point.id,
        "kind": point.kind,
        "file": point.file,
        "line": point.line,
        "parameter": point.parameter,
        "rule": point.rule,
    }
