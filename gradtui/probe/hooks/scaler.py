"""Sees torch.amp.GradScaler: scale, unscale_, step, update. A scaler that is not enabled is not there."""

from __future__ import annotations

from types import FrameType
from typing import Any

import torch

from gradtui.probe.discover import Discovery
from gradtui.probe.patch import Patches, around
from gradtui.probe.session import Call, Session
from gradtui.probe.watch import Watcher
from gradtui.wire.encode import floats, ids

_KEPT_SCALES = 64


class ScalerHook:
    """Wraps the four methods on the class. `scales` maps the sequence number of a node that scale() made to the scale."""

    def __init__(self, session: Session, discovery: Discovery, watcher: Watcher) -> None:
        self.session = session
        self.discovery = discovery
        self.watcher = watcher
        self.scales: dict[int, float] = {}
        self._patches = Patches()

    def install(self) -> None:
        scaler = getattr(torch.amp, "GradScaler", None)
        if scaler is None:
            return
        for name, before, after in (
            ("scale", self._before_scale, self._after_scale),
            ("unscale_", self._before_unscale, self._after_unscale),
            ("step", self._before_step, self._after_step),
            ("update", self._before_update, self._after_update),
        ):
            wrapper = around(self.session, f"scaler.{name}", scaler.__dict__[name], before, after, self._raised)
            self._patches.put(scaler, name, wrapper)

    def remove(self) -> None:
        self._patches.remove()

    def _raised(self, token: Any, error: BaseException) -> None:
        if isinstance(token, Call):
            took = self.session.leave(token)
            self.session.emit(
                "CallRaised",
                token,
                {"kind": token.kind, "error": type(error).__name__, "message": str(error)[:2000]},
                duration=took,
            )

    # -- scale ----------------------------------------------------------------------------------------------------

    def _before_scale(self, frame: FrameType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return args[0] if args[0].is_enabled() else None

    def _after_scale(self, scaler: Any, result: Any) -> None:
        outputs = (
            [result] if isinstance(result, torch.Tensor) else list(result) if isinstance(result, (list, tuple)) else []
        )
        scale = _scale_of(scaler)
        for output in outputs:
            if isinstance(output, torch.Tensor) and output.grad_fn is not None:
                self.scales[output.grad_fn._sequence_nr()] = scale
        while len(self.scales) > _KEPT_SCALES:
            del self.scales[next(iter(self.scales))]

    # -- unscale_ -------------------------------------------------------------------------------------------------

    def _before_unscale(self, frame: FrameType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
        scaler, optimizer = args[0], args[1] if len(args) > 1 else kwargs["optimizer"]
        session = self.session
        if not scaler.is_enabled() or not session.join():
            return None
        self.watcher.look()
        call = session.begin("unscale", frame, counted=session.inside("scaler_step") is None)
        call.data.update(scaler=scaler, scale=_scale_of(scaler), record=self.discovery.record_of(optimizer, frame))
        call.data["optimizer"] = optimizer
        if call.ordinal:
            session.stop_if_wanted(call, frame)
        session.enter(call)
        return call

    def _after_unscale(self, call: Call, result: Any) -> None:
        took = self.session.leave(call)
        data = call.data
        pairs = self.watcher.remember(data["record"].entries)
        for entry, _ in pairs:
            entry.scale = 1.0
        found = _found_inf(data["scaler"], data["optimizer"])

        def build(norms: list[float]) -> list[bytes]:
            for (entry, _), norm in zip(pairs, norms, strict=True):
                entry.norm = norm
            fields = {"optimizer": data["record"].id, "scale": data["scale"], "found_inf": found}
            arrays = {"parameters": ids([entry.id for entry, _ in pairs]), "after": floats(norms)}
            return [self.session.fact("GradsUnscaled", call, fields, arrays, took)]

        self.session.emit_measured([grad.detach() for _, grad in pairs], build)

    # -- step and update ------------------------------------------------------------------------------------------

    def _before_step(self, frame: FrameType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
        scaler, optimizer = args[0], args[1] if len(args) > 1 else kwargs["optimizer"]
        session = self.session
        if not scaler.is_enabled() or not session.join():
            return None
        self.watcher.look()
        call = session.begin("scaler_step", frame)
        record = self.discovery.record_of(optimizer, frame)
        call.data.update(scale=_scale_of(scaler), record=record, steps=session.counts.get("step", 0))
        session.stop_if_wanted(call, frame)
        session.enter(call)
        return call

    def _after_step(self, call: Call, result: Any) -> None:
        took = self.session.leave(call)
        data = call.data
        fields = {
            "optimizer": data["record"].id,
            "ran": self.session.counts.get("step", 0) > data["steps"],
            "scale": data["scale"],
        }
        self.session.emit("ScalerStepped", call, fields, duration=took)

    def _before_update(self, frame: FrameType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
        scaler = args[0]
        if not scaler.is_enabled() or not self.session.join():
            return None
        self.watcher.look()
        call = self.session.begin("scaler_update", frame)
        call.data.update(scaler=scaler, before=_scale_of(scaler))
        self.session.stop_if_wanted(call, frame)
        self.session.enter(call)
        return call

    def _after_update(self, call: Call, result: Any) -> None:
        took = self.session.leave(call)
        fields = {"before": call.data["before"], "after": _scale_of(call.data["scaler"])}
        self.session.emit("ScalerUpdated", call, fields, duration=took)


def _scale_of(scaler: Any) -> float:
    """The loss scale, where it can be read without waiting for an accelerator; else the last one that was known."""
    scale = scaler._scale
    if scale is None:
        return float(scaler._init_scale)
    if scale.device.type == "cpu":
        return float(scale)
    known = getattr(scaler, "_gradtui_scale", None)
    return float(known if known is not None else scaler._init_scale)


def _found_inf(scaler: Any, optimizer: Any) -> bool:
    state = scaler._per_optimizer_states.get(id(optimizer), {})
    found = state.get("found_inf_per_device", {})
    return any(float(value) > 0 for value in found.values() if value.device.type == "cpu")
