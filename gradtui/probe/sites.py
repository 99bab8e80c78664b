"""Which line of the person's program made a call: walks frames, never reads source (the host does that)."""

from __future__ import annotations

import os
import sys
import sysconfig
from inspect import CO_OPTIMIZED
from types import CodeType, FrameType
from typing import Any

import torch

_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_EXAMPLES = os.path.join(_OURS, "examples") + os.sep
_PATHS = sysconfig.get_paths()
_STDLIB = tuple({os.path.abspath(_PATHS[key]) + os.sep for key in ("stdlib", "platstdlib") if key in _PATHS})
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")

OURS, TORCH, STDLIB, INSTALLED, PERSON = range(5)
"""Whose code a frame runs."""

_FRAMES_ALONE = 3
"""References to a snapshot of variables that nobody but its frame holds: the frame's, ours, and the count's own."""

_kinds: dict[str, int] = {}


def owner_of(filename: str) -> int:
    """Whose file this is."""
    kind = _kinds.get(filename)
    if kind is None:
        kind = _kinds[filename] = _owner_of(filename)
    return kind


def _owner_of(filename: str) -> int:
    path = filename if filename.startswith("<") else os.path.abspath(filename)
    if path.startswith(_OURS) and not path.startswith(_EXAMPLES):
        return OURS
    if path.startswith(_TORCH) or filename.startswith(("<eval_with_key>", "<__array_function__", "<frozen")):
        return TORCH
    if any(part in path for part in _INSTALLED):
        return INSTALLED
    if path.startswith(_STDLIB):
        return STDLIB
    return PERSON


def chain_of(frame: FrameType | None) -> tuple[FrameType | None, FrameType | None]:
    """The person's frame behind a call, and the first frame of a framework in between (None when the person called torch directly).

    Without any frame of the person's (a module run from site-packages), the outermost installed frame that is `__main__`,
    else the first installed one, stands for it.
    """
    first: FrameType | None = None
    main: FrameType | None = None
    while frame is not None:
        kind = owner_of(frame.f_code.co_filename)
        if kind == PERSON:
            return frame, first
        if kind == INSTALLED:
            first = first or frame
            if frame.f_globals.get("__name__") == "__main__":
                main = frame
        frame = frame.f_back
    return (main or first), (first if main is not None and main is not first else None)


class Sites:
    """Numbers call sites: one for each place in the bytecode that makes calls."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, int, int, int], tuple[int, CodeType, CodeType | None]] = {}
        self._near: dict[tuple[int, int], tuple[int, str, int, CodeType]] = {}
        """Places in code of the person's that call torch directly."""
        self._described: list[dict[str, Any]] = []
        self.fresh: list[dict[str, Any]] = []
        """Descriptions of sites numbered since the last look, to be sent before an event refers to them."""

    def find(self, frame: FrameType | None) -> tuple[int, str, int]:
        """(the site's number, the person's file, line) behind a call made in this frame."""
        near = frame
        while near is not None and _kinds.get(near.f_code.co_filename) == TORCH:
            near = near.f_back
        if near is None or _kinds.get(near.f_code.co_filename) != PERSON:
            person, framework = chain_of(frame)
            number = self.number(person, framework)
            return (number, person.f_code.co_filename, person.f_lineno or 0) if person is not None else (0, "", 0)
        code = near.f_code
        key = (id(code), near.f_lasti)
        known = self._near.get(key)  # a line number costs a walk through the code's table of lines
        if known is None:
            known = self._near[key] = (self.number(near, None), code.co_filename, near.f_lineno or 0, code)
        return known[0], known[1], known[2]

    def number(self, person: FrameType | None, framework: FrameType | None) -> int:
        """The site's number, from 1; 0 when nobody's frame is known."""
        if person is None:
            return 0
        code = person.f_code
        outer = framework.f_code if framework is not None else None
        key = (id(code), person.f_lasti, id(outer), framework.f_lasti if framework is not None else 0)
        known = self._numbers.get(key)  # by identity: hashing a code object hashes all its constants
        if known is None:
            known = self._numbers[key] = (len(self._numbers) + 1, code, outer)
            described = _describe(known[0], person, framework)
            self._described.append(described)
            self.fresh.append(described)
        return known[0]

    def tell_again(self) -> None:
        """Another host is to hear of every site: in a forked child, where the numbers stay what they are."""
        self.fresh = list(self._described)


def _span(frame: FrameType) -> tuple[int, int, int, int]:
    """(line, end line, column, end column) of the instruction a frame is at; columns -1 where Python does not keep them."""
    line = frame.f_lineno or 0
    if sys.version_info >= (3, 11):
        index = frame.f_lasti // 2
        for position, (start, end, column, end_column) in enumerate(frame.f_code.co_positions()):
            if position == index and start is not None:
                return start, end or start, -1 if column is None else column, -1 if end_column is None else end_column
    return line, line, -1, -1


def _describe(number: int, person: FrameType, framework: FrameType | None) -> dict[str, Any]:
    start, end, column, end_column = _span(person)
    code = person.f_code
    described: dict[str, Any] = {
        "t": "site",
        "id": number,
        "file": code.co_filename if code.co_filename.startswith("<") else os.path.abspath(code.co_filename),
        "line": person.f_lineno or start,
        "span": [start, end, column, end_column],
        "function": getattr(code, "co_qualname", code.co_name),
        "first": code.co_firstlineno,
    }
    if framework is not None:
        start, end, column, end_column = _span(framework)
        described["framework"] = {
            "file": framework.f_code.co_filename,
            "line": framework.f_lineno or start,
            "span": [start, end, column, end_column],
            "function": getattr(framework.f_code, "co_qualname", framework.f_code.co_name),
        }
    return described


def variables_of(frame: FrameType) -> dict[str, Any]:
    """The variables of a running frame, in a dict that is ours alone.

    Before Python 3.13 `f_locals` of a function leaves a snapshot in the frame, which would keep the tensors in it alive until the
    function returns: its variables are taken out again. It is also the very dict that `locals()` gave the person; a
    function that asks for that one (not pytest, in an `assert`) is not looked into.
    """
    code = frame.f_code
    if sys.version_info >= (3, 13) or not code.co_flags & CO_OPTIMIZED:
        return dict(frame.f_locals)
    if ("locals" in code.co_names and "@py_builtins" not in code.co_names) or "f_locals" in code.co_names:
        return {}
    snapshot = frame.f_locals
    variables = dict(snapshot)
    traced = sys.gettrace() is not None or sys.getprofile() is not None  # then Python takes variables back from it
    if not traced and sys.getrefcount(snapshot) <= _FRAMES_ALONE:
        for name in (*code.co_varnames, *code.co_cellvars, *code.co_freevars):
            snapshot.pop(name, None)  # not what `exec` left there
    return variables


def frames_of(frame: FrameType | None, limit: int = 32) -> list[tuple[str, int, str]]:
    """The person's frames, innermost first: (file, line, function)."""
    found: list[tuple[str, int, str]] = []
    while frame is not None and len(found) < limit:
        code = frame.f_code
        if owner_of(code.co_filename) == PERSON:
            found.append((code.co_filename, frame.f_lineno or 0, getattr(code, "co_qualname", code.co_name)))
        frame = frame.f_back
    return found
