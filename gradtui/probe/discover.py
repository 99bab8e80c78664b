"""Finds out what exists: leaves, their names, optimizers and what they own. Costs are kept to a share of the run's own time."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from math import isfinite
from time import perf_counter
from types import FrameType
from typing import Any

import torch

from gradtui.probe.modes import Modes
from gradtui.probe.names import Found, Namespace, resolve, shape_of
from gradtui.probe.registry import Registry, Tracked, describe
from gradtui.probe.session import Session
from gradtui.probe.sites import chain_of

_CREDIT = 0.5
"""Seconds that may be spent before the share counts."""
_SHARE = 0.02
_ANNOUNCED_SETTINGS = (
    "momentum",
    "weight_decay",
    "dampening",
    "eps",
    "nesterov",
    "maximize",
    "max_iter",
    "foreach",
    "fused",
    "capturable",
)


class Governor:
    """Allows optional work as long as it stays under a share of the time that passes; so many seconds of it may be saved up."""

    def __init__(self, share: float, credit: float) -> None:
        self.share = share
        self.credit = credit
        self._left = credit
        self._looked = perf_counter()

    def allows(self, cost: float) -> bool:
        """There is time for work that costs so many seconds; for work that costs more than can be saved, when all is saved."""
        now = perf_counter()
        self._left = left = min(self.credit, self._left + self.share * (now - self._looked))
        self._looked = now
        return cost <= left or left >= self.credit > 0.0

    def spend(self, seconds: float) -> None:
        """That much has been done."""
        self._left -= seconds


class OptimizerRecord:
    """One optimizer of the person's."""

    __slots__ = ("count", "count_steps", "entries", "id", "ids", "made", "name", "ref", "signature")

    def __init__(self, number: int, optimizer: Any) -> None:
        self.id = number
        self.ref = weakref.ref(optimizer)
        self.name = ""
        self.entries: list[Tracked] = []
        self.count_steps = 0
        self.signature: tuple[int, ...] = ()
        self.count = 0
        self.made = 0
        """Number of the call site that built it."""
        self.ids: tuple[int, ...] = ()
        """Of its entries."""

    def ids_of(self, some: list[Tracked]) -> tuple[int, ...]:
        """Ids of some of its entries, in their order."""
        return self.ids if len(some) == len(self.entries) else tuple([entry.id for entry in some])


class Discovery:
    """Keeps registry and optimizers up to date and tells the host what is new."""

    def __init__(self, session: Session, registry: Registry, made_at: Callable[[torch.Tensor], int]) -> None:
        self.session = session
        self.made_at = made_at
        self.registry = registry
        self.optimizers: dict[int, OptimizerRecord] = {}
        self.modes = Modes()
        self.governor = Governor(_SHARE, _CREDIT)
        self._fresh: list[Any] = []
        self._count = 0
        self._cost = 0.002
        self._reuse: dict[tuple[int, tuple[int, ...], bool], str] = {}

    # -- optimizers -----------------------------------------------------------------------------------------------

    def note_optimizer(self, optimizer: Any, frame: FrameType | None) -> None:
        """An optimizer was made: learn what it owns under the names its parameters have now."""
        self.record_of(optimizer, frame, self.session.sites.number(*chain_of(frame)))

    def record_of(self, optimizer: Any, frame: FrameType | None, made: int = 0) -> OptimizerRecord:
        """Its record, brought up to date when its groups have changed."""
        record = self.optimizers.get(id(optimizer))
        if record is None or record.ref() is not optimizer:
            self._count += 1
            record = self.optimizers[id(optimizer)] = OptimizerRecord(self._count, optimizer)
            record.made = made
        signature = tuple([len(group["params"]) for group in optimizer.param_groups])
        first = optimizer.param_groups[0]["params"][0] if signature and signature[0] else None
        if signature != record.signature or (
            record.entries and first is not None and record.entries[0].ref() is not first
        ):
            self._learn(record, optimizer, signature, frame)
        return record

    def _learn(
        self, record: OptimizerRecord, optimizer: Any, signature: tuple[int, ...], frame: FrameType | None
    ) -> None:
        for entry in record.entries:
            entry.owners -= 1
        members = [p for group in optimizer.param_groups for p in group["params"]]
        self.meet(members, frame, 0)
        record.signature = signature
        record.entries = [known for p in members if (known := self.registry.get(p)) is not None]
        record.ids = tuple([entry.id for entry in record.entries])
        for entry in record.entries:
            entry.owners += 1
        space = Namespace(frame)
        record.name = space.optimizers.get(id(optimizer)) or record.name or ""
        self.tell_optimizer(record, optimizer)

    def rename(self, frame: FrameType | None) -> None:
        """Look for the variables of optimizers that had none when they were made."""
        nameless = [record for record in self.optimizers.values() if not record.name and record.count < 3]
        if not nameless:
            return
        space = Namespace(frame)
        for record in nameless:
            record.count += 1
            optimizer = record.ref()
            name = space.optimizers.get(id(optimizer))
            if optimizer is not None and name:
                record.name = name
                self.tell_optimizer(record, optimizer)

    def tell_optimizer(self, record: OptimizerRecord, optimizer: Any) -> None:
        """Send OptimizerSeen."""
        defaults = getattr(optimizer, "defaults", None) or {}
        settings = [
            (key, float(value))
            for key in _ANNOUNCED_SETTINGS
            if isinstance(value := defaults.get(key), (int, float)) and not isinstance(value, torch.Tensor)
        ]
        if not self.session.join():
            return
        self.session.emit(
            "OptimizerSeen",
            None,
            {
                "optimizer": {
                    "id": record.id,
                    "name": record.name or type(optimizer).__name__,
                    "kind": type(optimizer).__name__,
                    "parameters": [entry.id for entry in record.entries],
                    "lr": rates_of(optimizer),
                    "settings": settings,
                    "made": record.made or None,
                    "reads_closure": isinstance(optimizer, torch.optim.LBFGS),
                }
            },
        )

    # -- leaves ---------------------------------------------------------------------------------------------------

    def meet(self, leaves: list[torch.Tensor], frame: FrameType | None, site: int) -> None:
        """Start watching those leaves that are new, under their names."""
        get = self.registry.get
        new = [leaf for leaf in leaves if get(leaf) is None]
        if not new or not self.session.join():
            return
        new = list({id(leaf): leaf for leaf in new}.values())
        self.registry.prune()
        began = perf_counter()
        if self.governor.allows(self._cost):
            space = Namespace(frame)
            found = resolve(new, space, deep=self.governor.allows(10 * self._cost))
            for name, root in space.roots():
                self.modes.learn(name, root)
            self._cost = perf_counter() - began
            self.governor.spend(self._cost)
            entries = [self.registry.add(leaf, found[id(leaf)]) for leaf in new]
            for entry, leaf in zip(entries, new, strict=True):
                if entry.found.name[0] != "<":
                    self._reuse[(site, shape_of(leaf), type(leaf) is torch.Tensor)] = entry.found.name
        else:
            entries = []
            for leaf in new:
                known = self._reuse.get((site, shape_of(leaf), type(leaf) is torch.Tensor))
                entries.append(self.registry.add(leaf, Found(known or f"<leaf {shape_of(leaf)}>")))
        self.tell(entries)

    def recheck(self, entries: list[Tracked], frame: FrameType | None) -> None:
        """See whether leaves that receive nothing are still in a module, and tell it when that changed."""
        alive = [(entry, leaf) for entry in entries if (leaf := entry.ref()) is not None]
        if not alive or not self.governor.allows(self._cost):
            return
        began = perf_counter()
        found = resolve([leaf for _, leaf in alive], Namespace(frame), deep=True)
        self.governor.spend(perf_counter() - began)
        changed = []
        for entry, leaf in alive:
            now = found[id(leaf)]
            if now.registered != entry.found.registered:
                old = entry.found
                entry.found = Found(old.name, old.module, old.root, now.registered, old.shared)
                changed.append(entry)
        self.tell(changed)

    def tell(self, entries: list[Tracked]) -> None:
        """Send ParametersSeen."""
        for entry in entries:
            leaf = entry.ref()
            if not entry.made and leaf is not None:
                entry.made = self.made_at(leaf)
        described = [describe(entry, leaf) for entry in entries if (leaf := entry.ref()) is not None]
        if described:
            self.session.emit("ParametersSeen", None, {"parameters": described})


def rates_of(optimizer: Any) -> list[float]:
    """Learning rate of each group; on accelerators' tensor rates NaN, since reading them would wait."""
    rates = [group.get("lr") for group in optimizer.param_groups]
    if {*map(type, rates)} == {float} and isfinite(sum(rates)):
        return rates
    rates = []
    for group in optimizer.param_groups:
        rate = group.get("lr", float("nan"))
        if isinstance(rate, torch.Tensor):
            rate = float(rate) if rate.device.type == "cpu" else float("nan")
        rates.append(float(rate) if isinstance(rate, (int, float)) else float("nan"))
    return [rate if rate - rate == 0 else 0.0 for rate in rates]
