"""Whether the modules behind a backward are in train or eval mode, looked up through the modules that hold its parameters."""

from __future__ import annotations

import weakref

from torch.nn import Module
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from gradtui.probe.registry import Tracked

_SHOWN = 20


class Modes:
    """Keeps weak references to holders, and to the dropout and batch-norm modules of the roots they were found under."""

    def __init__(self) -> None:
        self._sensitive: dict[int, tuple[weakref.ref[Module], str]] = {}
        self._holders: dict[int, tuple[int, list[weakref.ref[Module]]]] = {}

    def learn(self, name: str, root: Module) -> None:
        """Remember the modules of a root whose behaviour depends on the mode."""
        for path, module in root.named_modules():
            if isinstance(module, (_BatchNorm, _DropoutNd)) and not self._knows(module):
                self._sensitive[id(module)] = weakref.ref(module), f"{name}.{path}" if name and path else name or path

    def _knows(self, module: Module) -> bool:
        known = self._sensitive.get(id(module))
        return known is not None and known[0]() is module

    def of(self, site: int, entries: list[Tracked]) -> tuple[str, tuple[str, ...]]:
        """(`train`, `eval`, `mixed` or empty; names of sensitive modules in eval mode), for a backward from that call site."""
        modes = {module.training for ref in self._holders_of(site, entries) if (module := ref()) is not None}
        evals: tuple[str, ...] = ()
        if self._sensitive:
            evals = tuple(
                [name for ref, name in self._sensitive.values() if (m := ref()) is not None and not m.training][:_SHOWN]
            )
        if not modes:
            return "", evals
        return "mixed" if len(modes) == 2 else "train" if True in modes else "eval", evals

    def _holders_of(self, site: int, entries: list[Tracked]) -> list[weakref.ref[Module]]:
        """The modules that hold these leaves, each once; remembered while a site reaches as many."""
        known = self._holders.get(site)
        if known is not None and known[0] == len(entries):
            return known[1]
        unique = {holder: holder for entry in entries if (holder := entry.holder) is not None}
        holders = list(unique)
        self._holders[site] = (len(entries), holders)
        return holders
