"""Our own work is out of sight: of tensor subclasses, of `torch.compile`, and where tensors hold no numbers at all."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import nn

from gradtui.events import BackwardEnded, OptimizerStepped, ProbeFailed
from tests.probe.conftest import Probed


class Counted(torch.Tensor):
    """Counts what is done to it."""

    calls = 0

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        Counted.calls += 1
        return super().__torch_function__(function, types, args, kwargs or {})


def train_counted() -> int:
    Counted.calls = 0
    weight = nn.Parameter(torch.ones(3).as_subclass(Counted))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        (weight * 2).sum().backward()
        (weight * 3).sum().backward()
        optimizer.step()
    return Counted.calls


def test_a_tensor_subclass_meets_no_operation_of_ours(probed: Probed):
    """Its `__torch_function__` is called as often as without us."""
    watched = train_counted()
    assert len(probed.all(OptimizerStepped)) == 3
    probed.probe.remove()
    assert watched == train_counted()


def test_gradients_without_numbers_are_not_broken_ones(probed: Probed):
    """The meta device: shapes only."""
    model = nn.Linear(3, 1, device="meta")
    model(torch.ones(2, 3, device="meta")).sum().backward()
    model(torch.ones(2, 3, device="meta")).sum().backward()
    for event in probed.all(BackwardEnded):
        assert all(event.contributions.finite)


def test_parameters_that_have_no_shape_yet_are_met(probed: Probed):
    """A lazy module whose optimizer is made before its first forward."""
    model = nn.Sequential(nn.LazyLinear(2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    assert not probed.all(ProbeFailed)
    assert len(probed.all(OptimizerStepped)) == 1


def test_a_compiled_training_step_does_not_compile_us(probed: Probed):
    """torch.compile around backward and step breaks its graph there, and goes on with the functions it meets."""
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> None:
        optimizer.zero_grad()
        model(torch.ones(1, 3)).sum().backward()
        optimizer.step()

    seen: list[str] = []

    def backend(graph: Any, inputs: Any) -> Any:
        seen.extend(node.stack_trace or "" for node in graph.graph.nodes)
        return graph.forward

    torch.compile(step, backend=backend)()
    torch._dynamo.reset()
    assert seen
    assert not [trace for trace in seen if "gradtui/probe" in trace]
    assert len(probed.all(OptimizerStepped)) == 1
