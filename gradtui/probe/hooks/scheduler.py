"""Sees learning-rate schedulers step, once for each step the person makes: not the one inside a constructor, nor nested ones."""

from __future__ import annotations

from types import FrameType
from typing import Any

from torch.optim import Optimizer, lr_scheduler

from gradtui.probe.discover import Discovery, rates_of
from gradtui.probe.patch import Patches, around
from gradtui.probe.session import Call, Session


class SchedulerHook:
    """Wraps `step` of every scheduler class of torch that defines one."""

    def __init__(self, session: Session, discovery: Discovery) -> None:
        self.session = session
        self.discovery = discovery
        self._patches = Patches()

    def install(self) -> None:
        for cls in list(vars(lr_scheduler).values()):
            if isinstance(cls, type) and cls.__module__ == lr_scheduler.__name__ and callable(cls.__dict__.get("step")):
                wrapper = around(
                    self.session, "scheduler", cls.__dict__["step"], self._before, self._after, self._raised
                )
                self._patches.put(cls, "step", wrapper)

    def remove(self) -> None:
        self._patches.remove()

    def _before(self, frame: FrameType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
        session = self.session
        if frame.f_code.co_filename == lr_scheduler.__file__ or session.inside("scheduler") is not None:
            return None
        optimizer = getattr(args[0], "optimizer", None)
        if not isinstance(optimizer, Optimizer) or not session.join():
            return None
        call = session.begin("scheduler", frame)
        call.data.update(
            kind=type(args[0]).__name__,
            optimizer=optimizer,
            before=rates_of(optimizer),
            record=self.discovery.record_of(optimizer, frame),
        )
        session.stop_if_wanted(call, frame)
        session.enter(call)
        return call

    def _after(self, call: Call, result: Any) -> None:
        took = self.session.leave(call)
        data = call.data
        fields = {
            "kind": data["kind"],
            "optimizer": data["record"].id,
            "before": data["before"],
            "after": rates_of(data["optimizer"]),
        }
        data.clear()
        self.session.emit("SchedulerStepped", call, fields, duration=took)

    def _raised(self, call: Call, error: BaseException) -> None:
        self.session.leave(call)
