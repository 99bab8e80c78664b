"""Likely lines read from the person's source; nothing is ever run, and without a source nothing is said."""

from __future__ import annotations

from gradtui.events import BackwardEnded, CallSite
from gradtui.ledger import Ledger
from gradtui.rules.sources import Sources

FILE = "/proj/train.py"
SOURCE = """import torch
from torch import nn

class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.blocks = [nn.Linear(4, 4) for _ in range(3)]

    def forward(self, x):
        out = self.fc(x)
        self.last = out.detach().clone()
        return self.last

class Head(nn.Module):
    def forward(self, x):
        return torch.relu(self.out(x)).squeeze(-1)

def distance(a, b):
    return ((a - b) ** 2).sum(1).sqrt()

def safe(a, b):
    return (((a - b) ** 2).sum(1) + 1e-12).sqrt()

def train(model, data):
    total = 0.0
    state = None
    model.fc = nn.Linear(4, 2)
    for x in data:
        out, state = model(x, state)
        loss = distance(out, x)
        loss.requires_grad_(True)
        loss.backward()
        total += loss
        shown = loss.item()
    for p in model.parameters():
        p.requires_grad = False
"""
BACKWARD = CallSite(FILE, 33, "train", "loss.backward()", "loss")


def sources() -> Sources:
    return Sources(lambda path: SOURCE if path == FILE else None)


def ledger() -> Ledger:
    ledger = Ledger()
    ledger.apply(BackwardEnded(seq=1, ordinal=1, call=1, loss="loss", site=BACKWARD))
    return ledger


def lines(sites: list[CallSite]) -> list[int]:
    return [site.line for site in sites]


def test_a_cut_is_found_in_a_forward():
    assert lines(sources().cuts(ledger(), {"Linear"})) == [12]


def test_a_loss_that_is_made_to_require_a_gradient_is_found():
    site = sources().requires_grad_set(BACKWARD)
    assert site is not None
    assert site.line == 32


def test_a_running_sum_of_tensors_is_found_and_one_of_numbers_is_not():
    assert [(name, site.line) for name, site in sources().growing(BACKWARD)] == [("total", 34)]
    assert lines(sources().holders(ledger(), ["total"])) == [34]


def test_a_state_that_goes_round_is_found():
    names, site = sources().carried(BACKWARD)
    assert names == ("state",)
    assert site is not None
    assert site.line == 30


def test_a_swap_comes_after_the_birth():
    assert lines(sources().assigned(ledger(), "fc")) == [7, 28]


def test_a_plain_list_of_layers_is_found():
    assert lines(sources().assigned(ledger(), "blocks")) == [8]


def test_an_output_behind_a_relu_is_found():
    assert lines(sources().rectified_outputs(ledger())) == [17]


def test_a_root_without_a_guard_is_risky_and_one_with_a_guard_is_not():
    assert lines(sources().risky(ledger())) == [20]


def test_lines_that_freeze_are_found():
    assert lines(sources().freezes(ledger())) == [32, 37]


def test_modules_that_the_script_imports_are_read_too():
    texts = {FILE: "from models import Tower\nloss.backward()\n", "/proj/models.py": SOURCE}
    found = Sources(texts.get).cuts(ledger(), set())
    assert [(site.file, site.line) for site in found] == [("/proj/models.py", 12)]


def test_without_a_reader_or_with_broken_source_nothing_is_said():
    for read in (None, lambda path: "def broken(:", lambda path: None):
        found = Sources(read)
        assert found.cuts(ledger(), set()) == []
        assert found.carried(BACKWARD) == ((), None)
        assert found.growing(BACKWARD) == []
