"""Descent written by hand: parameters that change without any optimizer."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from gradtui.events import BackwardEnded, ParametersEdited
from tests.probe.conftest import Probed


def loss_of(w: torch.Tensor) -> torch.Tensor:
    return (w - 3).pow(2).sum()


def in_place(w: torch.Tensor) -> None:
    with torch.no_grad():
        w -= 0.1 * w.grad  # type: ignore[operator]


def by_data(w: torch.Tensor) -> None:
    w.data -= 0.1 * w.grad  # type: ignore[operator]


def by_data_method(w: torch.Tensor) -> None:
    w.data.add_(w.grad, alpha=-0.1)  # type: ignore[arg-type]


def by_replacing_data(w: torch.Tensor) -> None:
    w.data = w.data - 0.1 * w.grad  # type: ignore[operator]


def by_copy(w: torch.Tensor) -> None:
    with torch.no_grad():
        w.copy_(w - 0.1 * w.grad)  # type: ignore[operator]


@pytest.mark.parametrize(
    "update", [in_place, by_data, by_data_method, by_replacing_data, by_copy], ids=lambda f: f.__name__
)
@pytest.mark.parametrize("cleared", ["kept", "none", "zeros"])
def test_an_update_by_hand_is_found(probed: Probed, update, cleared):
    """Whether or not it moves the version counter, and whatever becomes of the gradient after it."""
    w = torch.zeros(2, requires_grad=True)
    for _ in range(3):
        loss_of(w).backward()
        update(w)
        if cleared == "none":
            w.grad = None
        elif cleared == "zeros":
            w.grad.zero_()  # type: ignore[union-attr]
    assert len(probed.all(ParametersEdited)) == 2
    assert probed.names(probed.last(ParametersEdited).parameters) == ["w"]


def test_an_update_of_a_modules_parameters_is_found(probed: Probed):
    """for p in model.parameters(): p -= lr * p.grad"""
    model = nn.Linear(2, 1)
    for _ in range(2):
        model.zero_grad()
        model(torch.ones(1, 2)).sum().backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.1 * p.grad  # type: ignore[operator, misc]
    model.zero_grad()
    assert probed.names(probed.last(ParametersEdited).parameters) == ["model.weight", "model.bias"]


def test_no_update_is_told_where_there_is_none(probed: Probed):
    """Two backwards in a row leave the values alone."""
    w = torch.zeros(2, requires_grad=True)
    for _ in range(3):
        loss_of(w).backward()
    assert probed.all(ParametersEdited) == []


def test_an_optimizers_step_is_no_update_by_hand(probed: Probed):
    """Neither for parameters that it owns nor for those that it does not."""
    w, other = torch.zeros(2, requires_grad=True), torch.zeros(2, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)
    for _ in range(3):
        (loss_of(w) + loss_of(other)).backward()
        optimizer.step()
        optimizer.zero_grad()
    assert probed.all(ParametersEdited) == []


def test_a_rebound_variable_is_named(probed: Probed):
    """w = w - lr * w.grad: the name now holds a tensor computed from the leaf, which never gets a gradient again."""
    w = torch.zeros(2, requires_grad=True)
    leaf = w
    loss_of(w).backward()
    w = w - 0.1 * w.grad  # type: ignore[operator]
    loss_of(w).backward()
    event = probed.last(ParametersEdited)
    assert event.rebound == ("w",)
    assert probed.last(BackwardEnded).contributions.parameters == event.parameters
    assert leaf.grad is not None


def test_a_new_leaf_of_the_same_name_is_not_a_rebound_one(probed: Probed):
    """w = (w - lr * w.grad).detach().requires_grad_(): a fresh leaf, trained as before."""
    w = torch.zeros(2, requires_grad=True)
    for _ in range(2):
        loss_of(w).backward()
        w = (w - 0.1 * w.grad).detach().requires_grad_()  # type: ignore[operator]
    assert [event.rebound for event in probed.all(ParametersEdited)] == []
    assert probed.names() == ["w", "w"]


def test_sees_an_update_too_small_to_move_the_norm(probed: Probed) -> None:
    """A late step by hand changes a few last bits of a large tensor; its norm in float32 stays the same."""
    w = torch.full((1000, 100), 0.5, requires_grad=True)
    for _ in range(3):  # an update is found at the next call
        (w * torch.eye(1000, 100)).sum().backward()
        w.data[0, 0] += 1e-7
        w.grad = None
    assert len(probed.all(ParametersEdited)) == 2
