"""Where parameters and optimizers come from."""

from __future__ import annotations

import torch
from torch import nn

from gradtui.events import OptimizerSeen, ParametersSeen
from tests.probe.conftest import Probed


def test_a_parameter_knows_the_line_that_made_its_layer(probed: Probed) -> None:
    """Not a line of torch's own: the person's `nn.Linear(…)`."""
    model = nn.Sequential(nn.Linear(2, 2))
    model(torch.ones(1, 2)).sum().backward()
    (seen,) = probed.all(ParametersSeen)
    assert {info.made.source for info in seen.parameters if info.made} == {"model = nn.Sequential(nn.Linear(2, 2))"}


def test_a_plain_leaf_has_no_such_line(probed: Probed) -> None:
    """No module was given it."""
    w = torch.ones(2, requires_grad=True)
    w.sum().backward()
    (seen,) = probed.all(ParametersSeen)
    assert [info.made for info in seen.parameters] == [None]


def test_an_optimizer_knows_the_line_that_built_it(probed: Probed) -> None:
    """So that a rule can name it when the model is changed afterwards."""
    optimizer = torch.optim.SGD([torch.ones(2, requires_grad=True)], lr=0.1)
    optimizer.zero_grad()
    made = probed.all(OptimizerSeen)[-1].optimizer.made
    assert made is not None
    assert made.source.startswith("optimizer = torch.optim.SGD(")
