"""Puts a function of ours in place of one of torch's, and back. Ours runs around the original and leaves no trace in tracebacks."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch

from gradtui.probe.session import Session

_UNCOUNTED = "<frozen importlib._bootstrap> of gradtui"
"""File name of frames of ours. Python's `warnings` does not count a frame of such a name for `stacklevel`, so that torch's
warnings name the person's line, as they would without us."""

Before = Callable[[FrameType, tuple[Any, ...], dict[str, Any]], Any]
After = Callable[[Any, Any], None]
Raised = Callable[[Any, BaseException], None]


class Patches:
    """Attributes replaced, with what they were."""

    def __init__(self) -> None:
        self._done: list[tuple[Any, str, Any, Any]] = []

    def put(self, owner: Any, name: str, replacement: Any) -> None:
        """Replace `owner.name`; remembers the original."""
        original = owner.__dict__[name] if isinstance(owner, type) else getattr(owner, name)
        setattr(owner, name, replacement)
        self._done.append((owner, name, original, replacement))

    def remove(self) -> None:
        """Put everything back, except what somebody else has wrapped since."""
        while self._done:
            owner, name, original, replacement = self._done.pop()
            current = owner.__dict__.get(name) if isinstance(owner, type) else getattr(owner, name, None)
            if current is replacement:
                setattr(owner, name, original)


def uncounted(wrapper: Any) -> Any:
    """The function, its frames no longer counted by `warnings`."""
    wrapper.__code__ = wrapper.__code__.replace(co_filename=_UNCOUNTED)
    return wrapper


def around(
    session: Session,
    hook: str,
    original: Callable[..., Any],
    before: Before,
    after: After,
    raised: Raised,
) -> Callable[..., Any]:
    """A function that calls `before(frame, args, kwargs)`, the original, then `after(token, result)` or `raised(token, error)`.

    `before` may return None: then nothing more is done. Our own faults stay inside; the original's result and exception go
    through unchanged, and a traceback shows no frame of ours (a bare `raise` adds no entry for the frame that re-raises).
    """
    compiling = torch.compiler.is_compiling
    ours, local = session.ours(hook), session.local

    @functools.wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if compiling() or session.off or local.busy or session.link.dead:  # session.silent, without its call
            return original(*args, **kwargs)
        token = None
        try:
            with ours:
                token = before(sys._getframe(1), args, kwargs)
        except BaseException as error:  # Ctrl-C, or what a signal handler raised: at the person's line
            error.__traceback__ = None
            raise
        try:
            result = original(*args, **kwargs)
        except BaseException as error:
            if error.__traceback__ is not None:
                error.__traceback__ = error.__traceback__.tb_next
            if token is not None:
                with ours:
                    raised(token, error)
            raise
        if token is not None:
            with ours:
                after(token, result)
        return result

    return uncounted(wrapper)  # type: ignore[no-any-return]
