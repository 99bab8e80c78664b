"""An event as one line of the timeline: what ran, on what, what it did. Events that only announce others have no line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gradtui import events as facts
from gradtui.ledger.state import OptimizerState
from gradtui.tui import figures
from gradtui.tui.view import EventRow

KEPT_IDS = 10_000
_WORDS = {
    "BackwardEnded": "backward",
    "OptimizerStepped": "step",
    "GradsZeroed": "zero_grad",
    "GradsClipped": "clip",
    "GradsUnscaled": "unscale",
    "ScalerStepped": "scaler.step",
    "ScalerUpdated": "scaler.update",
    "SchedulerStepped": "scheduler",
    "GradsEdited": "grad edited",
    "ParametersEdited": "update",
    "CallRaised": "raised",
    "WarningSeen": "torch warns",
    "NonfiniteOrigin": "first nan",
    "ProbeFailed": "probe failed",
    "ProcessJoined": "joined",
    "ProcessEnded": "ended",
}
_MARKS = {
    "BackwardEnded": "w0",
    "OptimizerStepped": "w2",
    "GradsZeroed": "w1",
    "CallRaised": "error",
    "WarningSeen": "warning",
    "NonfiniteOrigin": "error",
    "ProbeFailed": "warning",
}


def row_of(event: facts.Event, optimizers: Mapping[int, OptimizerState]) -> EventRow | None:
    """The event's line; None for events that have none."""
    kind = type(event).__name__
    if kind not in _WORDS:
        return None
    site = event.site
    row = EventRow(
        seq=event.seq,
        process=event.process,
        kind=kind,
        mark=_MARKS.get(kind, "w3" if kind in facts.CALL_OF else "dim"),
        what=_WORDS[kind],
        ordinal=event.ordinal,
        detail=_detail(event, optimizers),
        file=site.file if site else "",
        line=site.line if site else 0,
        duration=event.duration,
        depth=1 if event.parent else 0,
        parameters=frozenset(_touched(event)[:KEPT_IDS]),
    )
    if isinstance(event, facts.GradsZeroed) and event.by == "hand":
        return replace(row, what="zero by hand")
    return row


def _touched(event: facts.Event) -> tuple[int, ...]:
    match event:
        case facts.BackwardEnded() | facts.BackwardProgressed():
            return event.contributions.parameters
        case facts.GradsZeroed() | facts.GradsClipped() | facts.GradsUnscaled() | facts.GradsEdited():
            return event.parameters
        case facts.ParametersEdited():
            return event.parameters
        case facts.OptimizerStepped():
            return event.used
        case _:
            return ()


def _detail(event: facts.Event, optimizers: Mapping[int, OptimizerState]) -> str:
    match event:
        case facts.BackwardEnded():
            return _backward(event)
        case facts.OptimizerStepped():
            return f"{_optimizer(event.optimizer, optimizers)}  {_many(len(event.used), 'grad')}"
        case facts.GradsZeroed():
            return f"{event.owner or 'by hand'}  {_cleared(event)}"
        case facts.GradsClipped():
            return _clipped(event)
        case facts.GradsUnscaled():
            found = "  found inf" if event.found_inf else ""
            return f"{_optimizer(event.optimizer, optimizers)}  / {figures.short(event.scale)}{found}"
        case facts.ScalerStepped():
            return f"{_optimizer(event.optimizer, optimizers)}  {'ran' if event.ran else 'skipped'}"
        case facts.ScalerUpdated():
            return f"{figures.short(event.before)} → {figures.short(event.after)}"
        case facts.SchedulerStepped():
            return f"{event.kind}  lr {_rates(event.before)} → {_rates(event.after)}"
        case _:
            return _rest(event)


def _rest(event: facts.Event) -> str:
    match event:
        case facts.GradsEdited():
            factor = f" by {figures.short(event.factor)}" if event.how == "scaled" else ""
            return f"{event.how}{factor}  {_many(len(event.parameters), 'grad')}"
        case facts.ParametersEdited():
            return f"{_many(len(event.parameters), 'parameter')}  {'inside the call' if event.parent else 'by hand'}"
        case facts.CallRaised():
            return f"{event.kind}: {event.error}: {event.message}"
        case facts.WarningSeen():
            return event.message
        case facts.NonfiniteOrigin():
            return f"{event.op} {event.module}"
        case facts.ProbeFailed():
            return f"{event.hook}: {event.error}"
        case facts.ProcessJoined():
            return f"process {event.process}  pid {event.pid}  torch {event.torch}"
        case facts.ProcessEnded():
            return f"process {event.process}"
        case _:
            return ""


def _backward(event: facts.BackwardEnded) -> str:
    value = f" = {figures.short(event.value)}" if event.value is not None else ""
    writes = len(event.contributions.parameters)
    return f"{event.loss}{value}  {_many(writes, 'grad')}"


def _cleared(event: facts.GradsZeroed) -> str:
    if event.how == "nothing":
        return "nothing to clear"
    return f"{_many(len(event.parameters), 'grad')} → {'None' if event.how == 'none' else '0'}"


def _clipped(event: facts.GradsClipped) -> str:
    if event.method == "value":
        return f"to ±{figures.short(event.limit)}  {_many(len(event.parameters), 'grad')}"
    active = "" if event.norm > event.limit else "  (inactive)"
    return f"norm {figures.short(event.norm)}, max {figures.short(event.limit)}{active}"


def _optimizer(id: int, optimizers: Mapping[int, OptimizerState]) -> str:
    state = optimizers.get(id)
    return state.info.name if state else f"optimizer {id}"


def _rates(rates: tuple[float, ...]) -> str:
    return "/".join(figures.short(rate) for rate in rates[:3]) or "?"


def _many(number: int, noun: str) -> str:
    return f"{figures.count(number)} {noun}{'' if number == 1 else 's'}"
