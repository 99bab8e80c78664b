"""What is read from the person's source: expressions as written, and the likely line of an edit nobody announced."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from gradtui.events import CallSite
from gradtui.host.sources import Sources


def sources(tmp_path: Path, text: str) -> tuple[Sources, str]:
    path = tmp_path / "train.py"
    path.write_text(dedent(text))
    return Sources(), str(path)


def call_on(tmp_path: Path, line: str, name: str = "backward") -> str:
    """The expression told for the call of that name in a one-line file, at the columns Python would give."""
    found, file = sources(tmp_path, line)
    end = line.index(")", line.index(f"{name}(")) + 1
    site = found.site({"file": file, "line": 1, "span": [1, 1, 0, len(line[:end].encode())], "function": "<module>"})
    return site.expression


@pytest.mark.parametrize(
    ("line", "expression"),
    [
        ("loss.backward()", "loss"),
        ("losses['cls'].backward()", "losses['cls']"),
        ("(a + 0.5 * b).backward()", "a + 0.5 * b"),
        ("self.compute(batch).backward()", "self.compute(batch)"),
        ("scaler.scale(loss).backward()", "loss"),
        ("self.scaler.scale(loss / 4).backward()", "loss / 4"),
        ("torch.autograd.backward(loss)", "loss"),
        ("accelerator.backward(loss)", "loss"),
        ("fabric.backward(loss / n)", "loss / n"),
        ("verlust_größe.backward()", "verlust_größe"),
        ("x = 'ü'; loss.backward()", "loss"),
    ],
)
def test_the_loss_is_told_as_written(tmp_path: Path, line: str, expression: str):
    """Receiver or argument, whichever is the loss; columns count UTF-8 bytes."""
    assert call_on(tmp_path, line) == expression


def test_a_file_that_cannot_be_read_gives_a_site_without_text(tmp_path: Path):
    """Gone, or never there."""
    site = Sources().site({"file": "<string>", "line": 3, "span": [3, 3, 0, 5], "function": "f"})
    assert site == CallSite("<string>", 3, "f", "", "", "")


def test_a_file_that_does_not_parse_is_no_fault(tmp_path: Path):
    """Edited while the program ran."""
    found, file = sources(tmp_path, "def broken(:\n    loss.backward()\n")
    site = found.site({"file": file, "line": 2, "span": [2, 2, 4, 19], "function": "broken"})
    assert (site.source, site.expression) == ("loss.backward()", "loss")


BY_HAND = """
    def train():
        for x, y in data:
            loss = (x @ W + b - y).pow(2).mean()
            loss.backward()
            W.data -= lr * W.grad
            with torch.no_grad():
                b -= lr * b.grad
            W.grad = None
            b.grad.zero_()
            W.grad /= 2

    def other():
        model.weight.grad = None
"""


@pytest.mark.parametrize(
    ("kind", "names", "line"),
    [
        ("zeroed", ("W",), "W.grad = None"),
        ("zeroed", ("b",), "b.grad.zero_()"),
        ("updated", ("W",), "W.data -= lr * W.grad"),
        ("updated", ("b",), "b -= lr * b.grad"),
        ("edited", ("W",), "W.grad /= 2"),
    ],
)
def test_the_line_of_an_edit_is_the_one_that_mentions_the_tensor(tmp_path: Path, kind, names, line):
    """Near the call before it, in the same function."""
    found, file = sources(tmp_path, BY_HAND)
    near = CallSite(file, 5, "train")
    site = found.edit_line(kind, near, names)
    assert site is not None
    assert (site.source, site.function) == (line, "train")


def test_without_a_candidate_there_is_no_line(tmp_path: Path):
    """Nothing in the file is written like such an edit."""
    found, file = sources(tmp_path, "loss.backward()\n")
    assert found.edit_line("zeroed", CallSite(file, 1, "<module>"), ("w",)) is None
    assert found.edit_line("zeroed", None) is None


def test_a_rebinding_is_found_by_the_name_it_rebinds(tmp_path: Path):
    """w = w - lr * w.grad"""
    found, file = sources(tmp_path, "loss.backward()\nw = w - lr * w.grad\nv = 2 * w\n")
    site = found.edit_line("rebound", CallSite(file, 1, "<module>"), ("w",))
    assert site is not None
    assert site.line == 2
