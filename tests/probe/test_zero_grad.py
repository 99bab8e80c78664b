"""Clearing gradients in all its forms, and edits of them that nobody announced."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from gradtui.events import BackwardEnded, GradsEdited, GradsZeroed
from tests.probe.conftest import Probed, approx


def with_gradient() -> nn.Linear:
    model = nn.Linear(2, 1)
    model(torch.ones(1, 2)).sum().backward()
    return model


def backward(model: nn.Module) -> None:
    model(torch.ones(1, 2)).sum().backward()


def test_an_optimizer_clears_to_none(probed: Probed):
    """By whom, how, which gradients, of how many."""
    model = with_gradient()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.zero_grad()
    event = probed.one(GradsZeroed)
    assert (event.by, event.owner, event.how, event.covers) == ("optimizer", "optimizer", "none", 2)
    assert probed.names(event.parameters) == ["model.weight", "model.bias"]
    assert event.optimizer in probed.optimizers()


def test_an_optimizer_clears_to_zeros(probed: Probed):
    """set_to_none=False leaves tensors of zeros."""
    model = with_gradient()
    torch.optim.SGD(model.parameters(), lr=0.1).zero_grad(set_to_none=False)
    event = probed.one(GradsZeroed)
    assert (event.how, probed.names(event.parameters)) == ("zeros", ["model.weight", "model.bias"])
    backward(model)
    assert probed.last(BackwardEnded).contributions.before == (0.0, 0.0)


def test_a_module_clears_what_it_holds(probed: Probed):
    """model.zero_grad(), under the module's name."""
    model = with_gradient()
    model.zero_grad()
    event = probed.one(GradsZeroed)
    assert (event.by, event.owner, event.how, event.optimizer) == ("module", "model", "none", 0)
    assert probed.names(event.parameters) == ["model.weight", "model.bias"]


def test_clearing_nothing_is_told_as_nothing(probed: Probed):
    """The zero_grad before the first backward."""
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.zero_grad()
    event = probed.one(GradsZeroed)
    assert (event.how, event.parameters, event.covers) == ("nothing", (), 2)


def test_an_optimizer_clears_only_what_it_owns(probed: Probed):
    """Two models: the other's gradients stay and are not told as cleared."""
    model, other = with_gradient(), with_gradient()
    torch.optim.SGD(model.parameters(), lr=0.1).zero_grad()
    assert len(probed.one(GradsZeroed).parameters) == 2
    assert other.weight.grad is not None


def by_assigning_none(model: nn.Linear) -> None:
    for p in model.parameters():
        p.grad = None


def by_zeroing(model: nn.Linear) -> None:
    for p in model.parameters():
        p.grad.zero_()  # type: ignore[union-attr]


def by_zeroing_data(model: nn.Linear) -> None:
    for p in model.parameters():
        p.grad.data.zero_()  # type: ignore[union-attr]


def by_zeroing_detached(model: nn.Linear) -> None:
    for p in model.parameters():
        p.grad.detach_().fill_(0)  # type: ignore[union-attr]


def by_replacing_with_zeros(model: nn.Linear) -> None:
    for p in model.parameters():
        p.grad = torch.zeros_like(p)


@pytest.mark.parametrize(
    ("clear", "how"),
    [
        (by_assigning_none, "none"),
        (by_zeroing, "zeros"),
        (by_zeroing_data, "zeros"),
        (by_zeroing_detached, "zeros"),
        (by_replacing_with_zeros, "zeros"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_clear_by_hand_is_found(probed: Probed, clear, how):
    """Though nothing announces it, the next backward is preceded by the clear."""
    model = with_gradient()
    clear(model)
    backward(model)
    event = probed.one(GradsZeroed)
    assert (event.by, event.how, probed.names(event.parameters)) == ("hand", how, ["model.weight", "model.bias"])
    assert probed.kinds() == ["BackwardEnded", "GradsZeroed", "BackwardEnded"]
    assert probed.all(GradsEdited) == []


def test_a_clear_by_hand_is_found_by_a_step_too(probed: Probed):
    """backward, `p.grad = None`, step: the clear comes first."""
    model = with_gradient()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    by_assigning_none(model)
    optimizer.step()
    assert probed.kinds() == ["BackwardEnded", "GradsZeroed", "OptimizerStepped"]


def by_dividing(model: nn.Linear) -> None:
    for p in model.parameters():
        p.grad /= 4  # type: ignore[operator, assignment]


def by_a_scaled_copy(model: nn.Linear) -> None:
    for p in model.parameters():
        p.grad = p.grad / 4  # type: ignore[operator, assignment]


def by_scaling_data(model: nn.Linear) -> None:
    for p in model.parameters():
        p.grad.data.mul_(0.25)  # type: ignore[union-attr]


@pytest.mark.parametrize("scale", [by_dividing, by_a_scaled_copy, by_scaling_data], ids=lambda f: f.__name__)
def test_a_scaling_by_hand_is_told_with_its_factor(probed: Probed, scale):
    """In place, by a copy, and past the version counter."""
    model = with_gradient()
    scale(model)
    backward(model)
    event = probed.one(GradsEdited)
    assert (event.how, event.factor) == ("scaled", approx(0.25))
    assert probed.names(event.parameters) == ["model.weight", "model.bias"]
    assert event.after == approx([value / 4 for value in event.before])


def test_two_edits_between_events_are_seen_as_one(probed: Probed):
    """Averaged, then copied again: the second copy may get the first gradient's place in memory, and is found all the same."""
    model = with_gradient()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    by_a_scaled_copy(model)
    by_a_scaled_copy(model)
    optimizer.step()
    assert probed.one(GradsEdited).factor == approx(1 / 16)


def test_noise_added_by_hand_is_a_change(probed: Probed):
    """No one factor explains it."""
    model = with_gradient()
    with torch.no_grad():
        model.weight.grad.add_(torch.tensor([[5.0, 1.0]]))  # type: ignore[union-attr]
        model.bias.grad.add_(1.0)  # type: ignore[union-attr]
    backward(model)
    assert probed.one(GradsEdited).how == "changed"


def test_a_replaced_gradient_is_told_as_replaced(probed: Probed):
    """Another tensor, other norms."""
    model = with_gradient()
    model.weight.grad = torch.tensor([[5.0, 1.0]])
    model.bias.grad = torch.tensor([0.5])
    backward(model)
    event = probed.one(GradsEdited)
    assert (event.how, event.after) == ("replaced", (approx(26**0.5), approx(0.5)))


def test_a_gradient_made_by_hand_is_told_as_new(probed: Probed):
    """p.grad = torch.autograd.grad(...): there was none before."""
    model = with_gradient()
    torch.optim.SGD(model.parameters(), lr=0.1).zero_grad()
    model.weight.grad, model.bias.grad = torch.autograd.grad(model(torch.ones(1, 2)).sum(), [model.weight, model.bias])
    backward(model)
    event = probed.one(GradsEdited)
    assert (event.how, event.before) == ("replaced", (-1.0, -1.0))


def test_nothing_is_told_when_nothing_was_edited(probed: Probed):
    """Reading gradients, logging their norms, stepping: no edit."""
    model = with_gradient()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(3):
        [float(p.grad.norm()) for p in model.parameters()]  # type: ignore[union-attr]
        optimizer.step()
        optimizer.zero_grad()
        backward(model)
    assert probed.all(GradsEdited) == []
    assert {event.by for event in probed.all(GradsZeroed)} == {"optimizer"}


def test_a_subclass_that_clears_in_its_own_way_is_one_clear(probed: Probed):
    """A module that overrides zero_grad without calling the original."""

    class Mine(nn.Linear):
        def zero_grad(self, set_to_none=True):
            for p in self.parameters():
                p.grad = None

    model = Mine(2, 1)
    backward(model)
    model.zero_grad()
    backward(model)
    event = probed.one(GradsZeroed)
    assert (event.by, probed.names(event.parameters)) == ("hand", ["model.weight", "model.bias"])
