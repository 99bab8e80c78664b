"""What a program inherits from its shell it has under us: umask, open descriptors, ignored signals; and our host imports nothing of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gradtui.host.launch import Launch
from gradtui.host.runs import new_run, start_host
from gradtui.wire import messages
from tests.host.conftest import Folder
from tests.host.test_host_dies import Client


def test_umask_and_descriptors_reach_the_program_on_its_terminal(folder: Folder, monkeypatch: pytest.MonkeyPatch):
    """The host keeps its own files to this user, and the working directory has a module of a name it imports itself."""
    folder.write("signal.py", "raise SystemExit('not the one')\n")
    monkeypatch.setenv("XDG_STATE_HOME", str(folder.path / "state"))
    monkeypatch.chdir(folder.path)
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    before = os.umask(0o027)
    try:
        directory = new_run()
        program = (sys.executable, "-S", "-c", f"import os; os.write({writing}, oct(os.umask(0)).encode())")
        start_host(directory, Launch(program, ""), {}, (24, 80), "params")
    finally:
        os.umask(before)
        os.close(writing)
    client = Client(directory)
    client.until(messages.Ended)
    os.set_blocking(reading, False)
    assert os.read(reading, 100) == b"0o27"
    assert (directory / "timeline.db").stat().st_mode & 0o077 == 0
    client.send(messages.Leave())
    client.close()
    os.close(reading)


def test_ignored_signals_stay_ignored(tmp_path: Path):
    """`nohup gradtui check train.py &`: the script outlives the terminal as it would alone."""
    (tmp_path / "sig.py").write_text("import signal\nprint(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN)\n")
    done = subprocess.run(
        [sys.executable, "-m", "gradtui", "check", "-q", "sig.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    assert (done.stdout, done.stderr, done.returncode) == ("True\n", "", 4)


def test_runs_of_one_second_have_folders_of_their_own(folder: Folder, monkeypatch: pytest.MonkeyPatch):
    """Named by the second in which they began."""
    monkeypatch.setenv("XDG_STATE_HOME", str(folder.path / "state"))
    assert len({new_run() for _ in range(3)}) == 3


def test_signals_for_the_script_reach_it_and_end_nobody_else(tmp_path: Path):
    """A cluster sends SIGUSR1 before it takes the machine away; Ctrl-\\ is for a script that dumps its stacks."""
    (tmp_path / "sig.py").write_text(
        "import os, signal, time\n"
        "got = []\n"
        "signal.signal(signal.SIGUSR1, lambda number, frame: got.append(number))\n"
        "os.kill(os.getppid(), signal.SIGQUIT)\n"
        "os.kill(os.getppid(), signal.SIGUSR1)\n"
        "while not got:\n"
        "    time.sleep(0.01)\n"
        "print(got)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "gradtui", "check", "-q", "sig.py"], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr, done.returncode) == ("[10]\n", "", 4)
