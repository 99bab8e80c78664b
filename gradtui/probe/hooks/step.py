"""Sees every optimizer step, of built-in optimizers and of the person's own, through the decorator torch puts on `step` itself."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from types import FrameType
from typing import Any

import torch
from torch.optim import Optimizer

from gradtui.probe import measure
from gradtui.probe.discover import Discovery, OptimizerRecord, rates_of
from gradtui.probe.patch import Patches, around
from gradtui.probe.registry import Tracked
from gradtui.probe.session import Call, Session
from gradtui.probe.watch import Watcher
from gradtui.wire.encode import floats, ids

_COMPARED_STEPS = 3
"""Steps of an optimizer whose values are compared before and after; then at each power of two."""


class StepHook:
    """Wraps `Optimizer.profile_hook_step`, torch's own decorator: classes it has not decorated yet come through ours."""

    def __init__(
        self,
        session: Session,
        discovery: Discovery,
        watcher: Watcher,
        progress: Callable[[Call, list[Tracked]], None],
    ) -> None:
        self.session = session
        self.discovery = discovery
        self.watcher = watcher
        self.progress = progress
        self._patches = Patches()
        self._classes: list[tuple[type, Any, Any]] = []

    def install(self) -> None:
        decorate = Optimizer.profile_hook_step
        hook = self

        def profile_hook_step(func: Callable[..., Any]) -> Callable[..., Any]:
            return hook._wrap(decorate(func))

        self._patches.put(Optimizer, "profile_hook_step", staticmethod(profile_hook_step))
        original = Optimizer._patch_step_function

        def _patch_step_function(self: Any) -> None:
            original(self)
            hook._made(self)

        self._patches.put(Optimizer, "_patch_step_function", _patch_step_function)
        initialise = Optimizer.__init__
        self._patches.put(
            Optimizer,
            "__init__",
            around(self.session, "optimizer", initialise, self._before_init, self._after_init, _ignore),
        )
        for cls in _subclasses(Optimizer):
            step = cls.__dict__.get("step")
            if step is not None and getattr(
                step, "hooked", False
            ):  # torch has decorated it already: one was made before us
                cls.step = self._wrap(step)  # type: ignore[attr-defined]
                self._note(cls)

    def remove(self) -> None:
        self._patches.remove()
        for cls, ours, theirs in reversed(self._classes):
            if cls.__dict__.get("step") is ours:
                cls.step = theirs
        self._classes.clear()

    def _wrap(self, step: Callable[..., Any]) -> Callable[..., Any]:
        wrapped = around(self.session, "step", step, self._before, self._after, self._raised)
        wrapped._gradtui_original = step  # type: ignore[attr-defined]
        return wrapped

    def _made(self, optimizer: Any) -> None:
        for cls in type(optimizer).__mro__:
            self._note(cls)

    def _note(self, cls: type) -> None:
        ours = cls.__dict__.get("step")
        theirs = getattr(ours, "_gradtui_original", None)
        if theirs is not None and not any(known is ours for _, known, _ in self._classes):
            theirs.hooked = True  # as torch would have marked it
            self._classes.append((cls, ours, theirs))

    # -- an optimizer is made -------------------------------------------------------------------------------------

    def _before_init(self, frame: FrameType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return args[0], frame

    def _after_init(self, token: Any, result: Any) -> None:
        optimizer, frame = token
        if type(getattr(optimizer, "param_groups", None)) is list:
            self.discovery.note_optimizer(optimizer, frame)

    # -- a step ---------------------------------------------------------------------------------------------------

    def _before(self, frame: FrameType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
        session = self.session
        optimizer = args[0]
        within = session.local.stack
        if (within and self._within(optimizer)) or not (session.joined or session.join()):
            return None
        record = self.discovery.record_of(optimizer, frame)
        surrounding = session.inside("backward") if within else None
        if surrounding is not None:
            self.progress(surrounding, record.entries)
        else:
            self.watcher.look()
        call = session.begin("step", frame)
        if call.ordinal <= 4:
            self.discovery.rename(frame)
        data = call.data
        data["record"] = record
        data["closure"] = (len(args) > 1 and callable(args[1])) or callable(kwargs.get("closure"))
        data["scaler"] = bool(within) and session.inside("scaler_step") is not None
        session.stop_if_wanted(call, frame)
        data["used"], data["frozen"], data["versions"] = self._survey(record, surrounding is None)
        data["values"] = self._values(record, optimizer, data)
        call.announced = lambda: self._announce(call)
        session.enter(call)
        if data["closure"]:
            call.announced = None
            self._announce(call)
        return call

    def _within(self, optimizer: Any) -> bool:
        """A step of this very optimizer is in progress: its class called super().step()."""
        return any(call.kind == "step" and call.data["record"].ref() is optimizer for call in self.session.local.stack)

    def _announce(self, call: Call) -> None:
        self.session.emit(
            "OptimizerStepStarted", call, {"optimizer": call.data["record"].id, "closure": call.data["closure"]}
        )

    def _survey(self, record: OptimizerRecord, looked: bool) -> tuple[list[Tracked], list[int], list[int]]:
        """(parameters with a gradient, ids of frozen ones, version of every parameter's values)."""
        used, frozen, versions = [], [], []
        for entry in record.entries:
            leaf = entry.ref()
            if leaf is None:
                versions.append(-1)
                continue
            versions.append(leaf._version)
            # what `look` found a moment ago, unless a backward is in progress
            if leaf.is_leaf and (entry.grad if looked else leaf.grad is not None):
                used.append(entry)
            if not leaf.requires_grad:
                frozen.append(entry.id)
        return used, frozen, versions

    def _values(self, record: OptimizerRecord, optimizer: Any, data: dict[str, Any]) -> list[torch.Tensor] | None:
        """Copies of the values to compare with after the step, on the first steps and then ever more rarely; small models only."""
        number = record.count_steps = record.count_steps + 1
        if data["closure"] or not (number <= _COMPARED_STEPS or number & (number - 1) == 0):
            return None
        leaves = [leaf for entry in data["used"] if (leaf := entry.ref()) is not None]
        if len(leaves) != len(data["used"]) or not measure.synchronous(leaves):
            return None
        if sum(leaf.numel() for leaf in leaves) > 4_000_000:
            return None
        return [leaf.detach().clone() for leaf in leaves]

    def _after(self, call: Call, result: Any) -> None:
        took = self.session.leave(call)
        data = call.data
        record: OptimizerRecord = data["record"]
        moved = []
        for entry, version in zip(record.entries, data["versions"], strict=False):
            leaf = entry.ref()
            if leaf is not None and (now := leaf._version) != version:
                moved.append(entry)
                entry.value_version = now
        used: list[Tracked] = data["used"]
        if data["closure"]:
            used = [
                e for e in record.entries if (leaf := e.ref()) is not None and leaf.is_leaf and leaf.grad is not None
            ]
        for entry in used:
            entry.spent = True
            entry.fingerprint = None
        rates = tuple(self._rates(record))
        which = record.ids_of(used), record.ids_of(moved), tuple(data["frozen"])

        def make() -> tuple[dict[str, Any], dict[str, Any]]:
            fields = {"optimizer": record.id, "closure": data["closure"], "lr": rates, "by_scaler": data["scaler"]}
            return fields, dict(zip(("used", "moved", "frozen"), map(ids, which), strict=True))

        if data["values"] is not None:
            fields, arrays = make()
            self._compare(data["used"], data["values"], fields, arrays)
            self.session.emit("OptimizerStepped", call, fields, arrays, took)
        else:
            key = ("OptimizerStepped", call.site, record.id, data["closure"], rates, data["scaler"], *which)
            self.session.tell(call, key, make, took)
        if call.parent is None:
            self.session.gate.stepped()

    def _rates(self, record: OptimizerRecord) -> list[float]:
        optimizer = record.ref()
        return rates_of(optimizer) if optimizer is not None else []

    def _compare(
        self, used: list[Tracked], before: list[torch.Tensor], fields: dict[str, Any], arrays: dict[str, Any]
    ) -> None:
        leaves = [entry.ref() for entry in used]
        if any(leaf is None for leaf in leaves) or not leaves:
            return
        with torch.no_grad():
            now = [leaf.detach() for leaf in leaves if leaf is not None]
            fields["unchanged"] = all(torch.equal(a, b) for a, b in zip(now, before, strict=True))
            updates = measure.norms([b.sub_(a) for a, b in zip(now, before, strict=True)])
            sizes = measure.norms(now)
            ratios = [
                update / size if isfinite(size) and size > 0.0 and isfinite(update) else float("nan")
                for update, size in zip(updates, sizes, strict=True)
            ]
        arrays["ratios"] = floats(ratios)
        arrays["nonfinite"] = ids(
            [
                e.id
                for e, leaf, size in zip(used, now, sizes, strict=True)
                if not (isfinite(size) or measure.finite(leaf))
            ]
        )

    def _raised(self, call: Call, error: BaseException) -> None:
        took = self.session.leave(call)
        self.session.emit(
            "CallRaised",
            call,
            {"kind": "step", "error": type(error).__name__, "message": str(error)[:2000]},
            duration=took,
        )


def _subclasses(cls: type) -> list[type]:
    found: list[type] = [cls]
    below: list[type] = cls.__subclasses__()
    for sub in below:
        found.extend(_subclasses(sub))
    return found


def _ignore(token: Any, error: BaseException) -> None:
    """Nothing to tell."""
