"""The gradient control summary: what a run shows about how its program handles gradients. Inferred, never declared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import PurePath

import msgspec

from gradtui.events import CALL_KINDS, CallSite
from gradtui.ledger.ledger import Ledger
from gradtui.ledger.state import LineTally, OptimizerState


class CallLine(msgspec.Struct, frozen=True):
    """One line that makes calls of one kind."""

    kind: str
    file: str
    line: int
    function: str
    source: str
    count: int
    detail: str = ""
    """What it was made on, or with: an optimizer's name, a clip limit, a loss."""


class OptimizerLine(msgspec.Struct, frozen=True):
    """One optimizer and how it is used."""

    name: str
    kind: str
    owns: int
    """Parameters in its groups."""
    roots: tuple[str, ...]
    """Models they belong to."""
    lr: tuple[float, ...]
    steps: int
    window: int
    """Backwards that make one step, most often; 0 when it never stepped."""
    windows: tuple[tuple[int, int], ...]
    """(size, how often), most frequent first, at most five."""
    averaged: str
    """`averaged`, `summed`, `unknown`; empty when windows hold one backward from each line."""
    scaled: bool
    """A GradScaler makes its steps."""
    by_hand: bool = False
    """The program puts gradients of its own making into `.grad` before the step."""


class ControlSummary(msgspec.Struct, frozen=True):
    """How one process controls its gradients."""

    process: int
    calls: tuple[CallLine, ...]
    optimizers: tuple[OptimizerLine, ...]
    by_hand: int
    """Hand-written updates seen."""
    cleared_by_hand: int
    accumulate: int
    """Backwards from one line that make a step (1: no accumulation; 0: no step was seen)."""
    averaged: str
    amp: bool
    clip: str
    """`norm 1`, `value 0.5`; empty without clipping."""
    clip_place: str
    """`before step`, `after step`, `inside the window`, empty without clipping."""
    verdict: str


def summarise(ledger: Ledger, process: int = 0) -> ControlSummary:
    """What this ledger's run shows."""
    optimizers = tuple(_optimizer(state, ledger) for state in _grouped(ledger))
    calls = tuple(line for kind in CALL_KINDS for line in _lines(kind, ledger.lines[kind].values()))
    clip = next((line.detail for line in calls if line.kind == "clip"), "")
    counts = ledger.counts
    summary = ControlSummary(
        process=process,
        calls=calls,
        optimizers=optimizers,
        by_hand=counts.parameters_edited,
        cleared_by_hand=counts.zero_grad_by_hand,
        accumulate=max((o.window for o in optimizers if o.averaged or o.window == 1), default=min(1, counts.step)),
        averaged=next((o.averaged for o in optimizers if o.averaged), ""),
        amp=any(o.scaled for o in optimizers) or counts.scaler_step > 0 or counts.scaler_update > 0,
        clip=clip,
        clip_place=_clip_place(ledger) if clip else "",
        verdict="",
    )
    return msgspec.structs.replace(summary, verdict=_verdict(summary, ledger))


def _grouped(ledger: Ledger) -> list[OptimizerState]:
    """Every optimizer; a hundred made in one go (one a parameter) are represented by the first."""
    seen: dict[tuple[str, str], OptimizerState] = {}
    for state in ledger.optimizers.values():
        where = f"{state.site.file}:{state.site.line}" if state.site is not None else str(state.info.id)
        crowd = len(ledger.optimizers) > 8
        seen.setdefault((state.info.kind, where) if crowd else (state.info.name, str(state.info.id)), state)
    return list(seen.values())


def _optimizer(state: OptimizerState, ledger: Ledger) -> OptimizerLine:
    sizes = Counter(size for size in state.windows if size)
    roots = dict.fromkeys(
        p.info.root or p.info.name for n in state.info.parameters[:2000] if (p := ledger.parameters.get(n)) is not None
    )
    weighed = max(state.averaged, key=lambda name: state.averaged[name]) if any(state.averaged.values()) else ""
    return OptimizerLine(
        name=state.info.name,
        kind=state.info.kind,
        owns=len(state.info.parameters),
        roots=tuple(roots)[:4],
        lr=state.lr,
        steps=state.steps,
        window=sizes.most_common(1)[0][0] if sizes else 0,
        windows=tuple(sizes.most_common(5)),
        averaged=weighed,
        scaled=state.scaled > 0,
        by_hand=state.by_hand > 0,
    )


def _lines(kind: str, tallies: Iterable[LineTally]) -> list[CallLine]:
    found = []
    for tally in tallies:
        site = tally.site
        details = sorted(tally.detail, key=lambda name: -tally.detail[name])
        detail = ", ".join(details[:3]) + ("…" if len(details) > 3 else "")
        if site is None:
            found.append(CallLine(kind, "", 0, "", "", tally.count, detail))
        else:
            found.append(CallLine(kind, site.file, site.line, site.function, site.source, tally.count, detail))
    return sorted(found, key=lambda line: -line.count)


def _clip_place(ledger: Ledger) -> str:
    places = ledger.clip_places
    return max(places, key=lambda place: places[place]) if places else ""


def _verdict(summary: ControlSummary, ledger: Ledger) -> str:
    """One sentence."""
    counts = ledger.counts
    if not counts.backward and not counts.step:
        return "No gradient call was seen."
    parts = [_how_it_steps(summary, ledger), _how_it_clears(summary, ledger)]
    if summary.clip:
        parts.append(f"gradients are clipped ({summary.clip}) {summary.clip_place}".rstrip())
    if summary.amp:
        parts.append("losses are scaled by a GradScaler")
    sentence = "; ".join(part for part in parts if part)
    return sentence[:1].upper() + sentence[1:] + "."


def _how_it_steps(summary: ControlSummary, ledger: Ledger) -> str:
    stepping = [o for o in summary.optimizers if o.steps]
    if not stepping:
        if summary.by_hand:
            return "parameters are updated by hand, without an optimizer"
        return "no step was ever taken" if summary.optimizers else "gradients are computed and never used for a step"
    if len(stepping) > 3:
        return f"{len(stepping)} optimizers step"
    if any(ledger.optimizers[n].info.reads_closure for n in ledger.optimizers):
        return f"`{stepping[0].name}` evaluates a closure within each step"
    said = []
    for o in stepping:
        how = {"averaged": ", averaged", "summed": ", summed and not averaged"}.get(o.averaged, "")
        if not o.window:
            said.append(
                f"`{o.name}` steps on gradients made by hand" if o.by_hand else f"`{o.name}` steps without gradients"
            )
        elif o.window == 1:
            said.append(f"each step of `{o.name}` uses one backward")
        else:
            said.append(f"each step of `{o.name}` uses {o.window} backwards{how}")
    return ", ".join(said)


def _how_it_clears(summary: ControlSummary, ledger: Ledger) -> str:
    lines = [line for line in summary.calls if line.kind == "zero_grad"]
    if lines:
        shown = " and ".join(f"{PurePath(line.file).name}:{line.line}" for line in lines[:3] if line.line)
        return f"gradients are cleared at {shown}" if shown else "gradients are cleared"
    if summary.cleared_by_hand:
        return "gradients are cleared by hand"
    return "gradients are never cleared"


def place_name(site: CallSite | None) -> str:
    """`train.py:35`."""
    return f"{PurePath(site.file).name}:{site.line}" if site is not None else ""
