"""Call sites: the person's line, and what the call was made on, as written."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import nn

from gradtui.events import BackwardEnded, CallSite, GradsClipped, GradsZeroed, OptimizerStepped, Origin
from tests.probe.conftest import Probed


def loss_of(*shape: int) -> torch.Tensor:
    return torch.ones(*shape, requires_grad=True).sum()


def line_of(text: str) -> int:
    """The one line of this file that ends in a comment of this text."""
    lines = open(__file__).read().splitlines()  # noqa: SIM115
    (found,) = [number for number, line in enumerate(lines, 1) if line.endswith(f"# {text}")]
    return found


def site_of(probed: Probed, kind: type[Origin] = BackwardEnded) -> CallSite:
    site = probed.last(kind).site
    assert site is not None
    return site


def test_a_site_is_file_line_function_and_source(probed: Probed):
    """As a traceback would name it."""
    loss = loss_of(2)
    loss.backward()  # here
    site = site_of(probed)
    assert (site.file, site.line) == (__file__, line_of("here"))
    assert site.function == "test_a_site_is_file_line_function_and_source"
    assert (site.source, site.expression, site.framework) == ("loss.backward() # here", "loss", "")


def test_the_loss_expression_is_told_as_written(probed: Probed):
    """Parentheses, attributes, subscripts, the function form, and under a scaler."""
    loss = loss_of(2)
    out: dict[str, Any] = {"loss": loss, "others": [loss, loss]}
    scaler = torch.amp.GradScaler("cpu")
    (loss / 4).backward(retain_graph=True)
    out["loss"].backward(retain_graph=True)
    (out["others"][0] + 0.1 * out["others"][1]).backward(retain_graph=True)
    torch.autograd.backward(loss, retain_graph=True)
    scaler.scale(loss).backward(retain_graph=True)
    scaler.scale(loss / 2).backward(retain_graph=True)
    loss.mean().backward()
    assert [event.loss for event in probed.all(BackwardEnded)] == [
        "loss / 4",
        "out['loss']",
        "out['others'][0] + 0.1 * out['others'][1]",
        "loss",
        "loss",
        "loss / 2",
        "loss.mean()",
    ]


def test_two_calls_on_a_line_are_two_sites_with_their_own_expressions(probed: Probed):
    """loss_a.backward(); loss_b.backward()"""
    loss_a, loss_b = loss_of(1), loss_of(1)
    # fmt: off
    loss_a.backward(); loss_b.backward()  # noqa: E702
    # fmt: on
    assert [event.loss for event in probed.all(BackwardEnded)] == ["loss_a", "loss_b"]


def test_a_call_over_several_lines_is_at_its_line(probed: Probed):
    """The expression is put on one line."""
    first, second = loss_of(1), loss_of(1)
    # fmt: off
    (
        first
        + 0.5
        * second
    ).backward()  # several
    # fmt: on
    assert site_of(probed).expression == "first + 0.5 * second"
    assert site_of(probed).line <= line_of("several")


def test_step_and_zero_grad_are_told_with_their_optimizer(probed: Probed):
    """Also inside a call that itself is an expression."""
    model = nn.Linear(1, 1)
    optimizers = {"main": torch.optim.SGD(model.parameters(), lr=0.1)}
    optimizers["main"].zero_grad()
    model(torch.ones(1, 1)).sum().backward()
    optimizers["main"].step()
    assert site_of(probed, OptimizerStepped).expression == "optimizers['main']"
    assert site_of(probed, GradsZeroed).expression == "optimizers['main']"


def test_a_clip_is_told_with_what_it_clips(probed: Probed):
    """The first argument."""
    model = nn.Linear(1, 1)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    assert site_of(probed, GradsClipped).expression == "model.parameters()"


@pytest.fixture
def framework(tmp_path, monkeypatch) -> Iterator[ModuleType]:
    """A package in a site-packages folder that trains for the person."""
    folder = tmp_path / "site-packages" / "lightly"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(
        "def fit(loss):\n    _backward(loss)\n\n\ndef _backward(total):\n    total.backward()\n"
    )
    monkeypatch.syspath_prepend(folder.parent)
    import lightly  # type: ignore[import-not-found]

    yield lightly
    del sys.modules["lightly"]


def test_a_frameworks_call_is_at_the_persons_line(probed: Probed, framework):
    """With the framework's frame beside it, and the expression that the framework wrote."""
    framework.fit(loss_of(1))  # fit
    site = site_of(probed)
    assert (site.file, site.line) == (__file__, line_of("fit"))
    assert site.source == "framework.fit(loss_of(1)) # fit"
    assert site.framework == "lightly/__init__.py:6 _backward"
    assert site.expression == "total"


def test_code_without_a_file_has_a_site_too(probed: Probed):
    """python -c, exec, a notebook's cell."""
    code = compile("def train(loss):\n    loss.backward()\n", "<stdin>", "exec")
    space: dict = {}
    exec(code, space)
    space["train"](loss_of(1))
    site = site_of(probed)
    assert (site.file, site.line, site.function, site.source) == ("<stdin>", 2, "train", "")


def test_one_place_is_one_site_however_often_it_runs(probed: Probed):
    """A loop's line is described once."""
    for _ in range(5):
        loss_of(1).backward()
    probed.events()
    assert len([fields for fields in probed.collector.packets if fields["t"] == "site"]) == 1
