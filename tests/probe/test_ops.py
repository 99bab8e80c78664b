"""The first operation whose numbers are not finite, at `--watch ops`."""

from __future__ import annotations

import pytest
import torch

from gradtui.events import NonfiniteOrigin
from tests.probe.conftest import Probed


@pytest.fixture
def watching_ops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set before the probe is made: the level is known from the start."""
    monkeypatch.setenv("GRADTUI_WATCH", "ops")
    return


def test_names_the_square_root_at_zero_and_its_line(watching_ops: None, probed: Probed) -> None:
    """The loss is finite; the slope of the root is not."""
    w = torch.zeros(2, requires_grad=True)
    distance = w.pow(2).sqrt()
    distance.sum().backward()
    origin = probed.one(NonfiniteOrigin)
    assert origin.op == "SqrtBackward0"
    assert origin.forward is not None
    assert origin.forward.source == "distance = w.pow(2).sqrt()"
    assert "root at 0" in origin.cause


def test_names_the_forward_pass_when_it_was_bad_already(watching_ops: None, probed: Probed) -> None:
    """0/0 in the forward pass comes before anything that backward does."""
    w = torch.zeros(2, requires_grad=True)
    ratio = w / torch.zeros(2)
    ratio.sum().backward()
    origin = probed.one(NonfiniteOrigin)
    assert (origin.op, origin.when) == ("div", "forward")
    assert origin.forward is not None
    assert origin.forward.source == "ratio = w / torch.zeros(2)"


def test_is_silent_while_every_number_is_finite(watching_ops: None, probed: Probed) -> None:
    """Also where squares overflow in a sum that only we take."""
    w = torch.full((3,), 1e30, requires_grad=True)
    (w * 2).sum().backward()
    assert probed.all(NonfiniteOrigin) == []


def test_ordinary_watching_looks_at_no_operation(probed: Probed) -> None:
    """The level costs only while it is on."""
    w = torch.zeros(2, requires_grad=True)
    w.pow(2).sqrt().sum().backward()
    assert probed.all(NonfiniteOrigin) == []
