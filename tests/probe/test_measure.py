"""Norms that can be trusted at the edges of floating point."""

from __future__ import annotations

from math import inf, isinf, isnan, nan, sqrt

import pytest
import torch

from gradtui.probe import measure
from tests.probe.conftest import approx


def norm(*values: float, dtype: torch.dtype = torch.float32) -> float:
    return measure.norms([torch.tensor(values, dtype=dtype)])[0]


def test_norms_of_many_tensors_are_torchs():
    """Any shapes, in one call, in order."""
    tensors = [torch.randn(3, 4), torch.randn(()), torch.randn(1000), torch.zeros(2), torch.empty(0)]
    assert measure.norms(tensors) == [approx(float(t.norm())) for t in tensors]


def test_nothing_measured_is_nothing():
    """An empty list."""
    assert measure.norms([]) == []


@pytest.mark.parametrize(
    ("dtype", "big"), [(torch.float32, 1e30), (torch.float16, 6e4), (torch.bfloat16, 1e30), (torch.float64, 1e200)]
)
def test_squares_that_overflow_leave_a_finite_norm(dtype, big):
    """The tensor is finite, so its norm is."""
    exact = float(torch.tensor(big, dtype=dtype).double()) * sqrt(2)
    assert norm(big, big, dtype=dtype) == approx(exact, rel=1e-3)


@pytest.mark.parametrize(
    ("dtype", "tiny"), [(torch.float32, 1e-45), (torch.float16, 6e-8), (torch.bfloat16, 1e-38), (torch.float64, 5e-324)]
)
def test_the_smallest_value_is_not_zero(dtype, tiny):
    """A gradient that has any non-zero element never has norm zero."""
    assert norm(0.0, tiny, dtype=dtype) > 0.0


def test_zero_is_zero():
    """Of either sign."""
    assert norm(0.0, -0.0) == 0.0


def test_broken_values_show_in_the_norm():
    """NaN wins over Inf."""
    assert isinf(norm(inf, 1.0))
    assert isinf(norm(-inf, 1.0))
    assert isnan(norm(nan, 1.0))
    assert isnan(norm(nan, inf))


def test_complex_gradients_are_measured_by_magnitude():
    """|3 + 4i| = 5"""
    assert measure.norms([torch.tensor([3 + 4j])]) == [approx(5.0)]


def test_sparse_gradients_are_measured_by_their_sum():
    """Two entries of one index add up before they are squared."""
    sparse = torch.sparse_coo_tensor(torch.tensor([[1, 1]]), torch.tensor([3.0, 4.0]), (4,), check_invariants=True)
    assert measure.norms([sparse]) == [approx(7.0)]


def test_a_tensor_without_numbers_has_no_norm():
    """On the meta device."""
    assert isnan(measure.norms([torch.ones(3, device="meta")])[0])


def test_a_tensor_in_any_layout_is_measured():
    """Transposed, strided, expanded."""
    base = torch.randn(4, 6)
    views = [base.T, base[::2, ::3], base[0].expand(5, 6)]
    assert measure.norms(views) == [approx(float(view.norm())) for view in views]


def test_measuring_leaves_the_random_state_and_the_modes_alone():
    """Same random numbers after it, same grad mode."""
    before = torch.get_rng_state()
    measure.norms([torch.full((3,), 1e30), torch.zeros(3)])
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.is_grad_enabled()


def test_pending_norms_are_the_same_numbers():
    """The way taken for accelerators, on the CPU."""
    tensors = [torch.randn(3), torch.randn(5).half(), torch.randn(2, 2).double()]
    pending = measure.Pending(tensors)
    assert pending.ready()
    assert pending.values() == [approx(value, rel=1e-3) for value in measure.norms(tensors)]
