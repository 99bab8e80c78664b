"""At `--watch ops`: finds the first operation that turned finite numbers into NaN or Inf, in the forward pass or in a backward.

While a graph is built, each torch function called from Python notes the person's line under the sequence number of the node it made.
During a backward a hook on every node compares what went in with what came out. After the first find of a backward nothing more is checked.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from math import isfinite
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from gradtui.probe.session import Call, Session
from gradtui.probe.sites import chain_of

_KEPT_LINES = 200_000
_CAUSES = {
    "Sqrt": "a square root at 0, where its slope is infinite",
    "Rsqrt": "a reciprocal square root at 0",
    "Log": "a logarithm at 0 or below",
    "Log1P": "log1p at −1 or below",
    "Log2": "a logarithm at 0 or below",
    "Log10": "a logarithm at 0 or below",
    "Div": "a division by zero, or by an empty count",
    "Reciprocal": "a reciprocal of zero",
    "Pow": "a power of 0 or of a negative number",
    "Exp": "exp overflowed; behind torch.where its unused branch still gives 0·∞",
    "Expm1": "exp overflowed; behind torch.where its unused branch still gives 0·∞",
    "Norm": "a norm at 0, where it has no slope",
    "LinalgVectorNorm": "a norm at 0, where it has no slope",
    "Cdist": "a distance of 0 between two points",
    "Acos": "acos at ±1",
    "Asin": "asin at ±1",
    "Atanh": "atanh at ±1",
    "Acosh": "acosh at 1",
    "Softmax": "a softmax over nothing but −∞",
    "LogSoftmax": "a log-softmax over nothing but −∞",
    "Std": "a standard deviation of one element or of equal ones",
    "Var": "a variance of one element",
    "Mul": "0 · ∞, or an overflow",
    "Where": "0 · ∞ from the branch that torch.where did not take",
    "Mean": "a mean over no element",
}


class OpsHook:
    """One a process, and only at this level of watching."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._mode = _Lines(session)
        self._numbers: list[int] = self._mode.numbers
        self._entered = False

    def install(self) -> None:
        self._mode.__enter__()  # type: ignore[no-untyped-call]
        self._entered = True

    def remove(self) -> None:
        if self._entered:
            self._mode.__exit__(None, None, None)  # type: ignore[no-untyped-call]
            self._entered = False

    def arm(self, call: Call, roots: list[torch.Tensor]) -> list[Any]:
        """Before a backward: hook every node of its graph; returns the handles to remove afterwards."""
        watch = _Watch()
        call.data["ops"] = watch
        handles = []
        for node in _nodes(roots):
            if not hasattr(node, "variable"):
                handles.append(node.register_hook(_Check(node, watch)))
        return handles

    def tell(self, call: Call) -> None:
        """After it: the first operation that went wrong, if any; one met in the forward pass comes first."""
        watch = call.data.pop("ops", None)
        forward, self._mode.bad = self._mode.bad, None
        if forward is not None:
            self._emit(call, forward[0], forward[1], "forward")
        elif watch is not None and watch.name:
            self._emit(call, watch.name, self._line_of(watch.number), "backward")
        if len(self._numbers) > _KEPT_LINES:
            self._mode.forget(_KEPT_LINES // 2)

    def _line_of(self, number: int) -> int:
        """The call site that made the node: an operation's nodes come just before the one it returned."""
        at = bisect_left(self._numbers, number)
        return self._mode.sites[at] if at < len(self._numbers) else 0

    def _emit(self, call: Call, name: str, site: int, when: str) -> None:
        plain = name.removesuffix("0").removesuffix("1").removesuffix("Backward")
        cause = _CAUSES.get(plain) or _CAUSES.get(plain.replace("_", "").title()) or ""
        self.session.emit(
            "NonfiniteOrigin", call, {"op": name, "forward": site or None, "cause": cause, "when": when}, ordinal=0
        )


class _Watch:
    """What one backward's hooks have found."""

    __slots__ = ("name", "number")

    def __init__(self) -> None:
        self.name = ""
        self.number = 0


class _Check:
    """A node's hook: what came out of it against what went in."""

    __slots__ = ("name", "number", "watch")

    def __init__(self, node: Any, watch: _Watch) -> None:
        self.name = type(node).__name__
        self.number = node._sequence_nr()
        self.watch = watch

    def __call__(self, outputs: tuple[Any, ...], inputs: tuple[Any, ...]) -> None:
        watch = self.watch
        if watch.name:
            return
        try:
            with torch._C.DisableTorchFunction():
                if not all(map(_fine, outputs)) and all(map(_fine, inputs)):
                    watch.name, watch.number = self.name, self.number
        except Exception:
            watch.name = ""


class _Lines(TorchFunctionMode):
    """Notes the person's line for the node that each torch function made, and the first output that was not finite."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.numbers: list[int] = []
        self.sites: list[int] = []
        self.bad: tuple[str, int] | None = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **kwargs) if kwargs else func(*args)
        if self.session.local.busy:
            return result
        output = result[0] if type(result) is tuple and result else result
        if isinstance(output, torch.Tensor):
            try:
                self._note(func, output, args)
            except Exception as error:
                self.session.failed("ops", error)
        return result

    def _note(self, func: Any, output: torch.Tensor, args: Any) -> None:
        with torch._C.DisableTorchFunction():
            node = output.grad_fn
            if node is None:
                return
            number = node._sequence_nr()
            if self.numbers and number <= self.numbers[-1]:
                if number == self.numbers[-1]:
                    return
                if number > 2**62:  # leaves' accumulators
                    return
                self.forget(0)
            if number > 2**62:
                return
            site = self.session.sites.number(*chain_of(sys._getframe(2)))
            self.numbers.append(number)
            self.sites.append(site)
            if self.bad is None and not _fine(output) and all(_fine(a) for a in args if isinstance(a, torch.Tensor)):
                self.bad = (getattr(func, "__name__", str(func)).strip("_"), site)

    def forget(self, keep: int) -> None:
        """Drop the oldest lines."""
        del self.numbers[: len(self.numbers) - keep]
        del self.sites[: len(self.sites) - keep]


def _fine(tensor: Any) -> bool:
    """No NaN and no Inf; a finite sum proves it, one that is not may have overflowed and is looked at again."""
    if not isinstance(tensor, torch.Tensor) or tensor.layout is not torch.strided or tensor.is_meta:
        return True
    if not (tensor.is_floating_point() or tensor.is_complex()) or tensor.device.type != "cpu":
        return True
    with torch.no_grad():
        total = tensor.sum().item()
        return isfinite(total) if isinstance(total, float) and isfinite(total) else bool(torch.isfinite(tensor).all())


def _nodes(roots: list[torch.Tensor]) -> list[Any]:
    seen: set[Any] = set()
    stack = [root.grad_fn for root in roots if root.grad_fn is not None]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        stack.extend(child for child, _ in node.next_functions if child is not None and child not in seen)
    return list(seen)
