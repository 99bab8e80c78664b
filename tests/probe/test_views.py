"""Bounded looks at tensors: every number against torch."""

from __future__ import annotations

from math import inf, isnan, nan
from typing import Any

import pytest
import torch
from torch import nn

from gradtui.probe.names import Found
from gradtui.probe.registry import Registry
from gradtui.probe.views import Views
from gradtui.wire.decode import unpack
from gradtui.wire.encode import PacketReader
from gradtui.wire.messages import TensorView, view_of
from tests.probe.conftest import approx


def look(grad: torch.Tensor | None, **request: Any) -> TensorView:
    """A view of a leaf's gradient, as the client gets it."""
    leaf = torch.zeros(0) if grad is None else torch.zeros_like(grad)
    leaf.requires_grad_()
    leaf.grad = grad
    return look_at(leaf, **request)


def look_at(leaf: torch.Tensor, scale: float = 1.0, **request: Any) -> TensorView:
    registry = Registry()
    entry = registry.add(leaf, Found("w"))
    entry.scale = scale
    views = Views(registry, None)  # type: ignore[arg-type]
    answered = views.answer({"do": "view_tensor", "id": 1, "parameter": entry.id, "rows": 16, "columns": 32, **request})
    assert answered is not None
    ((header, payload),) = PacketReader().feed(answered)
    fields = unpack(header, payload)
    assert "error" not in fields, fields
    assert len(answered) < 400_000
    return view_of(fields["result"])


def test_statistics_are_torchs():
    """Norm, mean, deviation, extremes and where they are, zeros, count."""
    grad = torch.randn(7, 11, generator=torch.Generator().manual_seed(3))
    grad[0, 0] = 0.0
    view = look(grad)
    assert view.norm == approx(float(grad.norm()))
    assert (view.mean, view.std) == (approx(float(grad.mean()), abs=1e-6), approx(float(grad.std(correction=0))))
    assert (view.minimum, view.maximum) == (float(grad.min()), float(grad.max()))
    assert grad[view.minimum_at] == grad.min()
    assert grad[view.maximum_at] == grad.max()
    assert (view.zeros, view.nans, view.infs, view.count) == (1, 0, 0, 77)
    assert (view.shape, view.dtype, view.device) == ((7, 11), "float32", "cpu")


def test_a_small_matrix_is_shown_element_by_element():
    """One cell an element."""
    grad = torch.arange(6.0).reshape(2, 3)
    view = look(grad)
    assert view.grid == ((0.0, 1.0, 2.0), (3.0, 4.0, 5.0))
    assert (view.pooled, view.plane) == ((1, 1), (2, 3))


def test_a_large_matrix_is_pooled_to_its_largest_magnitudes():
    """Sign kept; no cell is lost at the edges."""
    grad = torch.zeros(100, 70)
    grad[99, 69], grad[0, 0], grad[50, 3] = -5.0, 2.0, 3.0
    view = look(grad, rows=10, columns=10)
    assert view.pooled == (10, 7)
    assert (len(view.grid), len(view.grid[0])) == (10, 10)
    assert (view.grid[0][0], view.grid[5][0], view.grid[9][9]) == (2.0, 3.0, -5.0)


def test_pooling_by_mean_counts_only_what_is_there():
    """A cell at the edge is the mean of its own elements."""
    grad = torch.ones(5, 5)
    view = look(grad, rows=2, columns=2, pool="mean")
    assert view.grid == ((1.0, 1.0), (1.0, 1.0))


def test_broken_values_stay_visible_in_a_pooled_grid():
    """One NaN and one Inf among many."""
    grad = torch.zeros(64, 64)
    grad[0, 0], grad[63, 63], grad[0, 63] = nan, -inf, inf
    view = look(grad, rows=4, columns=4)
    assert isnan(view.grid[0][0])
    assert (view.grid[3][3], view.grid[0][3]) == (-inf, inf)
    assert (view.nans, view.infs) == (1, 2)
    assert (view.minimum, view.maximum, view.mean) == (0.0, 0.0, 0.0)
    assert sum(view.histogram) == 64 * 64 - 3


def test_a_tensor_of_nothing_but_nan_has_no_extremes():
    """And does not fail."""
    view = look(torch.full((3, 3), nan))
    assert (view.nans, view.count, view.histogram) == (9, 9, ())
    assert isnan(view.norm)


def test_the_histogram_is_symmetric_and_complete():
    """Every finite value is counted once; zero is in the middle."""
    grad = torch.tensor([-2.0, -1.0, 0.0, 0.5, 2.0])
    view = look(grad, bins=5)
    assert (view.histogram, len(view.edges)) == ((1, 1, 1, 1, 1), 6)
    assert (view.edges[0], view.edges[-1]) == (-2.0, 2.0)


def test_values_can_be_read_as_a_block():
    """Rows and columns from a corner; never past the end."""
    grad = torch.arange(20.0).reshape(4, 5)
    view = look(grad, values=(2, 2), values_at=(1, 3))
    assert (view.values, view.values_at) == (((8.0, 9.0), (13.0, 14.0)), (1, 3))
    assert look(grad, values=(9, 9), values_at=(3, 4)).values == ((19.0,),)
    assert look(grad, values=(9, 9), values_at=(99, 99)).values == ((19.0,),)


def test_leading_dimensions_are_indexed():
    """A convolution's kernel (out, in, h, w) at [2, 1]; out of range is the last."""
    grad = torch.arange(3 * 2 * 3 * 3.0).reshape(3, 2, 3, 3)
    view = look(grad, index=(2, 1))
    assert view.grid == tuple(tuple(row) for row in grad[2, 1].tolist())
    assert (view.index, view.plane) == ((2, 1), (3, 3))
    assert look(grad, index=(9, 9)).index == (2, 1)
    assert look(grad).index == (0, 0)


@pytest.mark.parametrize("shape", [(), (1,), (5,), (0,), (3, 0), (0, 4, 2), (1, 1, 1)])
def test_any_shape_can_be_looked_at(shape):
    """Scalars, vectors, empty tensors."""
    view = look(torch.ones(shape))
    assert (view.shape, view.missing) == (shape, "")
    assert sum(len(row) for row in view.grid) == torch.ones(shape).numel()


def test_a_vector_is_folded_into_rows():
    """One long row would be pooled away: it fills the picture."""
    view = look(torch.arange(64.0), rows=4, columns=16)
    assert sum(len(row) for row in view.grid) <= 64
    assert view.maximum == 63.0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.complex64])
def test_any_type_can_be_looked_at(dtype):
    """Complex ones by magnitude."""
    view = look(torch.full((2, 2), 3, dtype=dtype))
    assert view.grid == ((3.0, 3.0), (3.0, 3.0))
    assert view.norm == approx(6.0)


def test_a_sparse_gradient_is_shown_as_it_would_be_dense():
    """nn.Embedding(sparse=True)."""
    table = nn.Embedding(4, 2, sparse=True)
    table(torch.tensor([1, 1, 3])).sum().backward()
    view = look_at(table.weight)
    assert view.grid == ((0.0, 0.0), (2.0, 2.0), (0.0, 0.0), (1.0, 1.0))


def test_a_huge_tensor_makes_a_small_answer():
    """Four million elements: a bounded grid, a bounded block."""
    view = look(torch.ones(2000, 2000), rows=10_000, columns=10_000, values=(5000, 5000))
    assert len(view.grid) * len(view.grid[0]) <= 16_384
    assert len(view.values) * len(view.values[0]) <= 4_096


def test_numbers_can_be_shown_without_the_loss_scale():
    """unscaled: divided, and said so."""
    leaf = torch.ones(2, requires_grad=True)
    leaf.grad = torch.full((2,), 1024.0)
    assert look_at(leaf, 1024.0).scale == 1024.0
    unscaled = look_at(leaf, 1024.0, unscaled=True)
    assert (unscaled.scale, unscaled.maximum) == (1.0, 1.0)


def test_what_is_not_there_is_said():
    """No gradient; no such tensor any more."""
    assert look(None).missing == ".grad is None"
    registry = Registry()
    registry.add(torch.ones(1), Found("gone"))
    answered = Views(registry, None).answer({"do": "view_tensor", "id": 1, "parameter": 1})  # type: ignore[arg-type]
    assert b"no longer exists" in answered  # type: ignore[operator]


def test_a_bad_request_is_answered_with_an_error():
    """And does not raise."""
    registry = Registry()
    leaf = torch.ones(1, requires_grad=True)
    leaf.grad = torch.ones(1)
    registry.add(leaf, Found("w"))
    answered = Views(registry, None).answer({"do": "view_tensor", "id": 1, "parameter": 1, "rows": "many"})  # type: ignore[arg-type]
    assert b"ValueError" in answered  # type: ignore[operator]


def test_the_tensor_itself_can_be_looked_at():
    """what="value"."""
    leaf = torch.full((2, 2), 7.0, requires_grad=True)
    assert look_at(leaf, what="value").maximum == 7.0
