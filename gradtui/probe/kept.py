"""Notices graphs that stay alive after their backward: a mark in the root node's metadata lives exactly as long as the node."""

from __future__ import annotations

import weakref
from types import FrameType
from typing import Any

import torch

from gradtui.probe.sites import PERSON, owner_of, variables_of

_KEPT_MARKS = 4096
_WALKED = 2000
_TOLD_FROM = 3
_NAMED = 4
"""Growths of one site for which the holding variables are looked for."""


class _Mark:
    """Dies with its node."""

    __slots__ = ("__weakref__",)


class KeptGraphs:
    """Marks of earlier backwards, by call site."""

    def __init__(self) -> None:
        self._marks: dict[int, list[tuple[weakref.ref[_Mark], int, int]]] = {}
        self._told: dict[int, int] = {}

    def look(
        self, site: int, ordinal: int, root: torch.Tensor, frame: FrameType | None
    ) -> tuple[int, int, list[str]] | None:
        """Before a backward: (how many earlier graphs from this line are alive, the backward of the oldest, variables that hold
        them) when that has grown. One or two may wait for Python's collector of cycles: they are not told."""
        node = root.grad_fn
        marks = [mark for mark in self._marks.get(site, ()) if mark[0]() is not None]
        alive = len(marks)
        found: tuple[int, int, list[str]] | None = None
        if alive >= _TOLD_FROM and alive > self._told.get(site, 0) and (alive <= 4 or alive & (alive - 1) == 0):
            self._told[site] = alive
            names = _holders({number for _, number, _ in marks}, root, frame) if alive <= _NAMED else []
            found = alive, marks[0][2], names
        if node is not None and alive < _KEPT_MARKS:
            mark = _Mark()
            node.metadata["gradtui"] = mark  # type: ignore[index]
            marks.append((weakref.ref(mark), node._sequence_nr(), ordinal))
        self._marks[site] = marks
        return found


def _holders(numbers: set[int], loss: torch.Tensor, frame: FrameType | None) -> list[str]:
    names: list[str] = []
    while frame is not None and len(names) < 4:
        if owner_of(frame.f_code.co_filename) == PERSON:
            for name, value in variables_of(frame).items():
                if name not in names and any(
                    _reaches(tensor, numbers) for tensor in _tensors(value) if tensor is not loss
                ):
                    names.append(name)
        frame = frame.f_back
    return names


def _tensors(value: Any) -> list[torch.Tensor]:
    if type(value) is torch.Tensor:
        return [value]
    if type(value) in (list, tuple):
        return [item for item in value[-8:] if type(item) is torch.Tensor]
    return []


def _reaches(tensor: torch.Tensor, numbers: set[int]) -> bool:
    """One of the nodes is in the tensor's graph, as far as the first two thousand nodes tell."""
    node = tensor.grad_fn
    if node is None:
        return False
    seen: set[Any] = {node}
    stack = [node]
    while stack and len(seen) < _WALKED:
        node = stack.pop()
        if node._sequence_nr() in numbers:
            return True
        for child, _ in node.next_functions:
            if child is not None and child not in seen:
                seen.add(child)
                stack.append(child)
    return False
