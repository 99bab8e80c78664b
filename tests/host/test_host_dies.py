"""The host may die at any time: the person's program trains on, on its terminal, to the same result."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gradtui.host.launch import of_script
from gradtui.host.runs import new_run, start_host
from gradtui.timeline import TimelineReader
from gradtui.wire import messages
from tests.host.conftest import PATIENCE, Folder

TRAIN = """
import os, subprocess, sys
import torch
torch.manual_seed(0)
w = torch.zeros(3, requires_grad=True)
optimizer = torch.optim.SGD([w], lr=0.1)
for step in range(30):
    if step == 10:
        print("half way", flush=True)
        open("go").read()
    optimizer.zero_grad()
    (w - torch.rand(3)).pow(2).sum().backward()
    optimizer.step()
    print(step, flush=True)
if os.path.exists("late.py"):
    subprocess.run([sys.executable, "late.py"], check=True)
with open("done", "w") as done:
    print(w.tolist(), sys.stdout.isatty(), file=done)
"""


class Client:
    """A client of a run, one message at a time."""

    def __init__(self, run: Path) -> None:
        from time import monotonic, sleep

        until = monotonic() + PATIENCE
        while not (run / "client.sock").exists() and monotonic() < until:
            sleep(0.02)  # the socket's file is the only sign of a host that has come up
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(PATIENCE)
        self._socket.connect(str(run / "client.sock"))
        raw = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        self.host = struct.unpack("3i", raw)[0]
        self._lines = self._socket.makefile("rb")
        self.send(messages.Hello())

    def send(self, request: messages.Request) -> None:
        self._socket.sendall(messages.encode_line(request) + b"\n")

    def until(
        self, kind: type, condition: Callable[[messages.Message], bool] = lambda message: True
    ) -> messages.Message:
        for line in self._lines:
            message = messages.decode_message(line)
            if isinstance(message, kind) and condition(message):
                return message
        raise AssertionError("the host hung up")

    def stopped(self) -> None:
        """The run stands at the gate: it says so, or did before we came."""
        self.until(
            messages.Welcome | messages.Stopped,  # type: ignore[arg-type]
            lambda message: isinstance(message, messages.Stopped) or bool(getattr(message, "where", ())),
        )

    def close(self) -> None:
        self._lines.close()
        self._socket.close()


@pytest.fixture
def run(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A run of TRAIN, started as `gradtui run` starts it, stopped before its first call."""
    folder.write("train.py", TRAIN)
    os.mkfifo(folder.path / "go")
    os.mkfifo(folder.path / "done")
    monkeypatch.setenv("XDG_STATE_HOME", str(folder.path / "state"))
    monkeypatch.chdir(folder.path)
    directory = new_run()
    start_host(directory, of_script("train.py", ()), {}, (24, 80), "params")
    yield directory
    for process in Path("/proc").glob("[0-9]*"):  # only after a failure is any of them left
        with contextlib.suppress(OSError):
            ours = str(directory) in (process / "cmdline").read_text() or (process / "cwd").readlink() == folder.path
            if ours and int(process.name) != os.getpid():
                os.kill(int(process.name), signal.SIGKILL)


def bare(folder: Folder) -> str:
    """What TRAIN comes to without us (and without a terminal)."""
    lines = TRAIN.replace('open("go").read()', "pass").replace('open("done", "w")', 'open("bare", "w")')
    folder.write("bare.py", lines)
    assert folder.bare("bare.py").returncode == 0
    return (folder.path / "bare").read_text().split("]")[0]


def children_of(pid: int) -> list[int]:
    """Descriptors that become readable when a child of that process ends: the program, and the keeper of its terminal."""
    found = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    assert len(found) == 2
    return [os.pidfd_open(child) for child in found]


def killed(client: Client) -> None:
    """The host is gone for certain: its socket is closed by the kernel."""
    os.kill(client.host, signal.SIGKILL)
    with pytest.raises((AssertionError, ConnectionError)):
        client.until(messages.Ended)
    client.close()


def test_a_program_whose_host_is_killed_at_a_stop_trains_on(folder: Folder, run: Path):
    """It was waiting at the gate; the terminal it writes to stays open and is drained; what was recorded can be read. A
    process that starts to train only then finds nobody, and does not wait."""
    expected = bare(folder)
    client = Client(run)
    client.stopped()
    folder.write("late.py", "import torch\ntorch.ones(1, requires_grad=True).sum().backward()\n")
    client.send(messages.StepOver())
    client.until(messages.Stopped)
    children = children_of(client.host)
    killed(client)
    (folder.path / "go").write_text("")
    weights, _, terminal = (folder.path / "done").read_text().partition("]")
    assert (weights, terminal.strip()) == (expected, "True")
    for child in children:
        assert select.select([child], [], [], PATIENCE)[0], "a process of the run is left over"
        os.close(child)
    reader = TimelineReader(run / "timeline.db")
    assert reader.last_seq() >= 3
    reader.close()


def test_a_program_whose_host_is_killed_while_it_runs_trains_on(folder: Folder, run: Path):
    """Free-running: it notices at its next packet, and goes on unobserved."""
    expected = bare(folder)
    client = Client(run)
    client.stopped()
    client.send(messages.Continue())
    client.until(messages.Grown, lambda grown: getattr(grown, "output", 0) > 20)
    killed(client)
    (folder.path / "go").write_text("")
    assert (folder.path / "done").read_text().startswith(expected)


def test_a_client_that_goes_away_lets_a_stopped_run_go_on(folder: Folder, run: Path):
    """The terminal is lost: training goes on, observed, and the next client finds it ended."""
    client = Client(run)
    client.stopped()
    client.close()
    (folder.path / "go").write_text("")
    following = Client(run)
    assert "True" in (folder.path / "done").read_text()
    ended = following.until(messages.Ended)
    assert (ended.exit_code, ended.observed) == (0, True)  # type: ignore[union-attr]
    following.send(messages.Leave())
    following.close()
    reader = TimelineReader(run / "timeline.db")
    steps = [event for event in reader.all_events() if type(event).__name__ == "OptimizerStepped"]
    assert len(steps) == 30
    reader.close()
