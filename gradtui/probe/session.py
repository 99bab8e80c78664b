"""The probe of one process: joins the run, keeps the stack of calls in progress, and turns what hooks see into packets."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from math import isfinite
from time import perf_counter, time
from types import FrameType, TracebackType
from typing import Any

import torch

from gradtui.probe import measure
from gradtui.probe.apart import apart, dispatch_modes, function_modes, plainly
from gradtui.probe.gate import Gate
from gradtui.probe.link import Link
from gradtui.probe.sites import Sites, frames_of
from gradtui.wire.encode import again, assembled, body, packet

_KEPT_BODIES = 256
_KEPT_FACTS = 128
_KEPT_BYTES = 2_000_000
"""Facts that the host remembers, so that they can be told again by number; forgotten all together."""


Make = Callable[[], tuple[dict[str, Any], Mapping[str, Any]]]


class Call:
    """One gradient call in progress."""

    __slots__ = (
        "announced",
        "began",
        "data",
        "depth",
        "file",
        "id",
        "kind",
        "line",
        "ordinal",
        "own",
        "parent",
        "site",
        "started",
    )

    began: float
    own: float
    """Set when it is entered."""

    def __init__(
        self, kind: str, number: int, parent: Call | None, ordinal: int, depth: int, place: tuple[int, str, int]
    ) -> None:
        site, file, line = place
        self.kind = kind
        self.id = number
        self.parent = parent
        self.ordinal = ordinal
        self.site = site
        self.depth = depth
        self.file, self.line = file, line
        self.started = time()
        self.announced: Callable[[], None] | None = None
        """Tells the host that the call has begun, once, when something happens inside it."""
        self.data: dict[str, Any] = {}


class _Local(threading.local):
    def __init__(self) -> None:
        self.stack: list[Call] = []
        self.busy = False


class Session:
    """One a process. `off` is True when nothing is to be seen or sent any more."""

    def __init__(self, socket_path: str) -> None:
        self.link = Link(socket_path)
        self.gate = Gate(self.link, self._answer)
        self.sites = Sites()
        self.local = _Local()
        self.lock = threading.RLock()
        self.off = False
        self.joined = False
        self.counts: dict[str, int] = {}
        self.own = 0.0
        """Seconds of our own work so far."""
        self.answer: Callable[[dict[str, Any]], bytes | None] = lambda request: None
        self.on_join: list[Callable[[], None]] = []
        self._calls = 0
        self._bodies: dict[tuple[Any, ...], str] = {}
        self._told: dict[tuple[Any, ...], int] = {}
        self._told_bytes = 0
        self._remembers = False
        """The host keeps facts for us."""
        self._failed: set[str] = set()
        self._guards: dict[str, Ours] = {}

    # -- joining --------------------------------------------------------------------------------------------------

    def join(self) -> bool:
        """Join the run at the first gradient call of the process; False when there is nobody to tell."""
        if self.joined:
            return not self.off
        self.joined = True
        if not self.link.join(packet(_hello())):
            self.off = True
            return False
        self.gate.configure(self.link.config)
        self._remembers = bool(self.link.config.get("remembers"))
        for act in self.on_join:
            act()
        return True

    def reset_after_fork(self) -> None:
        """A forked child joins on its own when it makes a gradient call; its parent's connection is not its."""
        self.link.forget()
        self.link = Link(self.link.path)
        self.gate = Gate(self.link, self._answer)
        self.sites.tell_again()
        self.local.stack, self.local.busy = [], False  # the object is known to every guard
        self.lock = threading.RLock()
        self.joined = False
        self.off = False
        self.counts.clear()
        self._told.clear()
        self._told_bytes = 0

    # -- guarding -------------------------------------------------------------------------------------------------

    @property
    def silent(self) -> bool:
        """Inside our own work, or with nobody to tell."""
        return self.off or self.local.busy or self.link.dead

    def ours(self, hook: str) -> Ours:
        """Our own work, one thread at a time: a fault of it is told once and goes no further; what a signal handler of the
        person's raises in the middle of it passes through."""
        guard = self._guards.get(hook)
        if guard is None:
            guard = self._guards[hook] = Ours(self, hook)
        return guard

    def failed(self, hook: str, error: Exception) -> None:
        """Tell the host once that a hook failed."""
        if os.environ.get("GRADTUI_DEBUG"):
            import traceback

            traceback.print_exc()
        if hook in self._failed:
            return
        self._failed.add(hook)
        where = error.__traceback__
        while where is not None and where.tb_next is not None:
            where = where.tb_next
        line = f" at {os.path.basename(where.tb_frame.f_code.co_filename)}:{where.tb_lineno}" if where else ""
        try:
            self.emit("ProbeFailed", None, {"hook": hook, "error": f"{type(error).__name__}: {error}{line}"[:500]})
        except Exception:
            self.off = True

    # -- calls ----------------------------------------------------------------------------------------------------

    def begin(self, kind: str, frame: FrameType | None, counted: bool = True) -> Call:
        """A call begins; everything already in progress around it is announced to the host first."""
        stack = self.local.stack
        ordinal = 0
        if counted:
            ordinal = self.counts[kind] = self.counts.get(kind, 0) + 1
        self._calls += 1
        call = Call(kind, self._calls, stack[-1] if stack else None, ordinal, len(stack), self.sites.find(frame))
        for outer in stack:
            if outer.announced is not None:
                announce, outer.announced = outer.announced, None
                announce()
        return call

    def stop_if_wanted(self, call: Call, frame: FrameType | None, value: float | None = None) -> None:
        """Wait at the gate if the run is to stop before this call."""
        gate, link = self.gate, self.link
        if call.depth == 0:
            gate.wait_for_verdict()
        if link.page[link.slot]:
            gate.attend()
        if not gate.armed:
            return
        reason = gate.reason(call.kind, call.depth, (call.file, call.line))
        if not reason:
            return
        self._flush_sites()
        gate.stop(
            packet(
                {
                    "t": "stopped",
                    "kind": call.kind,
                    "call": call.id,
                    "ordinal": call.ordinal,
                    "depth": call.depth,
                    "reason": reason,
                    "s": call.site,
                    "value": value,
                    "frames": frames_of(frame),
                }
            ),
            call.depth,
        )

    def enter(self, call: Call) -> None:
        """The call runs from here on."""
        self.local.stack.append(call)
        call.own = self.own
        call.began = perf_counter()

    def leave(self, call: Call) -> float:
        """The call is over; seconds it took, less our own work inside it."""
        took = perf_counter() - call.began
        if self._calls != call.id:  # others began inside it
            took = max(took - (self.own - call.own), 0.0)
        stack = self.local.stack
        while stack:
            if stack.pop() is call:
                break
        return took

    def inside(self, kind: str) -> Call | None:
        """The innermost call of that kind in progress in this thread."""
        for call in reversed(self.local.stack):
            if call.kind == kind:
                return call
        return None

    # -- telling --------------------------------------------------------------------------------------------------

    def emit(
        self,
        kind: str,
        call: Call | None,
        fields: dict[str, Any],
        arrays: Mapping[str, Any] | None = None,
        duration: float = 0.0,
        ordinal: int | None = None,
    ) -> None:
        """Send a fact now."""
        self._flush_sites()
        self.link.send(self.fact(kind, call, fields, arrays, duration, ordinal))

    def tell(self, call: Call, key: tuple[Any, ...], make: Make, duration: float, value: float | None = None) -> None:
        """Send a fact that is likely to be the same at each call but for its figures: then only those are sent.

        `key` starts with its class and the call's site and holds all that its content depends on; `make` gives that content,
        fields and arrays. `value` is None where the fact has none.
        """
        known = self._told.get(key)
        if known is not None and (value is None or isfinite(value)):
            parent = call.parent
            self.link.send(
                again(known, call.id, parent.id if parent else 0, call.ordinal, call.started, duration, value or 0.0)
            )
            return
        fields, arrays = make()
        number = None if value is None else ("value", value)
        self._flush_sites()
        if not self._remembers or not (value is None or isfinite(value)):
            self.link.send(self.fact(key[0], call, fields, arrays, duration, number=number))
            return
        size = sum(map(len, arrays.values())) * 8
        if len(self._told) >= _KEPT_FACTS or self._told_bytes + size > _KEPT_BYTES:
            self._told.clear()
            self._told_bytes = 0
        self._told_bytes += size
        kept = len(self._told) + 1
        self.link.send(self.fact(key[0], call, fields, arrays, duration, number=number, keep=kept))
        self._told[key] = kept

    def fact(
        self,
        kind: str,
        call: Call | None,
        fields: dict[str, Any],
        arrays: Mapping[str, Any] | None = None,
        duration: float = 0.0,
        ordinal: int | None = None,
        number: tuple[str, float] | None = None,
        keep: int = 0,
    ) -> bytes:
        """A fact as a packet. Fields that hardly differ from call to call are written once; `number` is the one that does."""
        if call is None:
            origin = f'"t":"event","k":"{kind}","time":{time()!r},"s":0'
        else:
            parent = call.parent.id if call.parent is not None else 0
            ordinal = call.ordinal if ordinal is None else ordinal
            origin = (
                f'"t":"event","k":"{kind}","call":{call.id},"parent":{parent},"ordinal":{ordinal},'
                f'"time":{call.started!r},"duration":{duration!r},"s":{call.site}'
            )
        if keep:
            origin += f',"keep":{keep}'
        try:
            members = self._body(kind, fields)
        except ValueError:  # a figure that JSON cannot hold
            odd = {name: value for name, value in fields.items() if type(value) is float and not isfinite(value)}
            members = body({name: value for name, value in fields.items() if name not in odd})
            arrays = {**(arrays or {}), **odd}
        return assembled(origin + members, arrays, number)

    def _body(self, kind: str, fields: dict[str, Any]) -> str:
        key = (kind, *fields.values())
        try:
            known = self._bodies.get(key)
        except TypeError:  # a field that does not hash
            return body(fields)
        if known is None:
            if len(self._bodies) >= _KEPT_BODIES:
                self._bodies.clear()
            known = self._bodies[key] = body(fields)
        return known

    def emit_measured(
        self,
        tensors: Sequence[torch.Tensor],
        build: Callable[[list[float]], Sequence[bytes]],
    ) -> None:
        """Send what `build` makes of the tensors' norms: at once on CPU; on accelerators when the numbers have arrived."""
        if measure.synchronous(tensors):
            self.send(build(measure.norms(tensors)))
            return
        self._flush_sites()
        pending = measure.Pending(tensors)

        def ready(wait: bool) -> bytes | None:
            if not wait and not pending.ready():
                return None
            return b"".join(build(pending.values()))

        self.link.send_later(ready)

    def send(self, packets: Sequence[bytes]) -> None:
        """Send facts now."""
        self._flush_sites()
        for made in packets:
            self.link.send(made)

    def _flush_sites(self) -> None:
        fresh = self.sites.fresh
        if fresh:
            for described in fresh:
                self.link.send(packet(described))
            fresh.clear()

    def _answer(self, request: dict[str, Any]) -> bytes | None:
        return self.answer(request)


class Ours:
    """Our own work in the person's thread. One a hook, never entered twice at a time: under the session's lock, and silent inside."""

    __slots__ = ("_apart", "_began", "_hook", "_local", "_lock", "_session")

    def __init__(self, session: Session, hook: str) -> None:
        self._session = session
        self._hook = hook
        self._apart: AbstractContextManager[Any] = plainly()
        self._began = 0.0
        self._lock, self._local = session.lock, session.local

    def __enter__(self) -> None:
        session = self._session
        began = perf_counter()
        lock = session.lock
        lock.acquire()
        self._local.busy = True
        self._began, self._lock = began, lock
        self._apart = outside = apart() if dispatch_modes() or function_modes() else plainly()
        outside.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        session = self._session
        try:
            self._apart.__exit__(None, None, None)
            if error is None:
                return False
            if not isinstance(error, Exception) or _of_signal_handler(error):
                return False
            session.failed(self._hook, error)
            return True
        finally:
            self._local.busy = False
            session.own += perf_counter() - self._began
            self._lock.release()


def _of_signal_handler(error: BaseException) -> bool:
    """A signal handler of the person's raised this while our code ran."""
    handlers = {getattr(signal.getsignal(number), "__code__", None) for number in signal.valid_signals()} - {None}
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in handlers:
            return True
        trace = trace.tb_next
    return False


def _hello() -> dict[str, Any]:
    rank, world = 0, 1
    for variable in ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"):
        if os.environ.get(variable, "").isdigit():
            rank = int(os.environ[variable])
            break
    if os.environ.get("WORLD_SIZE", "").isdigit():
        world = int(os.environ["WORLD_SIZE"])
    return {
        "t": "hello",
        "pid": os.getpid(),
        "ppid": os.getppid(),
        "rank": rank,
        "world_size": world,
        "argv": [str(part) for part in sys.argv],
        "python": sys.version.split()[0],
        "executable": sys.executable,
        "torch": str(torch.__version__),
        "time": time(),
    }
