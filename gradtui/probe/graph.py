"""Reads the autograd graph behind a loss: which leaves it reaches, and how the loss was scaled at its root. Never changes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

_LIMIT = 200_000
_REDUCTIONS = {0: "none", 1: "mean", 2: "sum"}
_PASS = {
    "AddBackward0",
    "SubBackward0",
    "ToCopyBackward0",
    "ViewBackward0",
    "SqueezeBackward0",
    "ReshapeAliasBackward0",
    "NegBackward0",
}


def leaves_of(roots: list[torch.Tensor]) -> tuple[list[torch.Tensor], int]:
    """(leaves that a backward from these roots writes to, nodes visited). About half a microsecond a node."""
    found: dict[int, torch.Tensor] = {}
    seen: set[Any] = set()
    stack: list[Any] = []
    for root in roots:
        node = root.grad_fn
        if node is not None:
            stack.append(node)
        elif root.requires_grad:
            found[id(root)] = root
    push, pop = stack.append, stack.pop
    while stack:
        node = pop()
        if node in seen:
            continue
        seen.add(node)
        following = node.next_functions
        if not following:
            variable = getattr(node, "variable", None)
            if variable is not None:
                found[id(variable)] = variable
            continue
        for child, _ in following:
            if child is not None and child not in seen:
                push(child)
        if len(seen) > _LIMIT:
            break
    return list(found.values()), len(seen)


@dataclass(frozen=True, slots=True)
class Root:
    """How a loss came about, as far as the last few nodes of its graph tell."""

    node: str = ""
    divisor: float = 1.0
    reduction: str = ""
    scale: float = 1.0


def root_of(root: torch.Tensor, scales: dict[int, float]) -> Root:
    """Follow constants multiplied or divided onto the loss down to the operation that reduced it.

    `scales` maps sequence numbers of nodes made by GradScaler.scale to the scale: those count as scale, not as divisor.
    """
    node = root.grad_fn
    if node is None:
        return Root()
    first = type(node).__name__
    divisor, scale, reduction = 1.0, 1.0, ""
    for _ in range(12):
        name = type(node).__name__
        number = node._sequence_nr() if scales else 0
        if name == "DivBackward0" or name == "MulBackward0":
            constant = constant_of(node)
            if constant is None:
                break
            if number in scales:
                scale *= scales[number]
            elif name == "DivBackward0":
                divisor *= constant
            elif constant:
                divisor /= constant
        elif name == "MeanBackward0" or name == "MeanBackward1":
            reduction = "mean"
            break
        elif name == "SumBackward0" or name == "SumBackward1":
            reduction = "sum"
            break
        elif hasattr(node, "_saved_reduction"):
            reduction = _REDUCTIONS.get(int(node._saved_reduction), "")
            break
        elif name not in _PASS:
            break
        following = [child for child, _ in node.next_functions if child is not None]
        if not following:
            break
        node = following[0]
    return Root(first, abs(divisor), reduction, scale)


def only_factor(node: Any) -> float | None:
    """The constant of a root whose operand is no such product or quotient itself; None for any other root."""
    if type(node).__name__ not in ("DivBackward0", "MulBackward0"):
        return None
    following = [child for child, _ in node.next_functions if child is not None]
    if not following or type(following[0]).__name__ in ("DivBackward0", "MulBackward0", *_PASS):
        return None
    return constant_of(node)


def constant_of(node: Any) -> float | None:
    """The number a loss was multiplied by or divided by; None when both factors have a history."""
    inputs = node.next_functions
    if len(inputs) != 2 or (inputs[0][0] is not None) == (inputs[1][0] is not None):
        return None
    if type(node).__name__ == "DivBackward0" and inputs[0][0] is None:
        return None
    name = "_saved_other" if inputs[1][0] is None else "_saved_self"
    try:
        saved = getattr(node, name)
    except (AttributeError, RuntimeError):
        return None
    if isinstance(saved, torch.Tensor):
        if saved.numel() != 1 or saved.device.type != "cpu":
            return None
        return float(saved)
    return float(saved) if isinstance(saved, (int, float)) else None
