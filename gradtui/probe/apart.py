"""Keeps our own tensor operations out of sight of what the person has switched on to watch or to change operations."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

_dispatch_modes = torch._C._len_torch_dispatch_stack
_function_modes = torch._C._len_torch_function_stack
_NOTHING: AbstractContextManager[Any] = nullcontext()


def needs_apart() -> bool:
    """Some mode is active."""
    return bool(_dispatch_modes() or _function_modes())


def apart() -> AbstractContextManager[Any]:
    """No TorchDispatchMode or TorchFunctionMode (`torch.device(...)` is one) meets the operations inside. Free without any."""
    dispatch, function = _dispatch_modes(), _function_modes()
    if not dispatch and not function:
        return _NOTHING
    stack = ExitStack()
    if dispatch:
        stack.enter_context(_disable_current_modes())
    if function:
        stack.enter_context(torch._C.DisableTorchFunction())
    return stack
