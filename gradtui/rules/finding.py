"""A finding: what is wrong, where, which parameters, since when, on what evidence, and what to do. Frozen; shared by rules, report and screen."""

from __future__ import annotations

from typing import Literal

import msgspec

Severity = Literal["error", "warning", "info"]
Status = Literal["suspected", "confirmed", "withdrawn"]
FirstKind = Literal[
    "backward", "step", "zero_grad", "clip", "unscale", "scaler_step", "scaler_update", "scheduler", "end"
]


class Site(msgspec.Struct, frozen=True):
    """A line of the person's program."""

    file: str
    line: int
    function: str = ""
    source: str = ""
    """The line as written."""


class First(msgspec.Struct, frozen=True):
    """The call at which the fault first showed; `ordinal` counts calls of that kind in the process, from 1."""

    kind: FirstKind
    ordinal: int
    seq: int = 0
    """The event."""


class Evidence(msgspec.Struct, frozen=True):
    """A figure the finding was judged on, beside its threshold; both as shown to people."""

    what: str
    actual: str
    threshold: str = ""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One fault. Repeats are counted in it, never raised again."""

    rule: str
    severity: Severity
    status: Status
    message: str
    """One sentence: what happened, with names and numbers."""
    fix: str = ""
    """One sentence: the line to add, move or remove."""
    site: Site | None = None
    """The responsible call."""
    related: tuple[Site, ...] = ()
    """The calls it clashes with."""
    parameters: tuple[str, ...] = ()
    """Names, at most 200."""
    parameter_ids: tuple[int, ...] = ()
    parameter_count: int = 0
    first: First | None = None
    count: int = 1
    evidence: tuple[Evidence, ...] = ()
    process: int = 0
    seq: int = 0
    """Event that raised or last changed it."""
    cause: str = ""
    """Slug of the rule whose finding explains this one; such findings are folded under it."""
    key: str = ""
    """Identity within its rule: a later finding with the same rule, process and key replaces this one."""


encode_finding = msgspec.json.Encoder().encode
decode_finding = msgspec.json.Decoder(Finding).decode
