"""Facts and replies to bytes, with the standard library alone: the probe sends with this; it decodes requests with it too.

A packet is a little-endian u32 length of the rest, a u32 length of the JSON header, the header, then the raw bytes of the
arrays that the header's `@` names: `[path, typecode, count]` each, in order, little-endian. Paths are dotted
(`contributions.incoming`). Typecodes are those of the `array` module plus `?` (one byte, 0 or 1); a count of -1
marks a single number that JSON cannot hold (NaN, Inf). A packet without a header (length 0) is a fact told before under a number
(`"keep"` in its header), again, with new figures: see `again`.
"""

from __future__ import annotations

import json
import struct
import sys
from array import array
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any

_LENGTHS = struct.Struct("<II")
_AGAIN = struct.Struct("<IIIIIIddd")
FIGURES = struct.Struct("<IIIIddd")
"""What a fact told again carries: its number, call, parent, ordinal, time, duration, value (0.0 where it has none)."""
_dumps = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
_dumps_finite = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode

_BIG = sys.byteorder == "big"

MAX_PACKET = 64 * 1024 * 1024
"""Bytes; a longer packet is a fault of the sender."""


def floats(values: Any) -> array[float]:
    """Doubles for the wire."""
    return array("d", values)


def ids(values: Any) -> array[int]:
    """Parameter ids for the wire."""
    return array("I", values)


def packet(header: dict[str, Any], arrays: Mapping[str, array[Any] | bytes | bytearray] | None = None) -> bytes:
    """One packet. `arrays` maps a dotted path to an `array` or, for booleans, to bytes of 0 and 1."""
    parts: list[bytes] = []
    shapes: list[tuple[str, str, int]] = []
    for key, value in header.items():
        if type(value) is float and not isfinite(value):
            shapes.append((key, "d", -1))
            parts.append(struct.pack("<d", value))
    if shapes:
        header = {key: value for key, value in header.items() if not (type(value) is float and not isfinite(value))}
    if arrays:
        for path, values in arrays.items():
            if isinstance(values, (bytes, bytearray)):
                shapes.append((path, "?", len(values)))
                parts.append(bytes(values))
            else:
                shapes.append((path, values.typecode, len(values)))
                if sys.byteorder == "big":
                    values = array(values.typecode, values)
                    values.byteswap()
                parts.append(values.tobytes())
    if shapes:
        header["@"] = shapes
    head = _dumps(header).encode("utf-8", "surrogatepass")
    size = len(head) + sum(map(len, parts))
    return b"".join((_LENGTHS.pack(size + 4, len(head)), head, *parts))


def body(fields: Mapping[str, Any]) -> str:
    """JSON members of these fields, each with a comma before it. Raises ValueError when a float is not finite."""
    return "," + text[1:-1] if len(text := _dumps_finite(fields)) > 2 else ""


def assembled(
    members: str,
    arrays: Mapping[str, array[Any] | bytes | float] | None = None,
    number: tuple[str, float] | None = None,
) -> bytes:
    """One packet from JSON members already written (`"t":"event",…`): the quick way for facts that differ in a few figures.

    `number` is one more member that may be NaN or Inf; so may be a float among the arrays.
    """
    parts: list[bytes] = []
    shapes = ""
    if number is not None:
        name, value = number
        if isfinite(value):
            members = f'{members},"{name}":{value!r}'
        else:
            shapes = f',["{name}","d",-1]'
            parts.append(struct.pack("<d", value))
    if arrays:
        for path, values in arrays.items():
            if isinstance(values, bytes):
                shapes += f',["{path}","?",{len(values)}]'
                parts.append(values)
            elif isinstance(values, float):
                shapes += f',["{path}","d",-1]'
                parts.append(struct.pack("<d", values))
            else:
                if _BIG:
                    values = array(values.typecode, values)
                    values.byteswap()
                shapes += f',["{path}","{values.typecode}",{len(values)}]'
                parts.append(values.tobytes())
    head = (f'{{{members},"@":[{shapes[1:]}]}}' if shapes else f"{{{members}}}").encode("utf-8", "surrogatepass")
    rest = b"".join(parts)
    return _LENGTHS.pack(len(head) + len(rest) + 4, len(head)) + head + rest


def again(number: int, call: int, parent: int, ordinal: int, time: float, duration: float, value: float) -> bytes:
    """The packet for a fact that is, but for these figures, the one kept under that number."""
    return _AGAIN.pack(FIGURES.size + 4, 0, number, call, parent, ordinal, time, duration, value)


class PacketReader:
    """Bytes in, whole packets out, whatever way the stream was cut."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        """The (header, payload) of each packet now complete. Raises ValueError on a length no packet has, after those before it."""
        buffer = self._buffer
        buffer += data
        start = 0
        try:
            while len(buffer) - start >= 8:
                size, head = _LENGTHS.unpack_from(buffer, start)
                if size > MAX_PACKET or head > size - 4:
                    raise ValueError(f"packet of {size} bytes with a header of {head}")
                end = start + 4 + size
                if len(buffer) < end:
                    break
                found = bytes(buffer[start + 8 : start + 8 + head]), bytes(buffer[start + 8 + head : end])
                start = end
                yield found
        finally:
            del buffer[:start]


def header_of(raw: bytes) -> dict[str, Any]:
    """The JSON header as a dict. Raises ValueError when it is not one."""
    value = json.loads(raw.decode("utf-8", "surrogatepass"))
    if not isinstance(value, dict):
        raise ValueError("a packet's header is not an object")
    return value
