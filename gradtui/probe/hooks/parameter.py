"""Sees where a module is given a parameter: the person's line that made a layer, or put a new tensor in an old one's place."""

from __future__ import annotations

import weakref
from types import FrameType
from typing import Any

import torch
from torch.nn import Module

from gradtui.probe.patch import Patches, around
from gradtui.probe.session import Session
from gradtui.probe.sites import chain_of


class ParameterHook:
    """Wraps Module.register_parameter, through which every nn.Parameter of a module goes once."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._patches = Patches()
        self._made: dict[int, tuple[weakref.ref[torch.Tensor], int]] = {}

    def install(self) -> None:
        original = Module.__dict__["register_parameter"]
        wrapper = around(self.session, "parameter", original, self._before, self._after, self._raised)
        self._patches.put(Module, "register_parameter", wrapper)

    def remove(self) -> None:
        self._patches.remove()

    def site_of(self, tensor: torch.Tensor) -> int:
        """Number of the call site that registered it; 0 when that was not seen."""
        known = self._made.get(id(tensor))
        return known[1] if known is not None and known[0]() is tensor else 0

    def _before(self, frame: FrameType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        parameter = args[2] if len(args) > 2 else kwargs.get("param")
        if isinstance(parameter, torch.Tensor):
            key = id(parameter)
            forget = self._made.pop
            self._made[key] = (
                weakref.ref(parameter, lambda _: forget(key, None)),
                self.session.sites.number(*chain_of(frame)),
            )

    def _after(self, token: Any, result: Any) -> None:
        """Nothing to tell: a parameter is told when it is met."""

    def _raised(self, token: Any, error: BaseException) -> None:
        """Nothing to tell."""
