"""Keeps our own tensor operations out of sight of what the person has switched on to watch or to change operations."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from types import CodeType
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

dispatch_modes = torch._C._len_torch_dispatch_stack
function_modes = torch._C._len_torch_function_stack
"""How many modes of each kind are active."""
plainly: Any = torch._C.DisableTorchFunctionSubclass
"""Without the `__torch_function__` of tensor subclasses."""


def needs_apart() -> bool:
    """Some mode is active."""
    return bool(dispatch_modes() or function_modes())


def apart() -> Any:
    """No TorchDispatchMode or TorchFunctionMode (`torch.device(...)` is one) and no `__torch_function__` of a tensor subclass
    meets the operations inside."""
    dispatch, function = dispatch_modes(), function_modes()
    if not dispatch and not function:
        return plainly()
    stack = ExitStack()
    if dispatch:
        stack.enter_context(_disable_current_modes())
    if function:
        stack.enter_context(torch._C.DisableTorchFunction())
    else:
        stack.enter_context(plainly())
    return stack


def out_of_sight() -> None:
    """`torch.compile`, called around a whole training step, is not to look into functions of ours when it meets them."""
    frames: Any = getattr(torch._C._dynamo, "eval_frame", None)
    if hasattr(frames, "set_code_exec_strategy"):
        skipped = frames.FrameExecStrategy if hasattr(frames, "FrameExecStrategy") else frames._FrameExecStrategy
        action = frames.FrameAction if hasattr(frames, "FrameAction") else frames._FrameAction
        strategy = skipped(action.SKIP, action.DEFAULT)
        for code in _own_codes():
            frames.set_code_exec_strategy(code, strategy)
    elif hasattr(frames, "skip_code"):
        for code in _own_codes():
            frames.skip_code(code)


def _own_codes() -> Iterator[CodeType]:
    waiting: list[Any] = []
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "gradtui":
            things = [thing for thing in vars(module).values() if getattr(thing, "__module__", None) == name]
            inside = [member for thing in things if isinstance(thing, type) for member in vars(thing).values()]
            waiting += [*things, *inside]
    for thing in waiting:
        for part in (thing, *[getattr(thing, at, None) for at in ("fget", "__func__", "__wrapped__")]):
            code = getattr(part, "__code__", None)
            if code is not None:
                yield from _with_inner(code)


def _with_inner(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _with_inner(constant)
