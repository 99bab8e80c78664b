"""Bytes to typed facts, for host and client. Refuses whatever does not fit the records in `events`; runs nothing of it."""

from __future__ import annotations

import dataclasses
import sys
from array import array
from typing import Any

import msgspec

from gradtui import events
from gradtui.errors import WireError
from gradtui.wire.encode import floats, ids, packet

_SIZES = {"d": 8, "I": 4, "f": 4, "q": 8, "B": 1, "b": 1, "?": 1}
_decode_json = msgspec.json.Decoder().decode

ORIGIN = tuple(field.name for field in dataclasses.fields(events.Origin))


def unpack(header: bytes, payload: bytes | memoryview) -> dict[str, Any]:
    """The header as a dict with its arrays in place, as lists. Raises WireError when they do not fit."""
    try:
        fields = _decode_json(header)
        shapes = fields.pop("@", ())
        offset = 0
        for path, typecode, count in shapes:
            size = _SIZES[typecode] * abs(count)
            chunk = bytes(payload[offset : offset + size])
            if len(chunk) != size:
                raise ValueError("payload too short")
            offset += size
            values: Any
            if typecode == "?":
                values = [byte != 0 for byte in chunk]
            else:
                numbers: array[Any] = array(typecode)
                numbers.frombytes(chunk)
                if sys.byteorder == "big":
                    numbers.byteswap()
                values = numbers.tolist()
            if count == -1:
                values = values[0]
            target = fields
            *outer, last = path.split(".")
            for key in outer:
                target = target.setdefault(key, {})
            target[last] = values
    except (ValueError, KeyError, TypeError, AttributeError, msgspec.DecodeError) as error:
        raise WireError(f"unreadable packet: {error}") from error
    return dict(fields)


def event_of(kind: str, fields: dict[str, Any]) -> events.Event:
    """The fact of class `kind` with these fields; unknown fields are ignored. Raises WireError when it does not fit."""
    cls = events.EVENTS.get(kind)
    if cls is None:
        raise WireError(f"unknown event {kind!r}")
    try:
        return msgspec.convert(fields, cls)
    except msgspec.ValidationError as error:
        raise WireError(f"{kind}: {error}") from error


_WIDE_FLOATS = {"incoming", "before", "after", "norms", "ratios"}
_WIDE_FLAGS = {"finite"}
_WIDE_IDS = {"parameters", "used", "moved", "frozen", "nonfinite"}


def event_packet(event: events.Event) -> tuple[bytes, bytes]:
    """(header, payload) of an event as a timeline keeps it: everything but its origin's seq, process and site."""
    arrays: dict[str, Any] = {}

    def plain(record: Any, prefix: str) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for field in dataclasses.fields(record):
            name, value = field.name, getattr(record, field.name)
            if not prefix and name in ("seq", "process", "site"):
                continue
            if isinstance(value, tuple) and value and name in _WIDE_FLOATS:
                arrays[prefix + name] = floats(value)
            elif isinstance(value, tuple) and value and name in _WIDE_FLAGS:
                arrays[prefix + name] = bytes(value)
            elif isinstance(value, tuple) and value and name in _WIDE_IDS and isinstance(value[0], int):
                arrays[prefix + name] = ids(value)
            elif isinstance(value, events.Contributions):
                inner = plain(value, "contributions.")
                out[name] = {key: item for key, item in inner.items() if item}
            else:
                out[name] = msgspec.to_builtins(value)
        return out

    raw = packet(plain(event, ""), arrays)
    head = int.from_bytes(raw[4:8], "little")
    return raw[8 : 8 + head], raw[8 + head :]
