"""Graphs that outlive their backward."""

from __future__ import annotations

import torch

from gradtui.events import GraphKept
from tests.probe.conftest import Probed


def train(w: torch.Tensor, keep: bool, steps: int) -> None:
    total: torch.Tensor | float = 0.0
    for _ in range(steps):
        loss = (w * 2).sum()
        loss.backward()
        total = total + loss if keep else total + loss.item()


def test_a_running_sum_with_history_is_told_with_its_name_and_growth(probed: Probed) -> None:
    """Each backward finds one graph more alive than the one before, held by `total`; told from the third on."""
    train(torch.ones(3, requires_grad=True), keep=True, steps=5)
    kept = probed.all(GraphKept)
    assert [(event.backwards, event.oldest) for event in kept] == [(3, 1), (4, 1)]
    assert "total" in kept[0].names


def test_is_silent_when_a_number_is_kept_instead(probed: Probed) -> None:
    """`loss.item()` holds no graph."""
    train(torch.ones(3, requires_grad=True), keep=False, steps=5)
    assert probed.all(GraphKept) == []


def test_no_mark_of_ours_keeps_a_graph_alive(probed: Probed) -> None:
    """The root's node goes when the person lets the loss go."""
    w = torch.ones(3, requires_grad=True)
    loss = (w * 2).sum()
    mark: dict[str, object] = loss.grad_fn.metadata  # type: ignore[union-attr, assignment]
    loss.backward()
    assert set(mark) <= {"gradtui"}
