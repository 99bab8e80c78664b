"""torch.amp.GradScaler on the CPU: scale, unscale_, step, update."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from gradtui.events import (
    BackwardEnded,
    GradsEdited,
    GradsUnscaled,
    OptimizerStepped,
    ScalerStepped,
    ScalerUpdated,
)
from tests.probe.conftest import Probed, approx


def one_step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    factor: float = 1.0,
    unscale: bool = False,
) -> None:
    loss = model(torch.ones(1, 2)).sum() * factor
    scaler.scale(loss).backward()
    if unscale:
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()


def build(scale: float = 1024.0) -> tuple[nn.Linear, torch.optim.Optimizer, torch.amp.GradScaler]:
    model = nn.Linear(2, 1)
    return model, torch.optim.SGD(model.parameters(), lr=0.1), torch.amp.GradScaler("cpu", init_scale=scale)


def test_a_scaled_backward_tells_its_scale_and_the_unscaled_loss(probed: Probed):
    """The scale is no divisor; gradients are told as they are: scaled. The expression is the loss, as written."""
    model, optimizer, scaler = build()
    one_step(model, optimizer, scaler)
    event = probed.one(BackwardEnded)
    assert (event.scale, event.divisor, event.loss) == (1024.0, 1.0, "loss")
    assert event.contributions.after == (approx(1024 * 2**0.5), 1024.0)


def test_the_divisor_is_told_beside_the_scale(probed: Probed):
    """scaler.scale(loss / 4)."""
    model, optimizer, scaler = build()
    one_step(model, optimizer, scaler, factor=0.25)
    assert (probed.one(BackwardEnded).scale, probed.one(BackwardEnded).divisor) == (1024.0, 4.0)


@pytest.mark.parametrize("unscale", [False, True])
def test_a_step_through_a_scaler_unscales_once_and_nests(probed: Probed, unscale):
    """unscale_ is told, whether the person calls it or the scaler does; the optimizer's step is the scaler step's child."""
    model, optimizer, scaler = build()
    one_step(model, optimizer, scaler, unscale=unscale)
    unscaled, stepped, scaler_step = probed.one(GradsUnscaled), probed.one(OptimizerStepped), probed.one(ScalerStepped)
    assert (unscaled.scale, unscaled.found_inf) == (1024.0, False)
    assert unscaled.after == (approx(2**0.5), 1.0)
    assert (unscaled.parent, unscaled.ordinal) == ((0, 1) if unscale else (scaler_step.call, 0))
    assert (stepped.parent, stepped.by_scaler) == (scaler_step.call, True)
    assert scaler_step.ran
    assert probed.all(GradsEdited) == []


def test_a_skipped_step_is_told_as_skipped(probed: Probed):
    """Infinite gradients: no optimizer step, and the scale goes down."""
    model, optimizer, scaler = build()
    one_step(model, optimizer, scaler, factor=float("inf"))
    assert probed.all(OptimizerStepped) == []
    assert probed.one(GradsUnscaled).found_inf
    assert not probed.one(ScalerStepped).ran
    assert (probed.one(ScalerUpdated).before, probed.one(ScalerUpdated).after) == (1024.0, 512.0)


def test_the_scale_is_followed_over_many_steps(probed: Probed):
    """Also where the graph is not walked any more."""
    model, optimizer, scaler = build()
    probed.probe.hooks[0]._walks.credit = -1.0
    for factor in (1.0, float("inf"), 1.0, 1.0, float("inf"), 1.0):
        optimizer.zero_grad()
        one_step(model, optimizer, scaler, factor)
    assert [event.scale for event in probed.all(BackwardEnded)] == [1024.0, 1024.0, 512.0, 512.0, 512.0, 256.0]


def test_a_scaler_that_is_not_enabled_is_not_there(probed: Probed):
    """enabled=False: an ordinary backward and an ordinary step."""
    model, optimizer, _ = build()
    one_step(model, optimizer, torch.amp.GradScaler("cpu", enabled=False))
    assert probed.kinds() == ["BackwardEnded", "OptimizerStepped"]
    assert (probed.one(BackwardEnded).scale, probed.one(OptimizerStepped).by_scaler) == (1.0, False)
