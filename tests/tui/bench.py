"""What the screen costs under load: `python -m tests.tui.bench`. Events at a rate, keys meanwhile, on links of several speeds."""

from __future__ import annotations

import asyncio
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from gradtui.events import (
    BackwardEnded,
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
from gradtui.ledger import RunLedger
from gradtui.ledger import snapshot as take_snapshot
from gradtui.wire.messages import Grown, Running
from tests.tui.fake_run import FakeRun, Training
from tests.tui.terminal import Terminal, terminal

PARAMETERS = int(os.environ.get("GRADTUI_BENCH_PARAMETERS", "300"))
TICK = 0.04


class Flood(Training):
    """A model of many parameters, training as fast as it is asked to."""

    def prologue(self) -> list[Event]:
        ids = tuple(range(1, PARAMETERS + 1))
        infos = tuple(
            ParameterInfo(
                i, f"model.blocks.{i // 12}.part{i % 12}.weight", (64, 64), "torch.float32", "cpu", registered=True
            )
            for i in ids
        )
        self.ids = ids
        return [
            ProcessJoined(seq=self._next(), pid=1),
            ParametersSeen(seq=self._next(), parameters=infos),
            OptimizerSeen(seq=self._next(), optimizer=OptimizerInfo(1, "optimizer", "SGD", ids)),
        ]

    def window(self) -> list[Event]:
        """zero_grad, backward, step."""
        zero = GradsZeroed(
            by="optimizer", owner="optimizer", how="none", parameters=self.ids, optimizer=1, **self._origin("zero_grad")
        )
        norms = tuple(0.1 + 0.05 * math.sin(self.seq + i) for i in self.ids)
        added = Contributions(
            parameters=self.ids, incoming=norms, before=(-1.0,) * len(norms), after=norms, finite=(True,) * len(norms)
        )
        backward = BackwardEnded(loss="loss", value=0.5, contributions=added, **self._origin("backward"))
        step = OptimizerStepped(optimizer=1, used=self.ids, moved=self.ids, **self._origin("step"))
        return [zero, backward, step]


def host(folder: Path, rate: float, seconds: float) -> None:
    """Serve a run that makes `rate` events a second."""

    async def serve() -> None:
        training = Flood(steps=1)
        run = FakeRun(folder, training)
        run.state = "running"
        ledger = RunLedger()
        run._record(run.opening)
        for event in run.opening:
            ledger.apply(event)
        await run.serve()
        while not any(run.asked):
            await asyncio.sleep(0.01)
        run.tell(Running(True))
        started, made, snapshot = time.monotonic(), 0.0, 0
        while time.monotonic() - started < seconds:
            due = (time.monotonic() - started) * rate
            batch: list[Event] = []
            while made < due:
                batch += training.window()
                made += 3
            run._record(batch)
            for event in batch:
                ledger.apply(event)
            if run.seq - snapshot > 2000:
                snapshot = run.seq
                run.writer.add_snapshot(run.seq, take_snapshot(ledger.of(0)))
            line = f"step {run.seq} loss 0.5\r\n".encode()
            run.writer.add_output(run.written, run.seq, 0.0, line)
            run.written += len(line)
            run.writer.commit()
            run.tell(Grown(run.seq, run.written, 0))
            await asyncio.sleep(TICK)
        await asyncio.sleep(60)

    asyncio.run(serve())


def cpu(pid: int) -> float:
    """Seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def keys(term: Terminal, seconds: float) -> list[float]:
    """Milliseconds from a key to the row it moves to, again and again."""
    found: list[float] = []
    until = time.monotonic() + seconds
    down = True
    while time.monotonic() < until:
        started = time.monotonic()
        before = cursor_row(term)
        term.type("j" if down else "k")
        while cursor_row(term) == before and time.monotonic() - started < 20:
            term.read(0.002)
        found.append((time.monotonic() - started) * 1e3)
        down = not down
        pause = time.monotonic() + 0.13
        while time.monotonic() < pause:
            term.read(0.01)
    return sorted(found)


def cursor_row(term: Terminal) -> int:
    """The row that the table's cursor is on."""
    return next((y for y, row in enumerate(term.screen.display) if y > 8 and row.startswith("► ")), -1)


def measure(rate: float, link: float, size: tuple[int, int] = (80, 24), seconds: float = 8.0) -> None:
    """One row of the table."""
    folder = Path(tempfile.mkdtemp()) / "run"
    command = [sys.executable, "-m", "tests.tui.bench", "host", str(folder), str(rate), str(seconds + 5)]
    server = subprocess.Popen(command)
    try:
        with terminal(["-m", "tests.tui.bench", "screen", str(folder)], *size, rate=link) as term:
            term.wait(lambda: "RUNNING" in term.text and cursor_row(term) > 0)
            started, used, sent = time.monotonic(), cpu(term.pid), len(term.raw)
            times = keys(term, seconds)
            took = time.monotonic() - started
            share = (cpu(term.pid) - used) / took
            rss = int(Path(f"/proc/{term.pid}/statm").read_text().split()[1]) * 4096 / 1e6
            print(
                f"{rate:>7.0f}/s  {size[0]}x{size[1]:<4} link {link or math.inf:>8.0f} B/s   key p50 {times[len(times) // 2]:6.0f} ms"
                f"  p95 {times[int(len(times) * 0.95)]:6.0f} ms   cpu {share:5.0%}   {(len(term.raw) - sent) / took / 1e3:5.1f} kB/s   rss {rss:.0f} MB"
            )
    finally:
        server.kill()
        server.wait()


def main() -> None:
    """All rows, or one role of one."""
    if sys.argv[1:2] == ["host"]:
        host(Path(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4]))
    elif sys.argv[1:2] == ["screen"]:
        from gradtui.tui import open_screen

        sys.exit(open_screen(Path(sys.argv[2])))
    else:
        for rate, link in ((0, 0), (1000, 0), (1000, 200e3), (1000, 50e3), (1000, 12e3), (5000, 0)):
            measure(rate, link)


if __name__ == "__main__":
    main()
