"""The person's program cannot tell that it is watched, except by asking for our environment variables."""

from __future__ import annotations

import os
import sys

from gradtui.events import BackwardEnded, CallRaised, OptimizerStepped, ProcessJoined
from gradtui.host.launch import of_command, of_module
from tests.host.conftest import Folder

TRAINING = """
import hashlib, json, os, random, sys, warnings
import numpy
import torch
from torch import nn
import helper

def state():
    return {
        "argv": sys.argv,
        "path": sys.path,
        "file": __file__,
        "name": __name__,
        "main": sys.modules["__main__"].__dict__ is globals(),
        "names": sorted(globals()),
        "cwd": os.getcwd(),
        "flags": str(sys.flags),
        "environment": {k: v for k, v in sorted(os.environ.items()) if not k.startswith("GRADTUI_") and k != "PYTHONPATH"},
        "sitecustomize": getattr(sys.modules.get("sitecustomize"), "MARK", None),
        "hooks": [str(hook) for hook in (sys.excepthook, sys.displayhook)] and sys.excepthook is sys.__excepthook__,
        "threads": __import__("threading").active_count(),
        "filters": len(warnings.filters),
        "recursion": sys.getrecursionlimit(),
        "trace": [sys.gettrace(), sys.getprofile()],
    }

def digest(*tensors):
    return hashlib.sha256(b"".join(t.detach().numpy().tobytes() for t in tensors)).hexdigest()

def train():
    torch.manual_seed(1)
    random.seed(1)
    numpy.random.seed(1)
    model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Dropout(0.3), nn.ReLU(), nn.Linear(16, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=1e-3)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3)
    data = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randint(0, 4, (64,)))
    loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
    scheduler.step()  # too early: torch warns, at this line
    for epoch in range(2):
        for n, (x, y) in enumerate(loader):
            loss = nn.functional.cross_entropy(model(x), y) / 2
            loss.backward()
            if n % 2:
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
        scheduler.step()
        print(f"epoch {epoch} loss {loss.item()!r}")
    w = torch.zeros(3, requires_grad=True)
    for _ in range(5):
        (w - random.random() - numpy.random.rand() - torch.rand(3)).pow(2).sum().backward()
        w.data -= 0.1 * w.grad
        w.grad.data.zero_()
    torch.nn.utils.clip_grad_norm_((p for p in []), 1.0)
    print(digest(*model.state_dict().values(), w), digest(torch.get_rng_state()))
    print(random.random(), numpy.random.rand())
    print(torch.is_grad_enabled(), torch.is_anomaly_enabled(), torch.get_default_dtype())
    return model

if __name__ == "__main__":
    print(json.dumps(state(), indent=1))
    model = train()
    print("talk", file=sys.stderr)
    loss = model(torch.randn(8, 8)).sum()
    loss.backward()
    helper.again(loss)
"""

HELPER = """
def again(loss):
    loss.backward()
"""


def test_a_program_that_fails_at_the_end_is_the_same_to_the_last_byte(folder: Folder, monkeypatch):
    """stdout, stderr with warnings and traceback, exit code, what it sees of itself, random numbers, weights."""
    folder.write("train.py", TRAINING)
    folder.write("helper.py", HELPER)
    own = folder.write("mine/sitecustomize.py", "MARK = 'the one of the person'\n").parent
    monkeypatch.setenv("PYTHONPATH", str(own))
    script = str(folder.path / "train.py")
    bare = folder.bare(script, "--epochs", "3", "--help")
    watched = folder.observed("train.py", "--epochs", "3", "--help")
    assert watched.out == bare.stdout
    assert watched.err == bare.stderr
    assert "second time" in bare.stderr
    assert "lr_scheduler.step()" in bare.stderr
    assert (watched.ending.exit_code, bare.returncode) == (1, 1)
    assert "the one of the person" in watched.out
    assert len(watched.all(BackwardEnded)) == 16 + 5 + 1
    assert len(watched.all(OptimizerStepped)) == 8
    assert [event.kind for event in watched.all(CallRaised)] == ["backward"]


SMALL = """
import sys
import torch
w = torch.ones(2, requires_grad=True)
optimizer = torch.optim.SGD([w], lr=0.1)
w.sum().backward()
optimizer.step()
print(__name__, __spec__ and __spec__.name, sys.argv[1:], sys.path[0], flush=True)
"""


def test_a_module_runs_as_python_runs_it(folder: Folder):
    """-m package.train: __main__, its spec, the path, relative imports."""
    folder.write("package/__init__.py", "")
    folder.write("package/other.py", "X = 1\n")
    folder.write("package/train.py", "from .other import X\n" + SMALL)
    bare = folder.bare("-m", "package.train", "--x")
    watched = folder.observed(of_module("package.train", ("--x",)))
    assert (watched.out, watched.err, watched.ending.exit_code) == (bare.stdout, bare.stderr, 0)
    assert watched.kinds == ["ProcessJoined", "BackwardEnded", "OptimizerStepped", "ProcessEnded"]
    site = watched.all(BackwardEnded)[0].site
    assert (site.file, site.expression) == (str(folder.path / "package" / "train.py"), "w.sum()")


def test_a_program_from_standard_input_is_watched(folder: Folder, monkeypatch):
    """python - < script: no file at all."""
    folder.write("script", SMALL)
    with (folder.path / "script").open() as text:
        before = os.dup(0)
        os.dup2(text.fileno(), 0)
        try:
            watched = folder.observed(of_command((sys.executable, "-")))
        finally:
            os.dup2(before, 0)
            os.close(before)
    assert watched.out == folder.bare("-", stdin=SMALL.lstrip("\n")).stdout
    assert watched.all(BackwardEnded)[0].site.file == "<stdin>"


def test_looking_for_torch_before_importing_it_does_not_blind_us(folder: Folder):
    """find_spec("torch"), as transformers does; and a program that execs another keeps being watched."""
    folder.write("second.py", SMALL)
    folder.write(
        "first.py",
        """
        import importlib.util, os, sys
        assert importlib.util.find_spec("torch") is not None
        assert importlib.util.find_spec("torch").loader is not None
        if len(sys.argv) == 1:
            os.execv(sys.executable, [sys.executable, "second.py"])
        """,
    )
    watched = folder.observed("first.py")
    assert (watched.ending.exit_code, watched.err) == (0, "")
    assert watched.kinds == ["ProcessJoined", "BackwardEnded", "OptimizerStepped", "ProcessEnded"]
    assert watched.all(ProcessJoined)[0].main


def test_a_program_that_never_trains_is_left_alone(folder: Folder):
    """argparse's error: exit 2, usage on stderr, nobody joined."""
    folder.write("args.py", "import argparse\np = argparse.ArgumentParser()\np.add_argument('--lr')\np.parse_args()\n")
    bare = folder.bare(str(folder.path / "args.py"), "--no-such-flag")
    watched = folder.observed("args.py", "--no-such-flag")
    assert (watched.err, watched.ending.exit_code) == (bare.stderr, 2)
    assert (watched.events, watched.ending.observed) == ([], False)


def test_a_program_on_a_terminal_of_its_own_can_be_typed_to(folder: Folder):
    """isatty, the size it was given, and its output, on a pseudo-terminal."""
    folder.write(
        "terminal.py",
        """
        import os, sys
        size = os.get_terminal_size()
        print(sys.stdin.isatty(), sys.stdout.isatty(), sys.stderr.isatty(), size.lines, size.columns)
        """,
    )
    watched = folder.observed("terminal.py", size=(30, 100))
    assert watched.out == "True True True 30 100\r\n"
    assert watched.ending.exit_code == 0
