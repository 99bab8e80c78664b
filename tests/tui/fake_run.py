"""A run made of paper: a real timeline, a real socket, and a host that plays scripted calls. Frozen times, fixed names."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from gradtui.events import (
    BackwardEnded,
    CallKind,
    CallSite,
    Contributions,
    Event,
    GradsZeroed,
    OptimizerInfo,
    OptimizerSeen,
    OptimizerStepped,
    ParameterInfo,
    ParametersSeen,
    ProcessJoined,
)
from gradtui.rules.finding import Evidence, Finding, First, Site, encode_finding
from gradtui.timeline import TimelineWriter
from gradtui.tui.keymap import State
from gradtui.wire.decode import event_packet
from gradtui.wire.messages import (
    Continue,
    Ended,
    FinishWindow,
    Frame,
    Grown,
    Hello,
    Message,
    Pause,
    Reply,
    Request,
    Running,
    RunTo,
    StepInto,
    StepOver,
    Stop,
    Stopped,
    ViewTensor,
    Welcome,
    Where,
    decode_request,
    encode_line,
)

SCRIPT = "/home/user/digits/train.py"
SOURCE = '''"""Digits, by a small network, with two micro-batches to a step."""

import torch
from torch import nn

from data import loader

model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss_fn = nn.CrossEntropyLoss()


def train(epochs: int, accumulate: int = 2) -> None:
    for epoch in range(epochs):
        for index, (x, y) in enumerate(loader):
            if index % accumulate == 0 and epoch == 0:
                optimizer.zero_grad()
            loss = loss_fn(model(x), y) / accumulate
            loss.backward()
            if index % accumulate == accumulate - 1:
                optimizer.step()
        print(f"epoch {epoch}  loss {loss.item():.4f}")


train(epochs=3)
'''
LINES: dict[CallKind, int] = {"zero_grad": 17, "backward": 19, "step": 21}
NAMES = ("model.0.weight", "model.0.bias", "model.2.weight", "model.2.bias")
SHAPES = ((32, 64), (32,), (10, 32), (10,))
NORMS = (1.2e-1, 3.1e-2, 4.4e-1, 9.0e-2)
START = 1_700_000_000.0


@dataclass
class Beat:
    """One call: where the run stops before it, and what has happened once it ran."""

    kind: CallKind
    ordinal: int
    events: list[Event]
    value: float | None = None
    output: bytes = b""
    findings: list[tuple[int, Finding]] = field(default_factory=list)

    def where(self, call: int, reason: str = "step") -> Where:
        """The stop before it."""
        line = LINES[self.kind]
        return Where(
            process=0,
            kind=self.kind,
            call=call,
            ordinal=self.ordinal,
            reason=reason,
            expression="loss" if self.kind == "backward" else "optimizer",
            value=self.value,
            frames=(Frame(SCRIPT, line, "train"), Frame(SCRIPT, 25, "<module>")),
        )


def site(kind: CallKind) -> CallSite:
    """The line that makes calls of a kind."""
    line = LINES[kind]
    source = SOURCE.splitlines()[line - 1].strip()
    return CallSite(SCRIPT, line, "train", source, "loss" if kind == "backward" else "optimizer")


class Training:
    """Writes the story: windows of two backwards; the second epoch forgets to clear."""

    def __init__(self, steps: int = 4, forgets_from: int = 2) -> None:
        self.steps, self.forgets_from = steps, forgets_from
        self.seq = 0
        self.sums = [0.0] * 4
        self.held = False
        self.ordinals: dict[CallKind, int] = {"zero_grad": 0, "backward": 0, "step": 0}

    def prologue(self) -> list[Event]:
        """Joining, parameters, the optimizer."""
        infos = tuple(
            ParameterInfo(i + 1, name, shape, "torch.float32", "cpu", registered=True, module="Linear", root="model")
            for i, (name, shape) in enumerate(zip(NAMES, SHAPES, strict=True))
        )
        optimizer = OptimizerInfo(1, "optimizer", "SGD", (1, 2, 3, 4), (0.1,))
        return [
            ProcessJoined(seq=self._next(), pid=4242, argv=("train.py",), torch="2.13.0", time=START),
            ParametersSeen(seq=self._next(), parameters=infos, time=START),
            OptimizerSeen(seq=self._next(), optimizer=optimizer, time=START),
        ]

    def beats(self) -> Iterator[Beat]:
        """Every call of the run."""
        for step in range(self.steps):
            if step < self.forgets_from:
                yield self._zero()
            yield self._backward(0.6 / (step + 1))
            yield self._backward(0.5 / (step + 1))
            last = self._step()
            if step >= self.forgets_from:
                last.findings.append((1, stale_finding(self.seq - 2, step - self.forgets_from + 1)))
            last.output = f"epoch {step}  loss {0.5 / (step + 1):.4f}\r\n".encode()
            yield last

    def _next(self) -> int:
        self.seq += 1
        return self.seq

    def _origin(self, kind: CallKind) -> dict[str, Any]:
        self.ordinals[kind] += 1
        seq = self._next()
        return {
            "seq": seq,
            "call": seq,
            "ordinal": self.ordinals[kind],
            "site": site(kind),
            "time": START + seq,
            "duration": 0.012,
        }

    def _zero(self) -> Beat:
        held = (1, 2, 3, 4) if self.held else ()
        event = GradsZeroed(
            by="optimizer", owner="optimizer", how="none" if held else "nothing", parameters=held, optimizer=1, covers=4,
            **self._origin("zero_grad"),
        )  # fmt: skip
        self.sums, self.held = [0.0] * 4, False
        return Beat("zero_grad", event.ordinal, [event])

    def _backward(self, value: float) -> Beat:
        wobble = 1 + 0.2 * math.sin(self.seq)
        incoming = tuple(norm * value * wobble for norm in NORMS)
        before = tuple(self.sums) if self.held else (-1.0,) * 4
        self.sums = [math.sqrt(s * s + n * n + 1.6 * s * n) for s, n in zip(self.sums, incoming, strict=True)]
        self.held = True
        event = BackwardEnded(
            loss="loss",
            value=value,
            contributions=Contributions(
                parameters=(1, 2, 3, 4), incoming=incoming, before=before, after=tuple(self.sums), finite=(True,) * 4
            ),
            reached=4,
            root="DivBackward0",
            divisor=2.0,
            training="train",
            **self._origin("backward"),
        )
        return Beat("backward", event.ordinal, [event], value)

    def _step(self) -> Beat:
        event = OptimizerStepped(optimizer=1, lr=(0.1,), used=(1, 2, 3, 4), moved=(1, 2, 3, 4), **self._origin("step"))
        return Beat("step", event.ordinal, [event])


def stale_finding(first: int, count: int) -> Finding:
    """What the rules would say of the forgotten zero_grad."""
    at = Site(SCRIPT, LINES["backward"], "train", "loss.backward()")
    return Finding(
        rule="stale-gradient",
        severity="error",
        status="confirmed",
        message="Steps of `optimizer` used gradients of 4 parameters (model.0.weight, model.0.bias, model.2.weight and 1 more) "
        "that were never cleared: each sum still held what an earlier step had used.",
        fix="Add `optimizer.zero_grad()` before the backward at train.py:19, or right after its step.",
        site=at,
        related=(Site(SCRIPT, LINES["step"], "train", "optimizer.step()"),),
        parameters=NAMES,
        parameter_ids=(1, 2, 3, 4),
        parameter_count=4,
        first=First("backward", 5, first),
        count=count,
        evidence=(Evidence("uses of a sum used before", "1", "0"),),
        seq=first + 2,
        key="1",
    )


class FakeRun:
    """A run directory, and the host that serves it."""

    def __init__(self, folder: Path, training: Training | None = None, exit_code: int = 0) -> None:
        self.folder = folder
        self.exit_code = exit_code
        folder.mkdir(parents=True, exist_ok=True)
        training = training or Training()
        self.writer = TimelineWriter(folder / "timeline.db")
        self.writer.add_source(SCRIPT, SOURCE)
        self._sites = {kind: number for number, kind in enumerate(LINES, 1)}
        for kind, number in self._sites.items():
            self.writer.add_site(number, site(kind))
        self.opening = training.prologue()
        self.beats = list(training.beats())
        self.at = -1
        """Index of the beat that is next; -1: nothing has happened yet."""
        self.seq = self.written = self.revision = 0
        self.asked: list[Request] = []
        self.state: State = "starting"
        self._clients: list[asyncio.StreamWriter] = []
        self._server: asyncio.Server | None = None

    # -- the story

    def begin(self) -> None:
        """The script makes its first call: the run stops before it."""
        self._record(self.opening)
        self.at = 0
        self.state = "stopped"

    def play(self, beats: int = 1) -> None:
        """Run so many calls."""
        for _ in range(beats):
            beat = self.beats[self.at]
            self._record(beat.events)
            if beat.output:
                self.writer.add_output(self.written, self.seq, START + self.seq, beat.output)
                self.written += len(beat.output)
            for number, finding in beat.findings:
                self.revision += 1
                self.writer.put_finding(number, self.revision, encode_finding(finding))
            self.at += 1
            if self.at == len(self.beats):
                self.state = "ended"
                break
        self.writer.commit()

    def _record(self, events: list[Event]) -> None:
        kinds: dict[type, CallKind] = {BackwardEnded: "backward", OptimizerStepped: "step", GradsZeroed: "zero_grad"}
        rows = []
        for event in events:
            kind = kinds.get(type(event))
            number = self._sites[kind] if kind else None
            rows.append((event.seq, type(event).__name__, 0, number, *event_packet(event)))
            self.seq = event.seq
        self.writer.add_events(rows)
        self.writer.commit()

    @property
    def ended(self) -> Ended:
        """How the script ended."""
        return Ended(self.seq, self.exit_code)

    def where(self, reason: str = "step") -> tuple[Where, ...]:
        """Where the run is stopped."""
        return (self.beats[self.at].where(self.seq + 1, reason),) if self.state == "stopped" else ()

    # -- the host

    async def serve(self) -> None:
        """Listen on the run's socket."""
        self._server = await asyncio.start_unix_server(self._client, self.folder / "client.sock")

    async def close(self) -> None:
        """Go away."""
        for writer in self._clients:
            writer.close()
        if self._server:
            self._server.close()
        self.writer.close()

    def tell(self, message: Message) -> None:
        """Say something to every client."""
        for writer in self._clients:
            writer.write(encode_line(message) + b"\n")

    def tell_all(self, reason: str = "step") -> None:
        """Say how far the timeline goes and where the run stands."""
        self.tell(Grown(self.seq, self.written, self.revision))
        if self.state == "stopped":
            self.tell(Stopped(self.seq, self.where(reason)))
        elif self.state == "ended":
            self.tell(self.ended)

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._clients.append(writer)
        try:
            while row := await reader.readline():
                request = decode_request(row)
                self.asked.append(request)
                self._answer(request, writer)
        except (asyncio.CancelledError, ConnectionError):
            pass  # the test is over, or the screen is gone

    def _answer(self, request: Request, writer: asyncio.StreamWriter) -> None:
        match request:
            case Hello():
                self._welcome(writer)
            case StepOver() | StepInto():
                self._run(1)
            case FinishWindow():
                self._run_until(lambda beat, past: past.kind == "step")
            case RunTo(kinds=kinds) if kinds:
                self._run_until(lambda beat, past: beat.kind in kinds)
            case RunTo(finding=True):
                self._run_until(lambda beat, past: bool(past.findings), "finding stale-gradient")
            case Continue():
                self.state = "running"
                self.tell(Running(True))
            case Pause():
                self.state = "stopped"
                self.tell_all("pause")
            case ViewTensor():
                reply = Reply(request.id, msgspec.to_builtins(picture(request)))
                writer.write(encode_line(reply) + b"\n")
            case Stop():
                self.state = "ended"
                self.exit_code = -15
                self.tell(Ended(self.seq, None, 15))
            case _:
                pass

    def _run(self, beats: int, reason: str = "step") -> None:
        self.tell(Running(False))
        self.play(beats)
        self.tell_all(reason)

    def _run_until(self, stop: object, reason: str = "step") -> None:
        self.tell(Running(False))
        while self.state == "stopped":
            past = self.beats[self.at]
            self.play()
            if self.state == "stopped" and stop(self.beats[self.at], past):  # type: ignore[operator]
                break
        self.tell_all(reason)

    def _welcome(self, writer: asyncio.StreamWriter) -> None:
        timeline = str(self.folder / "timeline.db")
        welcome = Welcome(
            str(self.folder),
            timeline,
            ("python", "train.py"),
            "/usr/bin/python3",
            self.state,
            self.seq,
            self.where(),
        )
        writer.write(encode_line(welcome) + b"\n")
        self.tell(Grown(self.seq, self.written, self.revision))
        if self.state == "ended":
            self.tell(self.ended)


def picture(request: ViewTensor) -> object:
    """A tensor with waves in it."""
    from gradtui.wire.messages import TensorView

    shape = SHAPES[request.parameter - 1]
    rows, columns = min(request.rows, shape[0]), min(request.columns, shape[1] if len(shape) > 1 else 1)
    grid = tuple(
        tuple(math.sin(row / 3.0) * math.cos(column / 4.0) * 3e-2 for column in range(columns)) for row in range(rows)
    )
    top, left = request.values_at
    values = tuple(
        tuple(
            math.sin((top + row) / 3.0) * math.cos((left + column) / 4.0) * 3e-2 for column in range(request.values[1])
        )
        for row in range(request.values[0])
    )
    return TensorView(
        parameter=request.parameter,
        what=request.what,
        shape=shape,
        dtype="torch.float32",
        device="cpu",
        grid=grid,
        pooled=(1, 1),
        plane=shape if len(shape) == 2 else (1, shape[0]),
        norm=NORMS[request.parameter - 1],
        mean=1.3e-4,
        std=1.1e-2,
        minimum=-2.9e-2,
        minimum_at=(5, 12)[: len(shape)],
        maximum=3.0e-2,
        maximum_at=(4, 0)[: len(shape)],
        count=math.prod(shape),
        histogram=(1, 2, 4, 9, 15, 28, 44, 60, 81, 99, 120, 98, 80, 61, 45, 27, 16, 8, 4, 2, 1),
        edges=tuple(-0.03 + 0.06 * i / 21 for i in range(22)),
        values=values,
        values_at=(top, left),
    )
