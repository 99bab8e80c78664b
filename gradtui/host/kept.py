"""A fact that a probe tells many times with other figures: decoded once, then made anew from those. Exact in event and in header."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, NamedTuple

from gradtui.events import CallSite, Event


class Figures(NamedTuple):
    """What differs from one time to the next."""

    call: int
    parent: int
    ordinal: int
    time: float
    duration: float
    value: float


_FIGURES = frozenset(Figures._fields)


class Kept:
    """One such fact."""

    __slots__ = ("_fields", "_rest", "_valued", "event", "header", "kind", "number", "payload", "site")

    def __init__(
        self, kind: str, event: Event, header: bytes, payload: bytes, number: int | None, site: CallSite | None
    ) -> None:
        self.kind = kind
        self.payload = payload
        self.number = number
        """Of the site in the run."""
        self.site = site
        self._fields: dict[str, Any] = {
            field.name: getattr(event, field.name) for field in dataclasses.fields(event) if field.name != "seq"
        }
        self._valued = self._fields.get("value") is not None
        self.header = header
        self._rest = b""
        self.event = event

    def event_at(self, seq: int, figures: Figures) -> Event:
        """The fact at that place in the run."""
        fields = self._fields
        fields["call"], fields["parent"], fields["ordinal"], fields["time"], fields["duration"], value = figures
        if self._valued:
            fields["value"] = value
        return self.event.__class__(seq=seq, **fields)

    def header_at(self, figures: Figures) -> bytes:
        """The header a packet of its own would have had."""
        if not self._rest:
            members = {
                key: value
                for key, value in json.loads(self.header.decode("utf-8", "surrogatepass")).items()
                if key not in _FIGURES and key != "keep"
            }
            self._rest = (
                b","
                + json.dumps(members, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")[1:]
            )
        call, parent, ordinal, time, duration, value = figures
        figured = f'{{"call":{call},"parent":{parent},"ordinal":{ordinal},"time":{time!r},"duration":{duration!r}'
        return (f'{figured},"value":{value!r}' if self._valued else figured).encode() + self._rest
