"""Learning-rate schedulers: one event for each step the person makes."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import nn
from torch.optim import lr_scheduler

from gradtui.events import SchedulerStepped
from tests.probe.conftest import Probed, approx


def optimizer() -> torch.optim.Optimizer:
    return torch.optim.SGD(nn.Linear(2, 1).parameters(), lr=1.0)


MAKERS = {
    "StepLR": lambda opt: lr_scheduler.StepLR(opt, 1, gamma=0.5),
    "LambdaLR": lambda opt: lr_scheduler.LambdaLR(opt, lambda epoch: 0.5**epoch),
    "ExponentialLR": lambda opt: lr_scheduler.ExponentialLR(opt, 0.5),
    "SequentialLR": lambda opt: lr_scheduler.SequentialLR(
        opt, [lr_scheduler.ExponentialLR(opt, 0.5), lr_scheduler.ExponentialLR(opt, 0.5)], milestones=[9]
    ),
    "ChainedScheduler": lambda opt: lr_scheduler.ChainedScheduler([lr_scheduler.ExponentialLR(opt, 0.5)]),
}


@pytest.mark.parametrize("kind", list(MAKERS))
def test_a_scheduler_step_is_told_with_the_rates(probed: Probed, kind):
    """Once, though schedulers step in their constructors and step each other."""
    opt = optimizer()
    scheduler = MAKERS[kind](opt)
    opt.step()
    scheduler.step()
    event = probed.one(SchedulerStepped)
    assert (event.kind, event.before, event.after) == (kind, (1.0,), (approx(0.5),))
    assert event.optimizer in probed.optimizers()


def test_a_plateau_scheduler_takes_its_metric(probed: Probed):
    """ReduceLROnPlateau defines a step of its own."""
    scheduler = lr_scheduler.ReduceLROnPlateau(optimizer(), patience=0, factor=0.1)
    scheduler.step(1.0)
    scheduler.step(2.0)
    assert [event.after for event in probed.all(SchedulerStepped)] == [(1.0,), (approx(0.1),)]


def test_a_scheduler_of_the_persons_own_is_told_through_the_inherited_step(probed: Probed):
    """A subclass that only computes rates."""

    class Halving(lr_scheduler.LRScheduler):
        def get_lr(self):
            return [base * 0.5**self.last_epoch for base in self.base_lrs]

    opt = optimizer()
    scheduler = Halving(opt)
    opt.step()
    scheduler.step()
    assert probed.one(SchedulerStepped).kind == "Halving"


def _warned() -> list[tuple[str, str, int]]:
    opt = optimizer()
    scheduler = lr_scheduler.StepLR(opt, 1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scheduler.step()
        scheduler.step(3)
    return [(str(warning.message), warning.filename, warning.lineno) for warning in caught]


BARE = _warned()


def test_torchs_warnings_name_the_persons_line(probed: Probed):
    """`lr_scheduler.step()` before `optimizer.step()`: same text, same file, same line as without us."""
    assert [filename for _, filename, _ in BARE] == [__file__] * len(BARE) != []
    assert _warned() == BARE
