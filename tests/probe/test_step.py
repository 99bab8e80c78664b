"""Every optimizer's step is seen: built in, the person's own, with a closure, inside a backward."""

from __future__ import annotations

import inspect
import traceback
from typing import Any

import pytest
import torch
from torch import nn

from gradtui.events import (
    BackwardEnded,
    CallRaised,
    GradsZeroed,
    OptimizerSeen,
    OptimizerStepped,
    OptimizerStepStarted,
)
from tests.probe.conftest import Probed, approx

BUILT_IN = [
    cls
    for cls in vars(torch.optim).values()
    if inspect.isclass(cls)
    and issubclass(cls, torch.optim.Optimizer)
    and cls not in (torch.optim.Optimizer, torch.optim.SparseAdam, torch.optim.LBFGS)
]


def trained(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()


@pytest.mark.parametrize("kind", BUILT_IN, ids=lambda kind: kind.__name__)
def test_steps_of_built_in_optimizers_are_seen(probed: Probed, kind: type[torch.optim.Optimizer]):
    """What was used, what moved, and the rate."""
    model = nn.Linear(2, 2, bias=False)  # two-dimensional: Muon takes nothing else
    optimizer = kind(model.parameters(), lr=0.5)  # type: ignore[call-arg]
    trained(model, optimizer)
    event = probed.one(OptimizerStepped)
    assert probed.names(event.used) == probed.names(event.moved) == ["model.weight"]
    assert (event.lr, event.unchanged, event.frozen, event.ordinal) == ((0.5,), False, (), 1)
    assert probed.optimizers()[event.optimizer].kind == kind.__name__
    assert event.site is not None
    assert event.site.source == "optimizer.step()"


def test_sparse_adam_is_seen_like_the_others(probed: Probed):
    """It takes sparse gradients and nothing else."""
    table = nn.Embedding(4, 2, sparse=True)
    optimizer = torch.optim.SparseAdam(table.parameters())
    table(torch.tensor([1])).sum().backward()
    optimizer.step()
    assert probed.names(probed.one(OptimizerStepped).used) == ["table.weight"]


def test_an_optimizer_is_described_by_the_persons_name(probed: Probed):
    """Name, kind, what it owns, rate of each group, numeric settings."""
    model = nn.Linear(2, 1)
    groups: list[dict[str, Any]] = [{"params": [model.weight], "lr": 0.5}, {"params": [model.bias]}]
    opt = torch.optim.SGD(groups, lr=0.1, momentum=0.9)
    model(torch.ones(1, 2)).sum().backward()
    opt.step()
    (info,) = probed.optimizers().values()
    assert (info.name, info.kind, probed.names(info.parameters)) == ("opt", "SGD", ["model.weight", "model.bias"])
    assert info.lr == (0.5, 0.1)
    assert dict(info.settings)["momentum"] == 0.9


class PlainDescent(torch.optim.Optimizer):
    """As people write their own."""

    def __init__(self, params, lr=0.1):
        super().__init__(params, {"lr": lr})
        self.cleared = 0

    @torch.no_grad()
    def step(self, closure=None):
        loss = closure() if closure else None
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p -= group["lr"] * p.grad
        return loss

    def zero_grad(self, set_to_none=True):
        self.cleared += 1
        super().zero_grad(set_to_none)


def test_an_optimizer_of_the_persons_own_is_seen(probed: Probed):
    """step and zero_grad overridden, the latter calling the original: one event each."""
    model = nn.Linear(2, 1)
    optimizer = PlainDescent(model.parameters())
    trained(model, optimizer)
    optimizer.zero_grad()
    assert probed.kinds() == ["BackwardEnded", "OptimizerStepped", "GradsZeroed"]
    assert probed.names(probed.one(GradsZeroed).parameters) == ["model.weight", "model.bias"]
    assert optimizer.cleared == 1


class CountingAdam(torch.optim.Adam):
    """Adds to a built-in optimizer's step."""

    taken = 0

    def step(self, closure=None):
        self.taken += 1
        return super().step(closure)


@pytest.mark.parametrize("adam_was_made_before", [False, True])
def test_a_step_that_calls_the_inherited_one_is_one_step(probed: Probed, adam_was_made_before: bool):
    """Whether or not torch has decorated the inherited one meanwhile."""
    model = nn.Linear(2, 1)
    if adam_was_made_before:
        torch.optim.Adam(model.parameters())
    optimizer = CountingAdam(model.parameters())
    trained(model, optimizer)
    assert probed.one(OptimizerStepped).ordinal == optimizer.taken == 1


class Lookahead:
    """Wraps an optimizer without being one, as SAM and Lookahead implementations do."""

    def __init__(self, inner: torch.optim.Optimizer) -> None:
        self.inner = inner

    def step(self) -> None:
        self.inner.step()

    def zero_grad(self) -> None:
        self.inner.zero_grad()


def test_a_wrapper_that_is_no_optimizer_is_seen_through_the_one_inside(probed: Probed):
    """The events are the inner optimizer's."""
    model = nn.Linear(2, 1)
    wrapper = Lookahead(torch.optim.SGD(model.parameters(), lr=0.1))
    trained(model, wrapper)  # type: ignore[arg-type]
    assert probed.optimizers()[probed.one(OptimizerStepped).optimizer].kind == "SGD"


def test_a_closure_nests_its_backwards_in_the_step(probed: Probed):
    """LBFGS: one step, announced first, with every evaluation's backward and zero_grad as children."""
    w = torch.tensor([3.0, -2.0], requires_grad=True)
    optimizer = torch.optim.LBFGS([w], max_iter=4)

    def closure():
        optimizer.zero_grad()
        loss = w.pow(2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    started, stepped = probed.one(OptimizerStepStarted), probed.one(OptimizerStepped)
    assert started.call == stepped.call
    assert (started.closure, stepped.closure, stepped.moved) == (True, True, stepped.used)
    assert len(probed.all(BackwardEnded)) > 1
    assert {event.parent for event in probed.all(BackwardEnded)} == {stepped.call}
    assert {event.parent for event in probed.all(GradsZeroed)} == {stepped.call}
    assert probed.optimizers()[stepped.optimizer].reads_closure


def test_a_closure_that_is_none_is_no_closure(probed: Probed):
    """step(None), as schedulers and trainers call it."""
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step(None)
    assert probed.one(OptimizerStepped).closure is False
    assert probed.all(OptimizerStepStarted) == []


def test_two_optimizers_may_share_parameters(probed: Probed):
    """Each step tells what its own optimizer used."""
    model = nn.Linear(2, 1)
    one = torch.optim.SGD(model.parameters(), lr=0.1)
    two = torch.optim.SGD([model.bias], lr=0.1)
    model(torch.ones(1, 2)).sum().backward()
    one.step()
    two.step()
    first, second = probed.all(OptimizerStepped)
    assert probed.names(first.used) == ["model.weight", "model.bias"]
    assert probed.names(second.used) == ["model.bias"]
    assert first.optimizer != second.optimizer


def test_an_optimizer_whose_groups_grow_is_described_again(probed: Probed):
    """add_param_group, as when a layer is unfrozen: the next step uses what was added."""
    base, head = nn.Linear(2, 2), nn.Linear(2, 1)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    head(base(torch.ones(1, 2))).sum().backward()
    optimizer.step()
    optimizer.add_param_group({"params": base.parameters()})
    optimizer.step()
    assert len(probed.all(OptimizerSeen)[-1].optimizer.parameters) == 4
    assert set(probed.names(probed.last(OptimizerStepped).used)) == {
        "head.weight",
        "head.bias",
        "base.weight",
        "base.bias",
    }


def test_a_step_at_rate_zero_leaves_values_unchanged(probed: Probed):
    """Storage is written, bits are the same; beside a step that does move them."""
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    trained(model, optimizer)
    optimizer.param_groups[0]["lr"] = 0.1
    optimizer.step()
    still, moving = probed.all(OptimizerStepped)
    assert (still.unchanged, still.ratios) == (True, (0.0, 0.0))
    assert moving.unchanged is False
    assert all(ratio > 0 for ratio in moving.ratios)


def test_a_step_without_any_gradient_uses_and_moves_nothing(probed: Probed):
    """zero_grad between backward and step."""
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.zero_grad()
    optimizer.step()
    event = probed.one(OptimizerStepped)
    assert (event.used, event.moved) == ((), ())


def test_frozen_parameters_are_named_by_the_step(probed: Probed):
    """requires_grad=False inside an optimizer's groups."""
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.bias.requires_grad_(False)
    trained(model, optimizer)
    event = probed.one(OptimizerStepped)
    assert (probed.names(event.frozen), probed.names(event.used)) == (["model.bias"], ["model.weight"])


def test_values_that_come_out_broken_are_named(probed: Probed):
    """An infinite rate breaks the weights it touches."""
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=float("inf"))
    trained(model, optimizer)
    event = probed.one(OptimizerStepped)
    assert probed.names(event.nonfinite) == ["model.weight", "model.bias"]


def test_ratios_are_update_over_size(probed: Probed):
    """As computed by hand."""
    w = torch.tensor([3.0, 4.0], requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)
    w.sum().backward()
    before = w.detach().clone()
    optimizer.step()
    expected = float((w.detach() - before).norm() / w.detach().norm())
    assert probed.one(OptimizerStepped).ratios == (approx(expected),)


def _step_that_fails() -> str:
    w = torch.ones(1, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)
    w.sum().backward()

    def closure():
        raise KeyError("no batch")

    try:
        optimizer.step(closure)
    except KeyError:
        return traceback.format_exc()
    return ""


BARE = _step_that_fails()


def test_a_step_that_raises_shows_the_very_same_traceback(probed: Probed):
    """And the host hears of it; the next step is at top level again."""
    assert _step_that_fails() == BARE != ""
    raised = probed.one(CallRaised)
    assert (raised.kind, raised.error, raised.message) == ("step", "KeyError", "'no batch'")
    assert probed.probe.session.local.stack == []


def test_hooks_of_the_persons_on_an_optimizer_still_run(probed: Probed):
    """Pre and post hooks of one optimizer, with their arguments."""
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    order: list[str] = []
    optimizer.register_step_pre_hook(lambda *_: order.append("before"))
    optimizer.register_step_post_hook(lambda *_: order.append("after"))
    trained(model, optimizer)
    assert order == ["before", "after"]
    assert len(probed.all(OptimizerStepped)) == 1


def test_an_optimizer_can_be_pickled_and_copied_as_ever(probed: Probed):
    """Nothing of ours is on the instance, and a copy's step is seen."""
    import copy
    import pickle

    model = nn.Linear(2, 1)
    optimizer = torch.optim.Adam(model.parameters())
    trained(model, optimizer)
    assert not [name for name in vars(optimizer) if "gradtui" in name]
    copied = copy.deepcopy(optimizer)
    restored = pickle.loads(pickle.dumps(optimizer))
    for one in (copied, restored):
        for p in one.param_groups[0]["params"]:
            p.grad = torch.ones_like(p)
        one.step()
    assert len(probed.all(OptimizerStepped)) == 3
