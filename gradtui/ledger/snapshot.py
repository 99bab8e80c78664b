"""A ledger to bytes and back, so that a client can start folding in the middle of a run. Runs nothing that the bytes hold."""

from __future__ import annotations

import zlib
from collections import deque
from typing import Any

import msgspec

from gradtui.errors import WireError
from gradtui.events import CallKind, CallSite, ProcessJoined
from gradtui.ledger.ledger import Ledger
from gradtui.ledger.state import (
    HISTORY,
    BackwardRecord,
    Clear,
    Counts,
    LineTally,
    OpenClosure,
    OptimizerState,
    ParameterState,
)

_FORMAT = 1
_MOST = 1 << 30
"""Bytes that a snapshot may unpack to; a longer one is refused."""


class _Image(msgspec.Struct, array_like=True):
    format: int
    seq: int
    process: ProcessJoined | None
    parameters: list[ParameterState]
    optimizers: list[OptimizerState]
    backwards: list[BackwardRecord]
    counts: Counts
    lines: dict[CallKind, list[LineTally]]
    open_backwards: dict[int, int]
    closures: list[OpenClosure]
    clip_places: dict[str, int]


def _plain(value: Any) -> Any:
    if isinstance(value, deque):
        return list(value)
    raise NotImplementedError


def _rich(kind: Any, value: Any) -> Any:
    return deque(value)


_encode = msgspec.msgpack.Encoder(enc_hook=_plain).encode
_decode = msgspec.msgpack.Decoder(_Image, dec_hook=_rich).decode


def snapshot(ledger: Ledger) -> bytes:
    """Everything the ledger knows."""
    image = _Image(
        _FORMAT,
        ledger.seq,
        ledger.process,
        list(ledger.parameters.values()),
        list(ledger.optimizers.values()),
        list(ledger.backwards.values()),
        ledger.counts,
        {kind: list(lines.values()) for kind, lines in ledger.lines.items()},
        ledger.open_backwards,
        list(ledger.closures.values()),
        ledger.clip_places,
    )
    return zlib.compress(_encode(image), 1)


def restore(data: bytes) -> Ledger:
    """The ledger as it was. Raises WireError when the bytes are no snapshot of this version."""
    try:
        stream = zlib.decompressobj()
        image = _decode(stream.decompress(data, _MOST))
        if not stream.eof:
            raise ValueError("it is cut short or too long")
        if image.format != _FORMAT:
            raise ValueError(f"snapshot of format {image.format}")
    except (zlib.error, msgspec.DecodeError, ValueError, TypeError) as error:
        raise WireError(f"not a snapshot of a ledger: {error}") from error
    _share_sites(image)
    ledger = Ledger()
    ledger.seq, ledger.process, ledger.counts = image.seq, image.process, image.counts
    ledger.parameters = {state.info.id: state for state in image.parameters}
    ledger.optimizers = {state.info.id: state for state in image.optimizers}
    ledger.backwards = {record.ordinal: record for record in image.backwards}
    ledger.lines |= {kind: {_key(t): t for t in lines} for kind, lines in image.lines.items()}
    ledger.open_backwards, ledger.clip_places = image.open_backwards, image.clip_places
    ledger.closures = {closure.call: closure for closure in image.closures}
    for state in image.parameters:
        state.history = deque(state.history, maxlen=HISTORY)
    for optimizer in image.optimizers:
        optimizer.windows = deque(optimizer.windows, maxlen=1000)
    return ledger


def _key(tally: LineTally) -> tuple[str, int]:
    return (tally.site.file, tally.site.line) if tally.site is not None else ("", 0)


def _share_sites(image: _Image) -> None:
    """Decoding makes a copy of a call site for every record that names it; keep one of each."""
    sites: dict[CallSite, CallSite] = {}
    clears: dict[int, Clear] = {}
    for p in image.parameters:
        for item in p.contributions:
            if item.site is not None:
                item.site = sites.setdefault(item.site, item.site)
        if p.cleared is not None:
            p.cleared = clears.setdefault(p.cleared.seq, p.cleared)
    for record in image.backwards:
        if record.site is not None:
            record.site = sites.setdefault(record.site, record.site)
