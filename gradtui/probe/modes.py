"""Whether the modules behind a backward are in train or eval mode, looked up through the modules that hold its parameters."""

from __future__ import annotations

import weakref
from collections.abc import Iterable

from torch.nn import Module
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from gradtui.probe.registry import Tracked

_SHOWN = 20


class Modes:
    """Keeps weak references to holders, and to the dropout and batch-norm modules of the roots they were found under."""

    def __init__(self) -> None:
        self._sensitive: weakref.WeakKeyDictionary[Module, str] = weakref.WeakKeyDictionary()
        self._roots: set[str] = set()

    def learn(self, name: str, root: Module) -> None:
        """Remember the modules of a root whose behaviour depends on the mode."""
        for path, module in root.named_modules():
            if isinstance(module, (_BatchNorm, _DropoutNd)) and module not in self._sensitive:
                self._sensitive[module] = f"{name}.{path}" if name and path else name or path

    def of(self, entries: Iterable[Tracked]) -> tuple[str, list[str]]:
        """(`train`, `eval`, `mixed` or empty; names of sensitive modules in eval mode)."""
        modes = set()
        for entry in entries:
            holder = entry.holder
            module = holder() if holder is not None else None
            if module is not None:
                modes.add(module.training)
        evals = [name for module, name in list(self._sensitive.items()) if not module.training]
        if not modes:
            return "", evals[:_SHOWN]
        return ("mixed" if len(modes) == 2 else "train" if True in modes else "eval"), evals[:_SHOWN]
