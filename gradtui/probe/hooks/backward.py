"""Sees every backward: which leaves it wrote to, by how much, from which loss.

Leaves whose `.grad` was None need no hook: what is there afterwards is what was added. Only where a contribution lands on an
existing gradient a tensor hook takes the norm of what comes in, for that one backward.
"""

from __future__ import annotations

import sys
from math import isfinite, nan
from time import perf_counter
from types import FrameType
from typing import Any, Protocol

import torch

from gradtui.probe import measure
from gradtui.probe.apart import apart, needs_apart
from gradtui.probe.discover import Discovery, Governor
from gradtui.probe.graph import Root, constant_of, leaves_of, only_factor, root_of
from gradtui.probe.kept import KeptGraphs
from gradtui.probe.patch import Patches, around
from gradtui.probe.registry import Tracked
from gradtui.probe.session import Call, Session
from gradtui.probe.watch import Watcher, contributions, not_measured
from gradtui.wire.encode import ids

_PLAIN = (torch.Tensor, torch.nn.Parameter)
_FACTORS = ("DivBackward0", "MulBackward0")


_FIELDS = (
    "loss",
    "value_finite",
    "reached",
    "retain_graph",
    "create_graph",
    "root",
    "divisor",
    "reduction",
    "scale",
    "training",
    "eval_modules",
    "nodes",
)
_HELD = 64


class _Walked:
    """What is known of the graphs at one call site."""

    __slots__ = ("changed", "factor", "gap", "landed", "number", "root", "times", "took")

    def __init__(self) -> None:
        self.times = 0
        self.took = 0.0
        self.root = Root()
        self.factor: float | None = None
        """The constant at the root, where there is only one."""
        self.number = 0
        self.gap = 0
        """Nodes made between the roots of two backwards: other graphs hardly ever have the same."""
        self.landed = 0
        self.changed = False
        """The last backward wrote to more leaves, or fewer, than the one before."""

    def differs(self, number: int, node: str) -> bool:
        """The graph whose root has this sequence number and class is not like the last one."""
        gap = number - self.number
        differs = self.changed or gap != self.gap or node != self.root.node
        self.number, self.gap = number, gap
        return differs


class OpsWatch(Protocol):
    """What is asked of the hook that looks for the first bad operation, where there is one."""

    def arm(self, call: Call, roots: list[torch.Tensor]) -> list[Any]: ...

    def tell(self, call: Call) -> None: ...


class BackwardHook:
    """Wraps torch.autograd.backward, which Tensor.backward looks up at call time."""

    def __init__(
        self,
        session: Session,
        discovery: Discovery,
        watcher: Watcher,
        scales: dict[int, float],
        ops: OpsWatch | None = None,
    ) -> None:
        self.ops = ops
        self.session = session
        self.discovery = discovery
        self.watcher = watcher
        self.scales = scales
        self._patches = Patches()
        self._walks = Governor(share=0.01, credit=0.1)
        self._rewalks = Governor(share=0.001, credit=0.1)
        """Walks of graphs that look the same as last time."""
        self._numbers = Governor(share=0.005, credit=0.15)
        """Norms in free-run: of every backward at first, then of as many as their share of the time pays for."""
        self._kept = KeptGraphs()
        self._unwell = False
        """A number was not finite lately: measure every backward."""
        self._held = 0
        """Backwards ahead that are measured because one found gradients already there: their contents have to be compared."""
        self._walked: dict[int, _Walked] = {}

    def install(self) -> None:
        original = torch.autograd.backward
        wrapper = around(self.session, "backward", original, self._before, self._after, self._raised)
        self._patches.put(torch.autograd, "backward", wrapper)

    def remove(self) -> None:
        self._patches.remove()

    # -- before ---------------------------------------------------------------------------------------------------

    def _before(self, frame: FrameType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
        session = self.session
        roots = _roots(args[0] if args else kwargs.get("tensors"))
        if not roots or not (session.joined or session.join()):
            return None
        nested = bool(session.local.stack)
        if not nested or not session.inside("backward"):
            self.watcher.look()
        call = session.begin("backward", frame)
        if not nested and call.ordinal <= 4:
            self.discovery.rename(frame)
        self._study(call, roots, frame)
        gradient = args[1] if len(args) > 1 else kwargs.get("grad_tensors")
        self._describe(call, roots, gradient, args, kwargs)
        session.stop_if_wanted(call, frame, call.data["value"])
        self._arm(call)
        if self.ops is not None:
            call.data["handles"].extend(self.ops.arm(call, roots))
        call.data["measure"] = self._worth_measuring(call)
        if not nested and type(roots[0]) in _PLAIN:
            call.data["kept"] = self._kept.look(call.site, call.ordinal, roots[0], frame)
            if call.ordinal & (call.ordinal - 1) == 0:
                call.data["values"] = self.watcher.take_values()
        call.announced = lambda: self._announce(call)
        session.enter(call)
        return call

    def _study(self, call: Call, roots: list[torch.Tensor], frame: FrameType) -> None:
        """Walk the graph where this site is new, and again as often as a small share of the run's time allows."""
        key = call.site
        known = self._walked.get(key)
        if known is None:
            known = self._walked[key] = _Walked()
        call.data["reached"], call.data["nodes"] = -1, 0
        plain = type(roots[0]) in _PLAIN
        node = roots[0].grad_fn if plain else None
        differs = node is None or known.differs(node._sequence_nr(), type(node).__name__)
        took = known.took
        if known.times >= 2 and not (self._walks.allows(took) and (differs or self._rewalks.allows(took))):
            # a root's numbers may be others each time
            fresh = plain and (self.scales or differs or known.root.node in _FACTORS)
            if fresh and not self.scales and not differs and known.factor is not None:
                fresh = constant_of(node) != known.factor
            call.data["root"] = root_of(roots[0], self.scales) if fresh else known.root
            return
        began = perf_counter()
        leaves, nodes = leaves_of(roots)
        known.root = root = root_of(roots[0], self.scales) if plain else Root()
        known.factor = only_factor(node) if node is not None else None
        known.took = perf_counter() - began
        known.times += 1
        self._walks.spend(known.took)
        if not differs:
            self._rewalks.spend(known.took)
        call.data["root"] = root
        call.data["reached"], call.data["nodes"] = len(leaves), nodes
        self.discovery.meet(leaves, frame, key)
        names, entries = self.watcher.rebound(_person(frame, call))
        if names:
            self.session.emit(
                "ParametersEdited",
                None,
                {"rebound": names},
                {"parameters": contributions(entries, [], [], [])["contributions.parameters"]},
            )

    def _describe(
        self, call: Call, roots: list[torch.Tensor], gradient: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        data = call.data
        root: Root = data["root"]
        value: float | None = None
        first = roots[0]
        if type(first) not in _PLAIN or not first.is_cpu:
            pass
        elif first.numel() == 1 and not first.is_complex():
            value = float(first.item())
        elif first.numel() <= 1_000_000:
            data["finite"] = bool(torch.isfinite(first.detach()).all())
        divisor = root.divisor
        if isinstance(gradient, (tuple, list)) and len(gradient) == 1:
            gradient = gradient[0]
        if type(gradient) is torch.Tensor and gradient.numel() == 1 and gradient.device.type == "cpu":
            weight = float(gradient)
            divisor = divisor / weight if weight else divisor
        data["value"] = value
        data["divisor"] = divisor
        retain = args[2] if len(args) > 2 else kwargs.get("retain_graph")
        data["create_graph"] = bool(args[3] if len(args) > 3 else kwargs.get("create_graph", False))
        data["retain_graph"] = bool(retain) if retain is not None else data["create_graph"]

    def _worth_measuring(self, call: Call) -> bool:
        value = call.data["value"]
        self._held = _HELD if call.data["had"] else max(self._held - 1, 0)
        return (
            self._held > 0
            or self._unwell
            or self.session.gate.armed
            or not (value is None or isfinite(value))
            or self._numbers.allows(0.0)
        )

    def _announce(self, call: Call) -> None:
        self.session.emit("BackwardStarted", call, {"loss": "", "value": call.data["value"]})

    def _arm(self, call: Call) -> None:
        """Hook the leaves whose gradients are there already."""
        holding = self.watcher.holding() if call.depth or self.watcher.holds or call.data["reached"] >= 0 else []
        data = call.data
        data["had"] = {}
        incoming: dict[int, torch.Tensor | float] = {}
        data["incoming"] = incoming
        data["handles"] = handles = []
        if not holding:
            return
        before = self.watcher.check_contents(holding) if call.depth == 0 else [entry.norm for entry, _ in holding]
        for (entry, _), norm in zip(holding, before, strict=True):
            data["had"][entry.id] = norm
            leaf = entry.ref()
            if leaf is not None and leaf.requires_grad:
                handles.append(leaf.register_hook(_Incoming(entry, incoming)))  # type: ignore[no-untyped-call]

    # -- after ----------------------------------------------------------------------------------------------------

    def _after(self, call: Call, result: Any) -> None:
        took = self.session.leave(call)
        data = call.data
        for handle in data["handles"]:
            handle.remove()
        landed = self._landed(call, self.watcher.registry.tracked)
        if call.data.get("values"):
            self._tell_changed(call)
        self._tell(call, landed, took)
        self._tell_kept(call)
        if self.ops is not None:
            self.ops.tell(call)
        if call.data["reached"] >= 0:
            self._look_for_lost(call, {entry.id for entry, _ in landed})

    def _tell_changed(self, call: Call) -> None:
        """Values that this backward changed although no step ran in it: a hook wrote to a parameter."""
        changed = self.watcher.changed_inside(call.data["values"])
        if not changed or call.announced is None:
            return
        call.announced()
        call.announced = None
        for entry in changed:
            if (leaf := entry.ref()) is not None:
                entry.value_version = leaf._version
        self.session.emit(
            "ParametersEdited", None, {"parent": call.id}, {"parameters": ids([entry.id for entry in changed])}
        )

    def _tell_kept(self, call: Call) -> None:
        kept = call.data.get("kept")
        if kept is not None:
            alive, oldest, names = kept
            self.session.emit("GraphKept", None, {"backwards": alive, "oldest": oldest, "names": names})

    def _look_for_lost(self, call: Call, landed: set[int]) -> None:
        """Owned leaves that this graph does not reach: see now and then whether they are still in a module."""
        lost = []
        for entry in self.watcher.registry.tracked:
            if not entry.owners or entry.id in landed or entry.landed == call.id:
                entry.unseen = 0
            else:
                entry.unseen += 1
                if entry.unseen & (entry.unseen - 1) == 0:
                    lost.append(entry)
        if lost:
            self.discovery.recheck(lost, sys._getframe(2))

    def _raised(self, call: Call, error: BaseException) -> None:
        took = self.session.leave(call)
        for handle in call.data["handles"]:
            handle.remove()
        self.watcher.remember(self.watcher.registry.tracked)
        self.session.emit(
            "CallRaised",
            call,
            {"kind": "backward", "error": type(error).__name__, "message": str(error)[:2000]},
            duration=took,
        )

    def _landed(self, call: Call, entries: list[Tracked]) -> list[tuple[Tracked, torch.Tensor]]:
        """Leaves this backward wrote to and that have not been told yet."""
        found = []
        had, incoming, number = call.data["had"], call.data["incoming"], call.id
        for entry in entries:
            leaf = entry.ref()
            if leaf is None or not leaf.is_leaf:
                continue
            grad = leaf.grad
            if grad is None:
                continue
            if entry.landed == number:
                if entry.grad != id(grad) or entry.version != grad._version:
                    entry.grad, entry.version = id(grad), grad._version
                continue
            if entry.id in had:
                if entry.id not in incoming and entry.grad == id(grad) and entry.version == grad._version:
                    continue
            elif entry.grad == id(grad) and entry.version == grad._version:
                continue
            found.append((entry, grad))
        return found

    def progress(self, call: Call, entries: list[Tracked]) -> None:
        """Something is about to use or clear gradients inside this backward: tell what has landed on them so far."""
        landed = self._landed(call, entries)
        if not landed:
            return
        self._send(call, landed, lambda arrays: self.session.fact("BackwardProgressed", call, {}, arrays))
        for entry, _ in landed:
            entry.landed = call.id

    def _tell(self, call: Call, landed: list[tuple[Tracked, torch.Tensor]], took: float) -> None:
        data = call.data
        root: Root = data["root"]
        entries = [entry for entry, _ in landed]
        training, evals = self.discovery.modes.of(call.site, entries)
        walked = self._walked[call.site]
        walked.changed, walked.landed = walked.landed != len(entries), len(entries)
        value = data["value"]
        finite = data.get("finite", True) if value is None else isfinite(value)
        fields = (
            "",
            finite,
            data["reached"],
            data["retain_graph"],
            data["create_graph"],
            root.node,
            data["divisor"],
            root.reduction,
            root.scale,
            training,
            evals,
            data["nodes"],
        )
        if data["measure"] or data["had"]:
            fact, number = self.session.fact, None if value is None else ("value", value)
            named = dict(zip(_FIELDS, fields, strict=True))
            self._send(call, landed, lambda arrays: fact("BackwardEnded", call, named, arrays, took, number=number))
        else:
            for entry, grad in landed:
                entry.grad, entry.version, entry.norm = id(grad), grad._version, nan
            key = ("BackwardEnded", call.site, value is None, *fields, *[entry.id for entry in entries])
            self.session.tell(
                call, key, lambda: (dict(zip(_FIELDS, fields, strict=True)), not_measured(entries)), took, value
            )
        for entry in entries:
            entry.scale = root.scale
            entry.spent = False
        self.watcher.take_fingerprints(entries)
        if self.session.gate.watches_writes:
            self.session.gate.wrote([entry.id for entry in entries])

    def _send(self, call: Call, landed: list[tuple[Tracked, torch.Tensor]], make: Any) -> None:
        entries = [entry for entry, _ in landed]
        grads = [grad.detach() for _, grad in landed]
        had, seen = call.data["had"], call.data["incoming"]
        before = [had.get(entry.id, -1.0) for entry in entries]
        hooked = [index for index, entry in enumerate(entries) if entry.id in seen]
        known = {index: norm for index in hooked if isinstance(norm := seen[entries[index].id], float)}
        hooked = [index for index in hooked if index not in known]
        extra = [seen[entries[index].id] for index in hooked]
        for entry, grad in landed:
            entry.grad, entry.version, entry.norm = id(grad), grad._version, nan

        def build(norms: list[float]) -> list[bytes]:
            after, came = norms[: len(entries)], norms[len(entries) :]
            incoming = [norm if was < 0.0 else nan for norm, was in zip(after, before, strict=True)]
            for index, norm in (*known.items(), *zip(hooked, came, strict=True)):
                incoming[index] = norm
            for entry, norm in zip(entries, after, strict=True):
                entry.norm = norm
            self._unwell = not all(map(isfinite, after))
            return [make(contributions(entries, incoming, before, after))]

        if not call.data["measure"] and not extra and not known:
            unknown = [nan] * len(entries)
            self.session.send([make(contributions(entries, unknown, before, unknown, measured=False))])
            return
        began = perf_counter()
        self.session.emit_measured([*grads, *extra], build)
        self._numbers.spend(perf_counter() - began)


class _Incoming:
    """A tensor hook for one backward: keeps the norm of what comes in, never the tensor (that would defeat buffer stealing)."""

    __slots__ = ("entry", "norms")

    def __init__(self, entry: Tracked, norms: dict[int, torch.Tensor | float]) -> None:
        self.entry = entry
        self.norms = norms

    def __call__(self, grad: torch.Tensor) -> None:
        try:
            if type(grad) is torch.Tensor and not needs_apart() and (norm := measure.plain_norm(grad)) >= 0.0:
                self.norms[self.entry.id] = norm
                return
            with apart():
                grad = grad.detach()
                if grad.device.type == "cpu":
                    self.norms[self.entry.id] = measure.norms([grad])[0]
                else:
                    values = grad if grad.layout is torch.strided else grad.coalesce().values()
                    wide = (
                        None if values.dtype in (torch.float32, torch.float64) or values.is_complex() else torch.float32
                    )
                    self.norms[self.entry.id] = torch.linalg.vector_norm(values, dtype=wide)
        except Exception:  # an unusual tensor: the contribution is told without its norm
            self.norms[self.entry.id] = nan


def _roots(tensors: Any) -> list[torch.Tensor]:
    if isinstance(tensors, torch.Tensor):
        return [tensors]
    if isinstance(tensors, (list, tuple)):
        return [tensor for tensor in tensors if isinstance(tensor, torch.Tensor)]
    return []


def _person(frame: FrameType | None, call: Call) -> FrameType | None:
    while frame is not None and frame.f_code.co_filename != call.file:
        frame = frame.f_back
    return frame
