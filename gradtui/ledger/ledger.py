"""Folds the events of one process into the state of every gradient; pure, and bounded in memory however long the run."""

from __future__ import annotations

from collections.abc import Iterable

from gradtui import events as ev
from gradtui.events import CallKind, CallSite, Event, ParameterInfo
from gradtui.ledger.change import Change
from gradtui.ledger.landing import forget, land
from gradtui.ledger.state import (
    BackwardRecord,
    Clear,
    Counts,
    LineTally,
    OpenClosure,
    OptimizerState,
    ParameterState,
)
from gradtui.ledger.windows import weighing

KEPT_BACKWARDS = 4096
"""Newest backwards whose fate is followed."""
KEPT_PARAMETERS = 50_000
"""Leaves kept; beyond it the longest unseen that no optimizer owns are forgotten (attacks make a new input each time)."""
KEPT_LINES = 200
"""Lines tallied for each kind of call."""


class Ledger:
    """The state of one process's gradients after the events applied so far."""

    def __init__(self) -> None:
        self.parameters: dict[int, ParameterState] = {}
        self.optimizers: dict[int, OptimizerState] = {}
        self.backwards: dict[int, BackwardRecord] = {}
        """By ordinal, oldest first, at most KEPT_BACKWARDS."""
        self.counts = Counts()
        self.lines: dict[CallKind, dict[tuple[str, int], LineTally]] = {kind: {} for kind in ev.CALL_KINDS}
        """Which lines made which calls."""
        self.clip_places: dict[str, int] = {}
        """How often clips came `before step`, `after step` or `inside the window`."""
        self.process: ev.ProcessJoined | None = None
        self.seq = 0
        """Of the last event applied."""
        self.open_backwards: dict[int, int] = {}
        """Ordinals by call id of backwards that have begun and not ended."""
        self.closures: dict[int, OpenClosure] = {}
        """Steps with a closure in progress, by call id."""
        self._owners: dict[tuple[int, ...], tuple[int, ...]] = {}
        self.last_ids: tuple[int, ...] = ()
        """Of the last contributions, so that backwards that reach the same parameters share one tuple."""

    # -- the fold -------------------------------------------------------------------------------------------------

    def apply(self, event: Event) -> Change:
        """Fold one event and tell what it changed. Events come in the order of their `seq`."""
        change = Change(event)
        self.seq = event.seq
        match event:
            case ev.BackwardEnded():
                self._backward_ended(event, change)
            case ev.OptimizerStepped():
                self._stepped(event, change)
            case ev.GradsZeroed():
                self._zeroed(event, change)
            case ev.GradsClipped():
                self._clipped(event)
            case ev.GradsUnscaled():
                self._unscaled(event)
            case ev.ScalerStepped():
                self._scaler_stepped(event, change)
            case ev.ScalerUpdated():
                self._count("scaler_update", event)
            case ev.SchedulerStepped():
                self._scheduler_stepped(event, change)
            case ev.GradsEdited():
                self._grads_edited(event)
            case ev.ParametersEdited():
                self._parameters_edited(event, change)
            case ev.BackwardStarted():
                self._backward_started(event, change)
            case ev.BackwardProgressed():
                change.record = self._record(event)
                land(self, event, event.contributions, change.record, change)
            case ev.OptimizerStepStarted():
                self._step_started(event)
            case ev.ParametersSeen():
                self._parameters_seen(event)
            case ev.OptimizerSeen():
                self._optimizer_seen(event)
            case ev.ProcessJoined():
                self.process = event
            case ev.CallRaised():
                self._raised(event, change)
            case ev.ProcessEnded() | ev.GraphKept() | ev.WarningSeen() | ev.NonfiniteOrigin() | ev.ProbeFailed():
                pass
        return change

    def parameter(self, number: int) -> ParameterState:
        """The state of one parameter; a stand-in with an invented name if the probe never described it."""
        state = self.parameters.get(number)
        if state is None:
            info = ParameterInfo(id=number, name=f"parameter {number}", shape=(), dtype="", device="")
            state = self.parameters[number] = ParameterState(info)
        return state

    def names(self, numbers: Iterable[int]) -> tuple[str, ...]:
        """Names of parameters by id."""
        return tuple(self.parameter(number).info.name for number in numbers)

    def snapshot(self) -> bytes:
        """Everything known, as bytes; `Ledger.restore` brings it back and the fold can go on from there."""
        from gradtui.ledger.snapshot import snapshot

        return snapshot(self)

    @staticmethod
    def restore(data: bytes) -> Ledger:
        """The ledger whose snapshot this is. Raises WireError when it is none."""
        from gradtui.ledger.snapshot import restore

        return restore(data)

    # -- what exists ----------------------------------------------------------------------------------------------

    def _parameters_seen(self, event: ev.ParametersSeen) -> None:
        for info in event.parameters:
            known = self.parameters.get(info.id)
            if known is None:
                owners = tuple(o.info.id for o in self.optimizers.values() if info.id in o.info.parameters)
                self.parameters[info.id] = ParameterState(info, owners=owners)
            else:
                known.info = info
        if len(self.parameters) > KEPT_PARAMETERS:
            self._forget_parameters()

    def _forget_parameters(self) -> None:
        spare = [(p.last_backward, number) for number, p in self.parameters.items() if not p.owners]
        spare.sort()
        for _, number in spare[: len(self.parameters) - KEPT_PARAMETERS * 4 // 5]:
            del self.parameters[number]
        self._owners.clear()

    def _optimizer_seen(self, event: ev.OptimizerSeen) -> None:
        info = event.optimizer
        known = self.optimizers.get(info.id)
        if known is None:
            known = self.optimizers[info.id] = OptimizerState(info, seen=event.seq)
        before = known.info.parameters
        known.info = info
        known.lr = info.lr or known.lr
        self._owners.clear()
        for number in {*before, *info.parameters}:
            state = self.parameter(number)
            others = tuple(owner for owner in state.owners if owner != info.id)
            state.owners = (*others, info.id) if number in info.parameters else others

    def owners_of(self, numbers: tuple[int, ...]) -> tuple[int, ...]:
        """Optimizers that own some of these parameters."""
        known = self._owners.get(numbers)
        if known is None:
            if len(self._owners) > 256:
                self._owners.clear()
            found = {owner: None for number in numbers for owner in self.parameter(number).owners}
            known = self._owners[numbers] = tuple(found)
        return known

    def _count(self, kind: CallKind, event: Event, detail: str = "") -> None:
        setattr(self.counts, kind, getattr(self.counts, kind) + 1)
        site = event.site
        key = (site.file, site.line) if site is not None else ("", 0)
        lines = self.lines[kind]
        tally = lines.get(key)
        if tally is None:
            if len(lines) >= KEPT_LINES:
                return
            tally = lines[key] = LineTally(site, first=event.ordinal)
        tally.count += 1
        if detail and (detail in tally.detail or len(tally.detail) < 40):
            tally.detail[detail] = tally.detail.get(detail, 0) + 1

    # -- backwards ------------------------------------------------------------------------------------------------

    def _record(self, event: ev.BackwardStarted | ev.BackwardProgressed | ev.BackwardEnded) -> BackwardRecord:
        ordinal = self.open_backwards.get(event.call) if event.call else None
        if ordinal is not None and ordinal in self.backwards:
            return self.backwards[ordinal]
        loss = (
            event.site.expression
            if isinstance(event, ev.BackwardProgressed) and event.site
            else getattr(event, "loss", "")
        )
        ordinal = event.ordinal or self.counts.backward + len(self.open_backwards) + 1
        record = BackwardRecord(event.seq, event.call, ordinal, event.site, loss, parent=event.parent)
        if not isinstance(event, ev.BackwardEnded):
            self.open_backwards[event.call] = ordinal
        self.backwards[ordinal] = record
        if len(self.backwards) > KEPT_BACKWARDS:
            del self.backwards[next(iter(self.backwards))]
        return record

    def _backward_started(self, event: ev.BackwardStarted, change: Change) -> None:
        change.record = record = self._record(event)
        record.value = event.value

    def _backward_ended(self, event: ev.BackwardEnded, change: Change) -> None:
        closure = self._closure_around(event)
        if closure is not None:
            self._new_evaluation(closure, event, change)
        change.record = record = self._record(event)
        self.open_backwards.pop(event.call, None)
        record.loss, record.value, record.value_finite = event.loss, event.value, event.value_finite
        record.scale, record.divisor, record.reduction = event.scale, event.divisor, event.reduction
        record.root, record.training, record.nodes = event.root, event.training, event.nodes
        record.retain_graph, record.create_graph = event.retain_graph, event.create_graph
        record.eval_modules, record.reached = event.eval_modules, event.reached
        record.elements, record.unsynced = event.elements, event.unsynced
        land(self, event, event.contributions, record, change)
        self._count("backward", event, event.loss)

    def _closure_around(self, event: ev.BackwardEnded | ev.GradsZeroed) -> OpenClosure | None:
        if not self.closures:
            return None
        return self.closures.get(event.parent) or (next(reversed(self.closures.values())) if not event.parent else None)

    def _new_evaluation(self, closure: OpenClosure, event: ev.BackwardEnded, change: Change) -> None:
        """Within step(closure), the next evaluation shows that the step has read what the last one left."""
        if event.evaluation and closure.evaluation and event.evaluation != closure.evaluation:
            self._read_by_closure(closure, event.seq, change)
        closure.evaluation = event.evaluation

    def _read_by_closure(self, closure: OpenClosure, seq: int, change: Change) -> None:
        optimizer = self.optimizers.get(closure.optimizer)
        if optimizer is None:
            return
        waiting = tuple(n for n in optimizer.info.parameters if (p := self.parameters.get(n)) is not None and p.waiting)
        self._consume(waiting, seq, closure.optimizer, change, closure=True)
        optimizer.window.clear()

    def _raised(self, event: ev.CallRaised, change: Change) -> None:
        ordinal = self.open_backwards.pop(event.call, None)
        change.record = self.backwards.get(ordinal) if ordinal is not None else None
        self.closures.pop(event.call, None)
        self._count(event.kind, event)

    # -- steps ----------------------------------------------------------------------------------------------------

    def _step_started(self, event: ev.OptimizerStepStarted) -> None:
        if event.closure:
            self._optimizer(event.optimizer).site = event.site
            self.closures[event.call] = OpenClosure(event.call, event.optimizer, event.seq)
            if len(self.closures) > 64:
                del self.closures[next(iter(self.closures))]

    def _stepped(self, event: ev.OptimizerStepped, change: Change) -> None:
        self.closures.pop(event.call, None)
        optimizer = self._optimizer(event.optimizer)
        change.optimizer = optimizer
        backwards = self.backwards
        change.window_size = len(optimizer.window)
        change.window = tuple(backwards[n] for n in optimizer.window if n in backwards)
        optimizer.windows.append(len(optimizer.window))
        optimizer.window = []
        if len(change.window) > 1:
            weighed = weighing(change.window, self._edited(event.used))
            optimizer.averaged[weighed] = optimizer.averaged.get(weighed, 0) + (weighed != "")
            change.weighing = weighed
        self._consume(event.used, event.seq, event.optimizer, change, closure=event.closure)
        optimizer.steps += 1
        optimizer.scaled += event.by_scaler
        optimizer.by_hand += len(change.by_hand) > 0
        optimizer.empty_steps += len(change.zeros) == len(event.used)
        optimizer.last_step, optimizer.site = event.seq, event.site
        optimizer.lr = event.lr or optimizer.lr
        optimizer.skipped = 0
        self._count("step", event, optimizer.info.name)

    def _edited(self, numbers: tuple[int, ...]) -> bool:
        """One of these gradients was changed by hand since it was last cleared."""
        return any(p is not None and p.edited for p in map(self.parameters.get, numbers))

    def _optimizer(self, number: int) -> OptimizerState:
        known = self.optimizers.get(number)
        if known is None:
            info = ev.OptimizerInfo(id=number, name=f"optimizer {number}", kind="", parameters=())
            known = self.optimizers[number] = OptimizerState(info)
        return known

    def _consume(
        self, numbers: tuple[int, ...], seq: int, optimizer: int, change: Change, *, closure: bool = False
    ) -> None:
        """A step (optimizer 0: a hand-written update) uses these gradients."""
        consumed: list[int] = []
        stale: list[int] = []
        repeated: list[int] = []
        zeros: list[int] = []
        by_hand: list[int] = []
        scaled: list[int] = []
        clipped: list[int] = []
        unclipped: list[int] = []
        clips = self.counts.clip > 0
        by_scaler = isinstance(change.event, ev.OptimizerStepped) and change.event.by_scaler
        for number in numbers:
            p = self.parameters.get(number) or self.parameter(number)
            if p.state == "zero" and not p.waiting:
                zeros.append(number)
                continue
            if p.own_making:
                by_hand.append(number)
                p.own_making = 0
            if p.waiting:
                consumed.append(number)
                if clips:
                    (clipped if p.clipped > p.last_step else unclipped).append(number)
                if p.stale:
                    stale.append(number)
                    p.stale = 0
            elif optimizer in p.stepped_by and p.edited <= p.last_step and not closure:
                repeated.append(number)
            if p.unused:
                self._mark_used(p, seq, optimizer)
            if p.scale != 1.0:
                if not by_scaler:
                    scaled.append(number)
                p.scale = 1.0
            p.waiting = p.unscaled = 0
            p.state = "spent"
            p.stepped_by = p.stepped_by if optimizer in p.stepped_by else (*p.stepped_by, optimizer)
            p.spent_by = optimizer
            p.steps_since_clear += 1
            p.steps += 1
            p.last_step = seq
        change.consumed += tuple(consumed)
        change.stale += tuple(stale)
        change.repeated += tuple(repeated)
        change.zeros += tuple(zeros)
        change.by_hand += tuple(by_hand)
        change.scaled += tuple(scaled)
        change.clipped += tuple(clipped)
        change.unclipped += tuple(unclipped)

    def _mark_used(self, p: ParameterState, seq: int, optimizer: int) -> None:
        backwards = self.backwards
        for item in p.contributions[-p.unused :]:
            item.used_by = seq
            record = backwards.get(item.backward)
            if record is not None:
                record.used += 1
                if not record.used_by:
                    record.used_by, record.used_by_optimizer = seq, optimizer
        p.unused = 0

    def _scaler_stepped(self, event: ev.ScalerStepped, change: Change) -> None:
        change.optimizer = optimizer = self._optimizer(event.optimizer)
        self._count("scaler_step", event, optimizer.info.name)
        if event.ran:
            optimizer.skipped = 0
            return
        optimizer.skipped += 1
        for number in optimizer.info.parameters:
            p = self.parameters.get(number)
            if p is not None and p.unused:
                self._mark_used(p, event.seq, event.optimizer)

    def _scheduler_stepped(self, event: ev.SchedulerStepped, change: Change) -> None:
        self._count("scheduler", event, event.kind)
        optimizer = self.optimizers.get(event.optimizer)
        if optimizer is not None:
            change.optimizer = optimizer
            optimizer.lr = event.after or optimizer.lr

    # -- clears and edits -----------------------------------------------------------------------------------------

    def _zeroed(self, event: ev.GradsZeroed, change: Change) -> None:
        if event.by == "hand":
            self.counts.zero_grad_by_hand += 1
        else:
            self._count("zero_grad", event, event.owner)
        if not event.parameters:
            return
        closure = self._closure_around(event)
        if closure is not None:
            self._read_by_closure(closure, closure.seq, change)
        self._clear(event, change)
        self._leave_windows(event)

    def _clear(self, event: ev.GradsZeroed, change: Change) -> None:
        how: str = "zeros" if event.how == "zeros" else "none"
        by = "backward" if event.parent in self.open_backwards else event.by
        clear = Clear(event.seq, event.site, how, by, event.owner)  # type: ignore[arg-type]
        fresh: list[int] = []
        touched: dict[int, BackwardRecord] = {}
        for number in event.parameters:
            p = self.parameters.get(number) or self.parameter(number)
            if p.unused:
                fresh.append(number)
                change.poisoned_cleared |= not p.finite
                change.clipped_cleared |= p.clipped > 0
                self._mark_cleared(p, event, touched)
            forget(p)
            p.state = "zero" if how == "zeros" else "none"
            p.cleared = clear
        change.fresh_cleared = tuple(fresh)
        if touched:
            self._settle(touched, change)

    def _mark_cleared(self, p: ParameterState, event: ev.GradsZeroed, touched: dict[int, BackwardRecord]) -> None:
        for item in p.contributions[-p.unused :]:
            record = self.backwards.get(item.backward)
            if record is None:
                continue
            record.cleared += 1
            record.cleared_owned += bool(p.owners)
            touched[record.ordinal] = record
            if not record.first_clear[0]:
                ordinal = event.ordinal or self.counts.zero_grad + self.counts.zero_grad_by_hand
                record.first_clear, record.first_clear_site = (event.seq, ordinal), event.site

    @staticmethod
    def _settle(touched: dict[int, BackwardRecord], change: Change) -> None:
        discarded = []
        wasted = []
        for record in touched.values():
            over = record.cleared_owned >= record.owned if record.owned else record.pending <= 0
            if record.used == 0 and over:
                discarded.append(record)
            elif record.used and record.pending <= 0:
                wasted.append(record)
        change.discarded, change.wasted = tuple(discarded), tuple(wasted)

    def _leave_windows(self, event: ev.GradsZeroed) -> None:
        """Backwards whose gradients are gone leave the windows they were in."""
        for owner in self.owners_of(event.parameters):
            optimizer = self.optimizers[owner]
            if not optimizer.window:
                continue
            if event.optimizer == owner or not any(
                p.waiting for n in optimizer.info.parameters if (p := self.parameters.get(n)) is not None
            ):
                optimizer.window.clear()

    def _clipped(self, event: ev.GradsClipped) -> None:
        self._count("clip", event, f"{event.method} {event.limit:g}")
        waiting = any(p is not None and p.waiting for p in map(self.parameters.get, event.parameters))
        place = "before step" if waiting else "after step"
        self.clip_places[place] = self.clip_places.get(place, 0) + 1
        for index, number in enumerate(event.parameters):
            p = self.parameter(number)
            p.clipped = event.seq
            if index < len(event.after):
                p.norm = event.after[index]

    def _unscaled(self, event: ev.GradsUnscaled) -> None:
        self._count("unscale", event)
        for index, number in enumerate(event.parameters):
            p = self.parameter(number)
            p.scale, p.unscaled = 1.0, event.seq
            for item in p.contributions:
                item.scale = 1.0
            if index < len(event.after):
                p.norm = event.after[index]

    def _grads_edited(self, event: ev.GradsEdited) -> None:
        for index, number in enumerate(event.parameters):
            p = self.parameter(number)
            p.edited = event.seq
            if event.how != "scaled":
                p.own_making = event.seq
            if index < len(event.after):
                p.norm = event.after[index]
            if index < len(event.finite):
                p.finite = event.finite[index]
            if p.state in ("none", "zero"):
                p.state = "fresh"

    def _parameters_edited(self, event: ev.ParametersEdited, change: Change) -> None:
        self.counts.parameters_edited += 1
        if event.rebound or event.parent in self.open_backwards:
            return
        inside: set[int] = set()
        for closure in self.closures.values():
            optimizer = self.optimizers.get(closure.optimizer)
            owned = optimizer.info.parameters if optimizer else ()
            if not set(owned).isdisjoint(event.parameters):
                self._read_by_closure(closure, event.seq, change)
            inside.update(owned)
        by_hand: list[int] = []
        for number in event.parameters:
            p = self.parameter(number)
            if number in inside or not p.unused:
                continue
            if p.owners:
                self._mark_used(p, event.seq, 0)
            else:
                by_hand.append(number)
        self._consume(tuple(by_hand), event.seq, 0, change)


def place(site: CallSite | None) -> tuple[str, int]:
    """(file, line) of a call site; ("", 0) without one."""
    return (site.file, site.line) if site is not None else ("", 0)
