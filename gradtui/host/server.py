"""Serves clients of a run: JSON lines over a Unix socket in the run's directory. Says what happened; takes requests; never sends facts."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from pathlib import Path
from typing import Any

import msgspec

from gradtui.host.peer import same_user
from gradtui.host.run import Run
from gradtui.wire import messages
from gradtui.wire.messages import Frame, Message, Request, Where

_TICK = 0.04
"""Seconds between commits while events come in."""
_MAX_LINE = 1024 * 1024


class Server:
    """One run's audience: every connected client."""

    def __init__(self, run: Run) -> None:
        self.run = run
        run.audience = self
        self.clients: set[asyncio.StreamWriter] = set()
        self.served = False
        """Some client has been connected."""
        self.empty: asyncio.Event = asyncio.Event()
        self._readonly: set[asyncio.StreamWriter] = set()
        self._views: dict[int, tuple[asyncio.StreamWriter, int]] = {}
        self._next_view = 0
        self._due = False
        self._server: asyncio.Server | None = None

    async def start(self, path: Path) -> None:
        """Listen."""
        self._server = await asyncio.start_unix_server(self._serve, str(path), limit=_MAX_LINE)
        os.chmod(path, 0o600)

    def close(self) -> None:
        """Stop listening and let clients go."""
        if self._server is not None:
            self._server.close()
        for writer in list(self.clients):
            writer.close()

    # -- what clients hear ----------------------------------------------------------------------------------------

    def _send(self, message: Message, to: asyncio.StreamWriter | None = None) -> None:
        raw = messages.encode_line(message) + b"\n"
        for writer in [to] if to is not None else list(self.clients):
            with contextlib.suppress(OSError, RuntimeError):
                writer.write(raw)

    def grown(self) -> None:
        """Commit and tell, once a tick."""
        if not self._due:
            self._due = True
            asyncio.get_running_loop().call_later(_TICK, self._commit)

    def _commit(self) -> None:
        self._due = False
        recorder = self.run.recorder
        if recorder is None:
            return
        recorder.commit()
        self._send(messages.Grown(self.run.seq, recorder.output, recorder.revision))

    def stopped(self) -> None:
        """Tell where the run stands."""
        self._commit()
        self._send(messages.Stopped(self.run.seq, self._where()))

    def running(self, free: bool) -> None:
        """Tell that it goes on."""
        self._send(messages.Running(free))

    def replied(self, raw: dict[str, Any]) -> None:
        """Hand an answer to the client that asked."""
        asked = self._views.pop(int(raw.get("id", 0)), None)
        if asked is not None:
            self._send(messages.Reply(asked[1], raw.get("result"), str(raw.get("error", ""))), asked[0])

    def ended(self) -> None:
        """Tell how it ended."""
        self._commit()
        self._send(self._ending())

    def _ending(self) -> messages.Ended:
        ending = self.run.ending
        return messages.Ended(self.run.seq, ending.exit_code, ending.signal, ending.observed)

    def _where(self) -> tuple[Where, ...]:
        found = []
        for peer in self.run.waiting():
            raw = peer.stopped or {}
            _, site = peer.sites.get(int(raw.get("s") or 0), (0, None))
            frames = tuple(Frame(str(f[0]), int(f[1]), str(f[2])) for f in raw.get("frames") or ())
            if not frames and site is not None:
                frames = (Frame(site.file, site.line, site.function),)
            value = raw.get("value")
            found.append(
                Where(
                    process=peer.index,
                    kind=raw["kind"],
                    call=int(raw["call"]),
                    ordinal=int(raw["ordinal"]),
                    depth=int(raw.get("depth", 0)),
                    reason=str(raw.get("reason", "")),
                    expression=site.expression if site is not None else "",
                    value=float(value) if isinstance(value, (int, float)) and value - value == 0 else None,
                    frames=frames,
                )
            )
        return tuple(found)

    # -- what clients ask -----------------------------------------------------------------------------------------

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not same_user(writer.get_extra_info("socket")):
            writer.close()
            return
        self.clients.add(writer)
        self.served = True
        self.empty.clear()
        left = False
        try:
            while line := await reader.readline():
                request = messages.decode_request(line)
                left = isinstance(request, messages.Leave)
                if not self._take(request, writer):
                    break
                await writer.drain()
        except (OSError, ValueError, msgspec.DecodeError, msgspec.ValidationError):
            pass  # a client that is gone or talks nonsense is let go; the run goes on
        finally:
            self._gone(writer, left)

    def _gone(self, writer: asyncio.StreamWriter, left: bool) -> None:
        self.clients.discard(writer)
        steered = writer not in self._readonly
        self._readonly.discard(writer)
        with contextlib.suppress(OSError, RuntimeError):
            writer.close()
        if not self.clients:
            if not left and steered:
                self.let_go()
            self.empty.set()

    def let_go(self) -> None:
        """Nobody is left to let the run go on: it runs freely."""
        self.run.steering.stop_first = False
        self.run.steering.on_error = False
        self.run.set_breakpoints(())
        self.run.resume({"do": "continue"}, True)

    def _take(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        """Act on a request; False when the client goes."""
        run = self.run
        if writer in self._readonly and not isinstance(request, (messages.ViewTensor, messages.Leave)):
            return True
        match request:
            case messages.Hello(readonly=readonly):
                if readonly:
                    self._readonly.add(writer)
                self._welcome(writer)
            case messages.StepOver():
                run.resume({"do": "step_over"}, False)
            case messages.StepInto():
                run.resume({"do": "step_into"}, False)
            case messages.FinishWindow():
                run.resume({"do": "finish_window"}, False)
            case messages.Continue():
                self._free()
            case messages.RunTo():
                self._run_to(request)
            case messages.Pause():
                run.pause()
            case messages.SetStops(kinds=kinds, on_error=on_error, on_suspicion=on_suspicion):
                run.set_stops(kinds, on_error, on_suspicion)
            case messages.SetBreakpoints(breakpoints=points):
                run.set_breakpoints(points)
            case messages.ViewTensor():
                self._view(request, writer)
            case messages.TypeInput(data=data):
                run.debuggee.type(data.encode("latin-1", "replace"))
            case messages.Resize(rows=rows, columns=columns):
                run.debuggee.resize(rows, columns)
            case messages.Stop(signal=name):
                run.end(signal.Signals[f"SIG{name}"])
            case messages.Leave(free=free):
                if free:
                    self.let_go()
                return False
        return True

    def _free(self) -> None:
        self.run.steering.stop_first = False
        self.run.resume({"do": "continue"}, True)

    def _run_to(self, request: messages.RunTo) -> None:
        self.run.steering.to_finding = request.finding
        if request.finding:
            self.run.steering.stop_first = False
            self.run.resume({"do": "continue"}, True)
            return
        self.run.resume(
            {
                "do": "run_to",
                "kinds": request.kinds,
                "parameter": request.parameter,
                "file": request.file,
                "line": request.line,
            },
            False,
        )

    def _welcome(self, writer: asyncio.StreamWriter) -> None:
        run = self.run
        launch = run.launch
        if run.recorder is not None:
            run.recorder.commit()
        where = self._where()
        state: Any = (
            "ended" if run.ending.over else "stopped" if where else "running" if run.ending.observed else "starting"
        )
        self._send(
            messages.Welcome(
                run=str(run.directory),
                timeline=str(run.directory / "timeline.db"),
                command=launch.command if launch is not None else (),
                interpreter=launch.interpreter if launch is not None else "",
                state=state,
                seq=run.seq,
                where=where,
            ),
            writer,
        )
        self._send(
            messages.Grown(
                run.seq, run.recorder.output if run.recorder else 0, run.recorder.revision if run.recorder else 0
            ),
            writer,
        )
        if run.ending.over:
            self._send(self._ending(), writer)

    def _view(self, request: messages.ViewTensor, writer: asyncio.StreamWriter) -> None:
        peer = self.run.peers.get(request.process)
        if peer is None or peer.stopped is None:
            error = (
                "the run is going on: pause it to look at live values" if peer is not None else "the process has ended"
            )
            self._send(messages.Reply(request.id, None, error), writer)
            return
        self._next_view += 1
        self._views[self._next_view] = (writer, request.id)
        raw = msgspec.to_builtins(request)
        raw.update(do="view_tensor", id=self._next_view)
        peer.send(raw)
