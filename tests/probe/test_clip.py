"""Clipping: what was handed in, what came of it, and that torch behaves as ever."""

from __future__ import annotations

import traceback
import warnings

import pytest
import torch
from torch import nn
from torch.nn.utils import clip_grad

from gradtui.events import CallRaised, GradsClipped, GradsEdited
from tests.probe.conftest import Probed, approx


def with_gradient() -> nn.Linear:
    model = nn.Linear(2, 1)
    (model(torch.ones(1, 2)).sum() * 100).backward()
    return model


@pytest.mark.parametrize("foreach", [None, True, False])
def test_clipping_by_norm_is_told(probed: Probed, foreach):
    """Norm before, limit, norms after."""
    model = with_gradient()
    total = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=foreach)
    event = probed.one(GradsClipped)
    assert (event.method, event.limit, event.given) == ("norm", 1.0, 2)
    assert event.norm == approx(float(total)) == approx(100 * 3**0.5)
    assert probed.names(event.parameters) == ["model.weight", "model.bias"]
    assert sum(value**2 for value in event.after) == approx(1.0, rel=1e-4)


def test_clipping_by_value_is_told(probed: Probed):
    """The other function."""
    model = with_gradient()
    torch.nn.utils.clip_grad_value_(model.parameters(), clip_value=0.5)
    event = probed.one(GradsClipped)
    assert (event.method, event.limit, event.given) == ("value", 0.5, 2)
    assert event.after == (approx(0.5 * 2**0.5), approx(0.5))


def test_a_clip_is_not_an_edit(probed: Probed):
    """The events after it find the gradients as the clip left them."""
    model = with_gradient()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    assert probed.all(GradsEdited) == []


def test_clipping_before_any_backward_touches_nothing(probed: Probed):
    """Parameters without gradients: handed in, none held one."""
    model = nn.Linear(2, 1)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    event = probed.one(GradsClipped)
    assert (event.given, event.parameters, event.norm) == (2, (), 0.0)


@pytest.mark.parametrize(
    "hand_in",
    [list, tuple, iter, lambda tensors: (t for t in tensors), lambda tensors: dict(enumerate(tensors)).values()],
)
def test_anything_iterable_may_be_handed_in(probed: Probed, hand_in):
    """A generator is read once, by torch as by us."""
    model = with_gradient()
    torch.nn.utils.clip_grad_norm_(hand_in(list(model.parameters())), 1.0)
    assert probed.one(GradsClipped).given == 2


def test_one_tensor_may_be_handed_in(probed: Probed):
    """Not in a list."""
    model = with_gradient()
    torch.nn.utils.clip_grad_norm_(model.weight, 1.0)
    assert probed.names(probed.one(GradsClipped).parameters) == ["model.weight"]


def _warned() -> list[tuple[str, int, str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.nn.utils.clip_grad_norm_((p for p in list[torch.Tensor]()), 1.0)
    return [(str(warning.message), warning.lineno, warning.filename) for warning in caught]


def _used_up() -> list[tuple[str, int, str]]:
    parameters = nn.Linear(2, 1).parameters()
    list(parameters)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
    return [(str(warning.message), warning.lineno, warning.filename) for warning in caught]


def _raised() -> str:
    w = torch.ones(1, requires_grad=True)
    w.grad = torch.tensor([float("nan")])
    try:
        torch.nn.utils.clip_grad_norm_([w], 1.0, error_if_nonfinite=True)
    except RuntimeError as error:
        return "".join(traceback.format_exception(error))
    return ""


BARE = {call: call() for call in (_warned, _used_up, _raised)}


@pytest.mark.parametrize("call", [_warned, _used_up], ids=lambda call: call.__name__)
def test_torchs_warning_about_an_empty_generator_names_the_persons_line(probed: Probed, call):
    """Same text, same file, same line as without us."""
    assert call() == BARE[call]
    assert probed.one(GradsClipped).given == 0


def test_a_clip_that_raises_raises_the_same(probed: Probed):
    """error_if_nonfinite."""
    assert _raised() == BARE[_raised] != ""
    assert probed.one(CallRaised).kind == "clip"


def test_a_generator_that_fails_fails_as_ever(probed: Probed):
    """Its error comes out of the call, once."""

    def parameters():
        yield nn.Linear(2, 1).weight
        raise KeyError("layer 2")

    with pytest.raises(KeyError, match="layer 2"):
        torch.nn.utils.clip_grad_norm_(parameters(), 1.0)
    assert probed.one(CallRaised).error == "KeyError"


def test_wrong_arguments_fail_as_ever(probed: Probed):
    """A missing limit is the person's mistake, told by Python."""
    with pytest.raises(TypeError, match="max_norm"):
        torch.nn.utils.clip_grad_norm_([])  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="not iterable"):
        torch.nn.utils.clip_grad_norm_(7, 1.0)  # type: ignore[arg-type]


def test_a_function_imported_by_name_is_told_as_well(probed: Probed):
    """`from torch.nn.utils.clip_grad import clip_grad_norm_`."""
    model = with_gradient()
    clip_grad.clip_grad_norm_(model.parameters(), 1.0)
    assert probed.one(GradsClipped).given == 2
