"""However a program ends, everything before it is kept and the end is told as it was."""

from __future__ import annotations

import pytest

from gradtui.events import OptimizerStepped, ProcessEnded, ProcessJoined
from gradtui.ledger import Ledger, restore, snapshot
from tests.host.conftest import Folder

TRAIN = """
import os, signal, sys
import torch

def train(steps):
    w = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)
    for _ in range(steps):
        w.sum().backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("end", "exit_code", "signal", "last_line"),
    [
        ("sys.exit(7)", 7, None, ""),
        ("os._exit(3)", 3, None, ""),
        ("os.kill(os.getpid(), signal.SIGKILL)", None, 9, ""),
        ("os.kill(os.getpid(), signal.SIGINT)", None, 2, "KeyboardInterrupt"),
        ("raise SystemExit('enough')", 1, None, "enough"),
    ],
)
def test_every_event_before_the_end_is_kept(folder: Folder, end, exit_code, signal, last_line):
    """Exit code or signal, and the last line on stderr, are the program's own."""
    folder.write("train.py", TRAIN + f"\ntrain(20)\n{end}\ntrain(1)\n")
    watched = folder.observed("train.py")
    assert (watched.ending.exit_code, watched.ending.signal) == (exit_code, signal)
    assert len(watched.all(OptimizerStepped)) == 20
    assert (watched.err.splitlines() or [""])[-1] == last_line
    assert "gradtui" not in watched.err


def test_a_long_run_is_recorded_with_snapshots(folder: Folder):
    """Three thousand events: a seek need not fold them all, and comes to the same."""
    folder.write("train.py", TRAIN + "\ntrain(1500)\n")
    watched = folder.observed("train.py")
    assert len(watched.all(OptimizerStepped)) == 1500
    assert watched.snapshot is not None
    at, data = watched.snapshot
    fold = Ledger()
    for event in watched.events[:at]:
        fold.apply(event)
    assert snapshot(fold) == data
    assert restore(data).parameters[1].info.name == "w"


def test_children_join_where_they_train_and_are_silent_where_they_do_not(folder: Folder):
    """A spawned child, a forked one and a subprocess train: three more processes. DataLoader workers do not."""
    folder.write("child.py", TRAIN + "\ntrain(3)\n")
    folder.write(
        "parent.py",
        TRAIN
        + """
import multiprocessing, subprocess
from torch.utils.data import DataLoader

def main():
    train(1)
    loader = DataLoader(torch.arange(8.0), batch_size=2, num_workers=2, multiprocessing_context="fork")
    assert sum(batch.sum() for batch in loader) == 28
    spawned = multiprocessing.get_context("spawn").Process(target=train, args=(2,))
    spawned.start()
    spawned.join()
    forked = os.fork()
    if not forked:
        train(4)
        os._exit(0)
    os.waitpid(forked, 0)
    subprocess.run([sys.executable, "child.py"], check=True)
    train(1)

if __name__ == "__main__":
    main()
""",
    )
    watched = folder.observed("parent.py")
    assert (watched.ending.exit_code, watched.err) == (0, "")
    steps = [len([e for e in watched.all(OptimizerStepped) if e.process == process]) for process in range(4)]
    assert steps == [2, 2, 4, 3]
    assert [event.main for event in watched.all(ProcessJoined)] == [True, False, False, False]
    assert len(watched.all(ProcessEnded)) == 4
    assert all(event.site.source == "optimizer.step()" for event in watched.all(OptimizerStepped))
