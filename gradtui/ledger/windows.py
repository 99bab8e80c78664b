"""Accumulation windows: which backwards belong together, and whether their losses were averaged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from gradtui.ledger.state import BackwardRecord

Weighing = Literal["averaged", "summed", "unknown", ""]

_NEAR = 2.0
"""A divisor within this factor of N counts as N, and one up to four times N: the last, shorter window is often divided by the full N."""


def micro_batches(window: Iterable[BackwardRecord]) -> list[BackwardRecord]:
    """The largest group of backwards in a window that came from one line and reached the same parameters."""
    groups: dict[tuple[object, ...], list[BackwardRecord]] = {}
    for record in window:
        site = record.site
        where = (site.file, site.line) if site is not None else ("", record.loss)
        groups.setdefault((where, len(record.parameters), record.parameters[:1]), []).append(record)
    return max(groups.values(), key=len, default=[])


def _divided(members: list[BackwardRecord]) -> bool:
    """By about their number, or, for sums, by anything (the number of elements in the window, most likely)."""
    divisors = sorted(record.divisor for record in members)
    middle = divisors[len(divisors) // 2]
    if members[0].reduction == "sum":
        return middle > 1.0
    return middle > 1.0 and len(members) / _NEAR <= middle <= len(members) * _NEAR * 2


def weighing(window: tuple[BackwardRecord, ...], edited: bool) -> Weighing:
    """How the losses of one window were weighed; empty when no line contributed twice.

    `edited`: the gradients were changed by hand before the step (divided by N there, most likely).
    """
    members = micro_batches(window)
    if len(members) < 2:
        return ""
    if edited or _divided(members):
        return "averaged"
    if any(abs(record.divisor - 1.0) > 1e-6 for record in members):
        return ""
    if any(record.retain_graph for record in members[:-1]):
        return ""
    if all(record.reduction == "mean" for record in members):
        return "summed"
    return "unknown"
