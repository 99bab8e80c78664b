"""The leaves the probe watches and what their gradients looked like at the last event; finds what nobody announced.

Holds weak references only: a gradient is remembered by identity, version and norm, never kept alive.
"""

from __future__ import annotations

import weakref
from dataclasses import replace
from typing import Any

import torch

from gradtui.probe.names import Found, shape_of


class Tracked:
    """One leaf tensor."""

    __slots__ = (
        "fingerprint",
        "found",
        "grad",
        "holder",
        "id",
        "landed",
        "made",
        "norm",
        "owners",
        "ref",
        "scale",
        "spent",
        "trainable",
        "unseen",
        "value_version",
        "version",
    )

    def __init__(self, number: int, tensor: torch.Tensor, found: Found) -> None:
        self.id = number
        self.ref = weakref.ref(tensor)
        self.found = found
        self.grad = 0
        """id() of `.grad` at the last event; 0 for None."""
        self.version = 0
        self.norm = 0.0
        self.value_version = tensor._version
        self.fingerprint: int | None = None
        """Checksum of the values at the last event, where they are compared."""
        self.owners = 0
        """How many optimizers own it."""
        self.trainable = tensor.requires_grad
        self.unseen = 0
        """Backwards in a row that left an owned parameter without a contribution."""
        self.landed = 0
        """Call id of the backward whose contribution has been told already (optimizer-in-backward)."""
        self.spent = False
        """A step has used the gradient it holds."""
        self.scale = 1.0
        self.made = 0
        """Number of the call site that gave it to its module; 0 when not seen."""
        self.holder: weakref.ref[torch.nn.Module] | None = None
        """The module that holds it."""
        if found.holder is not None:
            self.holder = weakref.ref(found.holder)
            self.found = replace(found, holder=None)


class Registry:
    """Every leaf that may hold a gradient, by number and by identity."""

    def __init__(self) -> None:
        self.tracked: list[Tracked] = []
        self._by_identity: dict[int, Tracked] = {}
        self._count = 0

    def get(self, tensor: torch.Tensor) -> Tracked | None:
        """Its record, if it is watched."""
        known = self._by_identity.get(id(tensor))
        return known if known is not None and known.ref() is tensor else None

    def add(self, tensor: torch.Tensor, found: Found) -> Tracked:
        """Watch a leaf from now on."""
        self._count += 1
        entry = Tracked(self._count, tensor, found)
        grad = tensor.grad if tensor.is_leaf else None
        if grad is not None:
            entry.grad, entry.version, entry.norm = id(grad), grad._version, float("nan")
        self.tracked.append(entry)
        self._by_identity[id(tensor)] = entry
        return entry

    def get_by_id(self, number: int) -> Tracked | None:
        """The record with that number."""
        for entry in self.tracked:
            if entry.id == number:
                return entry
        return None

    def prune(self) -> None:
        """Forget leaves that no longer exist."""
        alive = [entry for entry in self.tracked if entry.ref() is not None]
        if len(alive) < len(self.tracked):
            self.tracked = alive
            self._by_identity = {id(entry.ref()): entry for entry in alive}


def describe(entry: Tracked, tensor: torch.Tensor) -> dict[str, Any]:
    """A ParameterInfo as the wire carries it."""
    found = entry.found
    return {
        "id": entry.id,
        "name": found.name,
        "shape": list(shape_of(tensor)),
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "device": str(tensor.device),
        "requires_grad": bool(tensor.requires_grad),
        "is_parameter": isinstance(tensor, torch.nn.Parameter),
        "registered": found.registered,
        "module": found.module,
        "root": found.root,
        "shared": list(found.shared),
        "made": entry.made or None,
    }
