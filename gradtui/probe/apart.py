"""Keeps our own tensor operations out of sight of what the person has switched on to watch or to change operations."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

dispatch_modes = torch._C._len_torch_dispatch_stack
function_modes = torch._C._len_torch_function_stack
"""How many modes of each kind are active."""
_NOTHING: AbstractContextManager[Any] = nullcontext()


def apart() -> AbstractContextManager[Any]:
    """No TorchDispatchMode or TorchFunctionMode (`torch.device(...)` is one) meets the operations inside. Free without any."""
    dispatch, function = dispatch_modes(), function_modes()
    if not dispatch and not function:
        return _NOTHING
    stack = ExitStack()
    if dispatch:
        stack.enter_context(_disable_current_modes())
    if function:
        stack.enter_context(torch._C.DisableTorchFunction())
    return stack
