"""Sees gradients being cleared by an optimizer or a module; clears by hand are found by comparing (see `watch`)."""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any

from torch.nn import Module
from torch.optim import Optimizer

from gradtui.probe.discover import Discovery
from gradtui.probe.names import Namespace
from gradtui.probe.patch import Patches, around
from gradtui.probe.registry import Tracked
from gradtui.probe.session import Call, Session
from gradtui.probe.watch import Watcher
from gradtui.wire.encode import ids


class ZeroGradHook:
    """Wraps zero_grad of Optimizer, of every optimizer class that overrides it, and of Module."""

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
        self._module_names: dict[int, str] = {}

    def install(self) -> None:
        for cls in (Optimizer, Module):
            self._wrap(cls)
        original = Optimizer._patch_step_function
        hook = self

        def _patch_step_function(self: Any) -> None:
            original(self)
            for cls in type(self).__mro__:
                if cls is not Optimizer and "zero_grad" in cls.__dict__ and issubclass(cls, Optimizer):
                    hook._wrap(cls)

        self._patches.put(Optimizer, "_patch_step_function", _patch_step_function)

    def remove(self) -> None:
        self._patches.remove()

    def _wrap(self, cls: type) -> None:
        original = cls.__dict__["zero_grad"]
        if getattr(original, "_gradtui", False):
            return
        wrapper = around(self.session, "zero_grad", original, self._before, self._after, self._raised)
        wrapper._gradtui = True  # type: ignore[attr-defined]
        self._patches.put(cls, "zero_grad", wrapper)

    def _before(self, frame: FrameType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
        session = self.session
        owner = args[0]
        within = session.local.stack
        if (within and session.inside("zero_grad") is not None) or not (session.joined or session.join()):
            return None
        surrounding = session.inside("backward") if within else None
        record = self.discovery.record_of(owner, frame) if isinstance(owner, Optimizer) else None
        if surrounding is not None:
            entries = record.entries if record is not None else self.watcher.registry.tracked
            self.progress(surrounding, entries)
        else:
            self.watcher.look()
        call = session.begin("zero_grad", frame)
        if call.ordinal <= 4:
            self.discovery.rename(frame)
        call.data["record"] = record
        call.data["owner"] = record.name or type(owner).__name__ if record else self._name(owner, frame)
        session.stop_if_wanted(call, frame)
        session.enter(call)
        return call

    def _name(self, module: Any, frame: FrameType) -> str:
        name = self._module_names.get(id(module))
        if name is None:
            known = Namespace(frame).modules.get(id(module))
            name = self._module_names[id(module)] = (known[0] if known else "") or type(module).__name__
        return name

    def _after(self, call: Call, result: Any) -> None:
        took = self.session.leave(call)
        record = call.data["record"]
        cleared, how = self.watcher.settle_clear()
        if how == "nothing" and record is not None and any(entry.grad for entry in record.entries):
            how = "zeros"
        numbers = tuple([entry.id for entry in cleared])
        owner = call.data["owner"]
        number, covers = (record.id, len(record.entries)) if record is not None else (0, 0)

        def make() -> tuple[dict[str, Any], dict[str, Any]]:
            return {
                "by": "optimizer" if record is not None else "module",
                "owner": owner,
                "how": how,
                "optimizer": number,
                "covers": covers,
            }, {"parameters": ids(numbers)}

        self.session.tell(call, ("GradsZeroed", call.site, owner, how, number, covers, numbers), make, took)

    def _raised(self, call: Call, error: BaseException) -> None:
        self.session.leave(call)
        self.watcher.settle_clear()
