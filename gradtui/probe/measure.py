"""Norms of many tensors at once, without touching the person's numbers, random state or modes.

Norms are exact in two ways that matter: a finite tensor whose squares overflow is reported finite, and a tensor with any
non-zero element never reports a norm of zero. On accelerators nothing here waits: `Pending` holds numbers on their way.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite, nan, sqrt
from typing import Any

import torch

_PLAIN = (torch.Tensor, torch.nn.Parameter)
_WIDE = (torch.float32, torch.float64)
_foreach_norm: Any = torch._foreach_norm
_stack = torch.stack

SMALL = 2_048
"""Elements up to which many tensors are measured together, by one copy and one segmented sum: 0.7 µs a tensor against 3."""

LARGE = 1_000_000
"""Elements from which a norm is left to torch's own kernel, which sums in blocks."""

_TINY = 1e-30
"""Sums of squares below this may have lost elements to underflow."""


def plain(tensor: Any) -> torch.Tensor | None:
    """The dense local values behind a gradient: a DTensor's shard, a sparse tensor's values; None when it holds no numbers (meta, fake)."""
    if type(tensor) in _PLAIN:
        if tensor.layout is torch.strided:
            return None if tensor.is_meta else tensor
        return tensor.coalesce().values()  # type: ignore[no-any-return]
    local = getattr(tensor, "to_local", None)
    if local is not None:
        return plain(local())
    if isinstance(tensor, torch.Tensor) and tensor.layout is torch.strided and not tensor.is_meta:
        return tensor if hasattr(tensor, "data_ptr") and not _wraps(tensor) else None
    return None


def _wraps(tensor: torch.Tensor) -> bool:
    return type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__  # fake, functional, quantised …


def norms(tensors: Sequence[torch.Tensor]) -> list[float]:
    """Euclidean norm of each tensor. NaN where a tensor holds no numbers. Waits for accelerators: call it only when stopped or on CPU."""
    if not tensors:
        return []
    enabled = torch.is_grad_enabled()
    if enabled:
        torch._C._set_grad_enabled(False)
    try:
        squares = _squares(tensors)
        return [
            sqrt(square) if _TINY < square < inf else _exact(tensor)
            for square, tensor in zip(squares, tensors, strict=True)
        ]
    finally:
        if enabled:
            torch._C._set_grad_enabled(True)


def plain_norm(tensor: torch.Tensor) -> float:
    """Norm of an ordinary tensor on the CPU, quickly; -1.0 where `norms` has to look closer, or gradients are being recorded."""
    if (
        not tensor.is_cpu
        or tensor.dtype is not torch.float32
        or tensor.layout is not torch.strided
        or tensor.numel() >= LARGE
        or torch.is_grad_enabled()
    ):
        return -1.0
    flat = tensor.reshape(-1)
    square = torch.dot(flat, flat).item()
    return sqrt(square) if _TINY < square < inf else -1.0


def _squares(tensors: Sequence[torch.Tensor]) -> list[float]:
    """Sum of squares of each; NaN for those to be measured exactly."""
    found = [nan] * len(tensors)
    small: list[int] = []
    for index, tensor in enumerate(tensors):
        if (
            type(tensor) in _PLAIN
            and tensor.dtype is torch.float32
            and tensor.layout is torch.strided
            and not tensor.is_meta
        ):
            count = tensor.numel()
            if count <= SMALL and len(tensors) > 24:
                small.append(index)
            elif count < LARGE:
                flat = tensor.reshape(-1)
                found[index] = torch.dot(flat, flat).item()
            else:
                found[index] = torch.linalg.vector_norm(tensor).item() ** 2
    if small:
        picked = [tensors[i].reshape(-1) for i in small]
        flat = torch.cat(picked)
        lengths = torch.tensor([tensor.numel() for tensor in picked])
        sums = torch.segment_reduce(flat * flat, "sum", lengths=lengths, unsafe=True).tolist()
        for index, value in zip(small, sums, strict=True):
            found[index] = value
    return found


def _exact(tensor: torch.Tensor) -> float:
    """A norm that neither overflows nor loses anything; NaN or Inf only where the tensor holds one."""
    values = plain(tensor)
    if values is None:
        return nan
    if values.numel() == 0:
        return 0.0
    value = _norm(values)
    if isfinite(value) and value > 1e-15:
        return value
    if value == 0.0 and not values.any():
        return 0.0
    if not torch.isfinite(values).all():
        return nan if torch.isnan(values).any() else inf
    wide = values.to(torch.complex128 if values.dtype.is_complex else torch.float64)
    largest = float(wide.abs().max())
    return max(largest * float(torch.linalg.vector_norm(wide / largest)), 5e-324)


def _norm(values: torch.Tensor) -> float:
    if values.dtype not in _WIDE and not values.dtype.is_complex:
        return float(torch.linalg.vector_norm(values, dtype=torch.float32))
    return float(torch.linalg.vector_norm(values))


_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def checksum(tensor: torch.Tensor) -> int | None:
    """Sum of the elements' bit patterns: differs when any value differs, but for rare cancellation. None where it cannot be taken.

    A norm will not do: a late, small step may leave it the same to the last bit.
    """
    values = plain(tensor)
    if values is None or values.device.type != "cpu":
        return None
    with torch.no_grad():
        values = torch.view_as_real(values) if values.is_complex() else values
        return int(values.view(_BITS[values.element_size()]).sum())


def finite(tensor: torch.Tensor) -> bool:
    """No NaN and no Inf in it."""
    values = plain(tensor)
    if values is None:
        return True
    with torch.no_grad():
        return bool(torch.isfinite(values).all())


def synchronous(tensors: Sequence[torch.Tensor]) -> bool:
    """Reading numbers from these does not stall an accelerator."""
    return all(t.device.type == "cpu" for t in tensors)


class Pending:
    """Norms of accelerator tensors on their way to the CPU: reduced on the device, copied without waiting."""

    def __init__(self, tensors: Sequence[torch.Tensor]) -> None:
        self._count = len(tensors)
        self._parts: list[tuple[list[int], torch.Tensor, Any]] = []
        groups: dict[tuple[torch.device, torch.dtype], list[int]] = {}
        values = [plain(t) for t in tensors]
        for index, tensor in enumerate(values):
            if tensor is not None:
                groups.setdefault((tensor.device, tensor.dtype), []).append(index)
        with torch.no_grad():
            for (device, dtype), indices in groups.items():
                wide = None if dtype in _WIDE or dtype.is_complex else torch.float32
                picked = [values[i] for i in indices]
                reduced = _stack(_foreach_norm(picked, 2, wide) if wide else _foreach_norm(picked)).double()
                self._parts.append((indices, *_copy(reduced, device)))

    def ready(self) -> bool:
        """Every number has arrived."""
        return all(event is None or event.query() for _, _, event in self._parts)

    def values(self) -> list[float]:
        """The norms, waiting for those that have not arrived. An infinite norm may be an overflow of squares: it is reported as it is."""
        found = [nan] * self._count
        for indices, host, event in self._parts:
            if event is not None:
                event.synchronize()
            for index, value in zip(indices, host.tolist(), strict=True):
                found[index] = value
        return found


def _copy(reduced: torch.Tensor, device: torch.device) -> tuple[torch.Tensor, Any]:
    if device.type == "cpu":
        return reduced, None
    if device.type == "cuda":
        host = torch.empty(reduced.shape, dtype=reduced.dtype, pin_memory=True)
        host.copy_(reduced, non_blocking=True)
        event: Any = torch.cuda.Event()  # type: ignore[no-untyped-call]
        event.record(torch.cuda.current_stream(device))
        return host, event
    return reduced.to("cpu", non_blocking=False), None
