"""Sees clip_grad_norm_ and clip_grad_value_: what was handed in, what came out."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Iterator
from math import nan
from types import FrameType
from typing import Any

import torch

from gradtui.probe.discover import Discovery
from gradtui.probe.patch import Patches, uncounted
from gradtui.probe.registry import Tracked
from gradtui.probe.session import Call, Session
from gradtui.probe.watch import Watcher
from gradtui.wire.encode import floats, ids


class ClipHook:
    """Replaces both functions where `torch.nn.utils` and its module `clip_grad` name them."""

    def __init__(self, session: Session, discovery: Discovery, watcher: Watcher) -> None:
        self.session = session
        self.discovery = discovery
        self.watcher = watcher
        self._patches = Patches()

    def install(self) -> None:
        from torch.nn import utils
        from torch.nn.utils import clip_grad

        for name, method in (("clip_grad_norm_", "norm"), ("clip_grad_value_", "value")):
            wrapper = self._wrap(getattr(utils, name), method)
            self._patches.put(clip_grad, name, wrapper)
            self._patches.put(utils, name, wrapper)

    def remove(self) -> None:
        self._patches.remove()

    def _wrap(self, original: Callable[..., Any], method: str) -> Callable[..., Any]:
        """Like `patch.around`, with an iterator that was handed in read once and handed on as a fresh one."""
        session = self.session
        compiling = torch.compiler.is_compiling

        @functools.wraps(original)
        def clip(*args: Any, **kwargs: Any) -> Any:
            if compiling() or session.silent:
                return original(*args, **kwargs)
            call: Call | None = None
            try:
                args, kwargs, given = _listed(args, kwargs)
                with session.ours("clip"):
                    call = self._before(sys._getframe(1), method, given, args, kwargs)
            except BaseException as error:  # Ctrl-C, or what a signal handler raised: at the person's line
                error.__traceback__ = None
                raise
            try:
                result = original(*args, **kwargs)
            except BaseException as error:
                if error.__traceback__ is not None:
                    error.__traceback__ = error.__traceback__.tb_next
                if call is not None:
                    with session.ours("clip"):
                        self._raised(call, error)
                raise
            if call is not None:
                with session.ours("clip"):
                    self._after(call, result)
            return result

        return uncounted(clip)  # type: ignore[no-any-return]

    def _before(
        self, frame: FrameType, method: str, given: list[torch.Tensor], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Call | None:
        session = self.session
        if session.inside("clip") is not None or not session.join():
            return None
        if session.inside("backward") is None:
            self.watcher.look()
        self.discovery.meet([t for t in given if t.is_leaf and t.grad is not None], frame, 0)
        call = session.begin("clip", frame)
        name = "max_norm" if method == "norm" else "clip_value"
        limit = args[1] if len(args) > 1 else kwargs.get(name)
        data = call.data
        data["method"], data["given"] = method, len(given)
        data["limit"] = float(limit) if isinstance(limit, (int, float)) else nan
        get = self.watcher.registry.get
        data["entries"] = [entry for t in given if t.is_leaf and t.grad is not None and (entry := get(t)) is not None]
        session.stop_if_wanted(call, frame)
        session.enter(call)
        return call

    def _after(self, call: Call, result: Any) -> None:
        took = self.session.leave(call)
        data = call.data
        entries: list[Tracked] = data["entries"]
        pairs = self.watcher.remember(entries)
        grads = [grad.detach() for _, grad in pairs]
        extra: list[torch.Tensor] = []
        if data["method"] == "norm" and isinstance(result, torch.Tensor):
            extra = [result.detach()]

        def build(norms: list[float]) -> list[bytes]:
            after = norms[: len(pairs)]
            for (entry, _), norm in zip(pairs, after, strict=True):
                entry.norm = norm
            fields = {
                "method": data["method"],
                "limit": data["limit"],
                "norm": norms[len(pairs)] if extra else 0.0,
                "given": data["given"],
            }
            arrays = {"parameters": ids([entry.id for entry, _ in pairs]), "after": floats(after)}
            return [self.session.fact("GradsClipped", call, fields, arrays, took)]

        self.session.emit_measured([*grads, *extra], build)

    def _raised(self, call: Call, error: BaseException) -> None:
        took = self.session.leave(call)
        self.session.emit(
            "CallRaised",
            call,
            {"kind": "clip", "error": type(error).__name__, "message": str(error)[:2000]},
            duration=took,
        )


def _listed(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any], list[torch.Tensor]]:
    """The call with an iterator that was handed in replaced by an equal one, and the tensors it gives."""
    parameters = args[0] if args else kwargs.get("parameters")
    if isinstance(parameters, torch.Tensor):
        return args, kwargs, [parameters]
    given: list[Any] = []
    fault: Exception | None = None
    try:
        iterator = iter(parameters)  # type: ignore[arg-type]
    except TypeError:
        return args, kwargs, []
    if iterator is not parameters:  # a container, which can be read again
        return args, kwargs, [t for t in iterator if isinstance(t, torch.Tensor)]
    try:
        given.extend(iterator or ())
    except Exception as error:  # the person's own generator fails: torch is to meet that, where it would have
        fault = error
    again = _again(given, fault) if isinstance(parameters, types.GeneratorType) or fault else iter(given)
    tensors = [t for t in given if isinstance(t, torch.Tensor)]
    if args:
        return (again, *args[1:]), kwargs, tensors
    return args, {**kwargs, "parameters": again}, tensors


def _again(given: list[Any], fault: Exception | None) -> Iterator[Any]:
    yield from given
    if fault is not None:
        raise fault
