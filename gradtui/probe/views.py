"""Answers requests for a look at a tensor while the run is stopped: bounded, whatever the tensor's size. Never sends it whole."""

from __future__ import annotations

from math import ceil, isfinite
from typing import Any

import torch

from gradtui.probe.measure import plain
from gradtui.probe.registry import Registry
from gradtui.probe.session import Session
from gradtui.wire.encode import packet

_MAX_CELLS = 16_384
_MAX_VALUES = 4_096


class Views:
    """One a process."""

    def __init__(self, registry: Registry, session: Session) -> None:
        self.registry = registry
        self.session = session

    def answer(self, request: dict[str, Any]) -> bytes | None:
        """A reply packet; None for a request that has none."""
        if request.get("do") != "view_tensor":
            return None
        reply: dict[str, Any] = {"t": "reply", "id": request["id"]}
        try:
            reply["result"] = self._view(request)
        except Exception as error:
            reply["error"] = f"{type(error).__name__}: {error}"[:300]
        return packet(reply)

    def _view(self, request: dict[str, Any]) -> dict[str, Any]:
        what = request.get("what", "grad")
        result: dict[str, Any] = {"parameter": request["parameter"], "what": what}
        entry = self.registry.get_by_id(request["parameter"])
        leaf = entry.ref() if entry is not None else None
        if entry is None or leaf is None:
            return {**result, "missing": "this tensor no longer exists"}
        tensor = leaf.grad if what == "grad" else leaf
        if tensor is None:
            return {**result, "missing": ".grad is None"}
        result["scale"] = entry.scale if what == "grad" else 1.0
        result.update(
            shape=list(tensor.shape), dtype=str(tensor.dtype).removeprefix("torch."), device=str(tensor.device)
        )
        placement = getattr(tensor, "placements", None)
        if placement is not None:
            result["placement"] = str(placement)
        values = (
            tensor.to_dense() if tensor.layout is not torch.strided and tensor.numel() < 4_000_000 else plain(tensor)
        )
        if values is None:
            return {**result, "missing": f"a {tensor.device.type} tensor holds no numbers"}
        with torch.no_grad():
            values = values.detach()
            if values.is_complex():
                values = values.abs()
            if request.get("unscaled") and result["scale"] not in (0.0, 1.0):
                values = values.float() / result["scale"]
                result["scale"] = 1.0
            _statistics(values, result)
            _histogram(values, result, int(request.get("bins") or 21))
            _picture(values, request, result)
        return result


def _number(value: float) -> float | str:
    return value if isfinite(value) else repr(value)


def _where(flat: int, shape: list[int]) -> list[int]:
    index = []
    for size in reversed(shape):
        index.append(flat % size)
        flat //= size
    return index[::-1]


def _statistics(values: torch.Tensor, result: dict[str, Any]) -> None:
    flat = values.reshape(-1)
    count = flat.numel()
    wide = flat if flat.dtype is torch.float64 else flat.float()
    nans = int(torch.isnan(wide).sum())
    infs = int(torch.isinf(wide).sum())
    result.update(count=count, nans=nans, infs=infs, zeros=int((wide == 0).sum()))
    good = wide[torch.isfinite(wide)] if nans or infs else wide
    result["norm"] = _number(float(torch.linalg.vector_norm(wide.double() if count < 10_000_000 else wide)))
    if good.numel() == 0:
        return
    result["mean"] = float(good.mean())
    result["std"] = float(good.std(correction=0))
    low = torch.where(torch.isfinite(wide), wide, torch.inf) if nans or infs else wide
    high = torch.where(torch.isfinite(wide), wide, -torch.inf) if nans or infs else wide
    shape = list(values.shape)
    first, last = int(low.argmin()), int(high.argmax())
    result.update(minimum=float(low[first]), minimum_at=_where(first, shape))
    result.update(maximum=float(high[last]), maximum_at=_where(last, shape))


def _histogram(values: torch.Tensor, result: dict[str, Any], bins: int) -> None:
    flat = values.reshape(-1).float()
    flat = flat[torch.isfinite(flat)]
    if flat.numel() == 0 or bins < 1:
        return
    top = float(flat.abs().max())
    if top == 0.0:
        top = 1.0
    bins = min(bins, 201)
    counts = torch.histc(flat.cpu(), bins=bins, min=-top, max=top)
    result["histogram"] = [int(n) for n in counts.tolist()]
    result["edges"] = [-top + 2 * top * i / bins for i in range(bins + 1)]


def _plane(values: torch.Tensor, index: list[int], columns: int) -> tuple[torch.Tensor, list[int]]:
    """The tensor as rows and columns: leading dimensions indexed, a vector folded into rows of the wanted width."""
    used: list[int] = []
    while values.dim() > 2:
        at = index[len(used)] if len(used) < len(index) else 0
        at = max(0, min(at, values.shape[0] - 1))
        used.append(at)
        values = values[at]
    if values.dim() == 2:
        return values, used
    flat = values.reshape(-1)
    if flat.numel() <= columns:
        return flat.reshape(1, -1), used
    return flat.reshape(1, -1), used


def _picture(values: torch.Tensor, request: dict[str, Any], result: dict[str, Any]) -> None:
    if values.numel() == 0:
        return
    rows, columns = max(1, int(request.get("rows") or 1)), max(1, int(request.get("columns") or 1))
    while rows * columns > _MAX_CELLS:
        rows = max(1, rows // 2)
        columns = max(1, columns // 2)
    plane, used = _plane(values, list(request.get("index") or ()), columns)
    height, width = plane.shape
    result.update(plane=[height, width], index=used)
    down, across = ceil(height / rows), ceil(width / columns)
    result["pooled"] = [down, across]
    grid = _pool(plane.float(), down, across, request.get("pool", "absmax"))
    result["grid"] = [[_number(value) for value in row] for row in grid.tolist()]
    tall, wide = request.get("values") or (0, 0)
    if tall and wide:
        top, left = request.get("values_at") or (0, 0)
        top, left = max(0, min(int(top), height - 1)), max(0, min(int(left), width - 1))
        tall = min(int(tall), height - top, _MAX_VALUES)
        wide = min(int(wide), width - left, _MAX_VALUES // max(tall, 1))
        block = plane[top : top + tall, left : left + wide].double()
        result["values"] = [[_number(value) for value in row] for row in block.tolist()]
        result["values_at"] = [top, left]


def _pool(plane: torch.Tensor, down: int, across: int, how: str) -> torch.Tensor:
    """Cells of `down` × `across` elements: the element of largest magnitude with its sign (NaN and Inf win), or the mean."""
    if down == 1 and across == 1:
        return plane
    height, width = plane.shape
    grown_height, grown_width = ceil(height / down) * down, ceil(width / across) * across
    padded = torch.nn.functional.pad(plane, (0, grown_width - width, 0, grown_height - height), value=0.0)
    cells = padded.reshape(grown_height // down, down, grown_width // across, across).transpose(1, 2).flatten(2)
    if how == "mean":
        filled = torch.nn.functional.pad(
            torch.ones_like(plane), (0, grown_width - width, 0, grown_height - height), value=0.0
        )
        counts = filled.reshape(grown_height // down, down, grown_width // across, across).transpose(1, 2).flatten(2)
        return cells.sum(-1) / counts.sum(-1)
    magnitude = torch.where(torch.isnan(cells), torch.inf, cells.abs())
    strongest = magnitude.argmax(-1, keepdim=True)
    picked = cells.gather(-1, strongest).squeeze(-1)
    return torch.where(torch.isnan(cells).any(-1), torch.nan, picked)
