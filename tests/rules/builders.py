"""A training run written down as facts, without torch: `run.backward(...)`, `run.step(...)`; each call returns the findings it changed."""

from __future__ import annotations

from dataclasses import replace
from math import hypot, inf, isfinite, nan
from typing import Any

from gradtui import events as ev
from gradtui.events import CallSite, Contributions, Event, OptimizerInfo, ParameterInfo
from gradtui.rules import Finding, JudgeSettings
from gradtui.rules.judge import Judge

FILE = "/proj/train.py"
LINES = {"zero": 10, "backward": 20, "clip": 25, "unscale": 24, "step": 30, "update": 31, "scheduler": 40, "edit": 35}


def at(line: int, source: str = "", expression: str = "") -> CallSite:
    """A line of the script."""
    return CallSite(FILE, line, "train", source, expression)


class Run:
    """One process with some parameters and optimizers; keeps each gradient's norm as torch would."""

    def __init__(self, settings: JudgeSettings | None = None, source: str | None = None, process: int = 0) -> None:
        self.judge = Judge(settings, read=(lambda path: source) if source is not None else None)
        self.events: list[Event] = []
        self.process = process
        self.grads: dict[int, float] = {}
        self.ids: dict[str, int] = {}
        self.optimizers: dict[str, OptimizerInfo] = {}
        self.counts: dict[str, int] = {}
        self.calls = 0
        self.inside = 0
        """The call that what follows is made in."""

    # -- what exists ----------------------------------------------------------------------------------------------

    def parameters(self, *names: str, **about: Any) -> Run:
        """Parameters of a module called `model`, or of the first part of the name."""
        infos = []
        for name in names:
            number = self.ids[name] = len(self.ids) + 1
            root = name.split(".")[0] if "." in name else ""
            fields: dict[str, Any] = {
                "id": number, "name": name, "shape": (4, 4), "dtype": "float32", "device": "cpu",
                "registered": bool(root), "root": root, "module": "Linear",
            }  # fmt: skip
            infos.append(ParameterInfo(**(fields | about)))
        self.feed(ev.ParametersSeen(parameters=tuple(infos)))
        return self

    def inputs(self, *names: str) -> Run:
        """Plain tensors that require a gradient."""
        return self.parameters(*names, is_parameter=False, registered=False, root="", module="")

    def optimizer(self, name: str, *owned: str, kind: str = "SGD", lr: float = 0.1, **settings: float) -> Run:
        """An optimizer over these parameters."""
        numbers = self.numbers(owned or tuple(self.ids))
        number = self.optimizers[name].id if name in self.optimizers else len(self.optimizers) + 1
        info = OptimizerInfo(number, name, kind, numbers, (lr,), tuple(settings.items()), reads_closure=kind == "LBFGS")
        self.optimizers[name] = info
        self.feed(ev.OptimizerSeen(optimizer=info))
        return self

    def numbers(self, names: tuple[str, ...]) -> tuple[int, ...]:
        """Ids of parameters by name."""
        return tuple(self.ids[name] for name in names)

    # -- calls ----------------------------------------------------------------------------------------------------

    def feed(self, event: Any) -> list[Finding]:
        """Send one fact."""
        event = replace(event, seq=len(self.events) + 1, process=self.process)
        self.events.append(event)
        return self.judge.feed(event)

    def call(
        self, call_kind: str, cls: Any, line: int, source: str, expression: str = "", **fields: Any
    ) -> list[Finding]:
        """Send the end of a call."""
        self.calls += 1
        self.counts[call_kind] = self.counts.get(call_kind, 0) + 1
        origin: dict[str, Any] = {"call": self.calls, "parent": self.inside, "ordinal": self.counts[call_kind]}
        return self.feed(cls(site=at(line, source, expression), **origin, **fields))

    def backward(
        self, *reached: str, loss: str = "loss", line: int = LINES["backward"], norm: float | dict[str, float] = 1.0,
        value: float | None = 0.5, **about: Any,
    ) -> list[Finding]:  # fmt: skip
        """A backward that writes to these parameters (all by default); `norm=nan` makes it non-finite, `same=True` exactly repeatable."""
        names = reached or tuple(self.ids)
        numbers = self.numbers(names) if reached != ("",) else ()
        about = dict(about)
        wobble = 1.0 if about.pop("same", False) else 1.0 + 0.01 * (len(self.events) % 17)
        norms = [wobble * (norm.get(name, 1.0) if isinstance(norm, dict) else norm) for name in names][: len(numbers)]
        before = [self.grads.get(n, -1.0) for n in numbers]
        after = [hypot(new, max(old, 0.0)) for new, old in zip(norms, before, strict=True)]
        self.grads.update(zip(numbers, after, strict=True))
        finite = tuple(isfinite(new) for new in norms)
        added = Contributions(
            parameters=numbers, incoming=tuple(norms), before=tuple(before), after=tuple(after), finite=finite
        )
        fields: dict[str, Any] = {
            "loss": loss,
            "value": value,
            "value_finite": value is None or isfinite(value),
            "root": "MeanBackward0",
        }
        fields |= {"reduction": "mean", "training": "train", "reached": len(numbers), "contributions": added}
        return self.call("backward", ev.BackwardEnded, line, f"{loss}.backward()", loss, **(fields | about))

    def raised(self, kind: str, message: str, line: int = LINES["backward"], **about: Any) -> list[Finding]:
        """A call that ends in an exception of torch's."""
        return self.call(
            kind, ev.CallRaised, line, "", "loss", kind=kind, error="RuntimeError", message=message, **about
        )

    def zero(
        self, optimizer: str = "", *names: str, line: int = LINES["zero"], how: str = "none", by: str = ""
    ) -> list[Finding]:
        """`optimizer.zero_grad()`, or of the only optimizer; with names, a clear of just these."""
        optimizer = optimizer or (next(iter(self.optimizers)) if not names else "")
        info = self.optimizers.get(optimizer)
        owned = self.numbers(names) if names else info.parameters if info is not None else ()
        held = tuple(n for n in owned if n in self.grads and (how == "none" or self.grads[n] != 0.0))
        for number in held:
            if how == "none":
                del self.grads[number]
            else:
                self.grads[number] = 0.0
        by = by or ("optimizer" if info is not None else "hand")
        fields: dict[str, Any] = {"by": by, "owner": optimizer, "how": how if held else "nothing", "parameters": held}
        fields |= {"optimizer": info.id if info is not None else 0, "covers": len(owned)}
        if by == "hand":
            return self.feed(ev.GradsZeroed(site=at(line, "p.grad = None"), **fields))
        return self.call("zero_grad", ev.GradsZeroed, line, f"{optimizer}.zero_grad()", optimizer, **fields)

    def step(self, optimizer: str = "", line: int = LINES["step"], **about: Any) -> list[Finding]:
        """A step of that optimizer, or of the only one."""
        name = optimizer or next(iter(self.optimizers))
        info = self.optimizers[name]
        used = tuple(n for n in info.parameters if n in self.grads)
        fields: dict[str, Any] = {"optimizer": info.id, "lr": info.lr, "used": used, "moved": used, "unchanged": False}
        return self.call("step", ev.OptimizerStepped, line, f"{name}.step()", name, **(fields | about))

    def clip(
        self, *names: str, limit: float = 1.0, norm: float = 5.0, line: int = LINES["clip"], given: int | None = None
    ) -> list[Finding]:
        """`clip_grad_norm_` over these parameters, all by default."""
        numbers = self.numbers(names or tuple(self.ids)) if given is None else ()
        held = tuple(n for n in numbers if n in self.grads)
        fields: dict[str, Any] = {
            "method": "norm",
            "limit": limit,
            "norm": norm,
            "given": len(numbers) if given is None else given,
        }
        fields |= {"parameters": held, "after": tuple(self.grads[n] for n in held)}
        return self.call(
            "clip", ev.GradsClipped, line, "clip_grad_norm_(model.parameters(), 1.0)", "model.parameters()", **fields
        )

    def unscale(self, optimizer: str = "", scale: float = 1024.0, line: int = LINES["unscale"]) -> list[Finding]:
        """`scaler.unscale_(optimizer)`."""
        info = self.optimizers[optimizer or next(iter(self.optimizers))]
        held = tuple(n for n in info.parameters if n in self.grads)
        return self.call(
            "unscale", ev.GradsUnscaled, line, "scaler.unscale_(optimizer)", optimizer=info.id, scale=scale,
            parameters=held, after=tuple(self.grads[n] / scale for n in held),
        )  # fmt: skip

    def scaler_step(
        self, optimizer: str = "", ran: bool = True, scale: float = 1024.0, line: int = LINES["step"]
    ) -> list[Finding]:
        """`scaler.step(optimizer)`: the optimizer's own step inside it, unless it is skipped."""
        name = optimizer or next(iter(self.optimizers))
        found = self.step(name, line=line, by_scaler=True) if ran else []
        info = self.optimizers[name]
        return found + self.call(
            "scaler_step",
            ev.ScalerStepped,
            line,
            "scaler.step(optimizer)",
            name,
            optimizer=info.id,
            ran=ran,
            scale=scale,
        )

    def update(self, scale: float = 1024.0) -> list[Finding]:
        """`scaler.update()`."""
        return self.call(
            "scaler_update", ev.ScalerUpdated, LINES["update"], "scaler.update()", before=scale, after=scale
        )

    def schedule(
        self, optimizer: str = "", before: float = 0.1, after: float = 0.05, line: int = LINES["scheduler"]
    ) -> list[Finding]:
        """`scheduler.step()`."""
        name = optimizer or next(iter(self.optimizers))
        info = self.optimizers[name]
        self.optimizers[name] = replace(info, lr=(after,))
        return self.call(
            "scheduler",
            ev.SchedulerStepped,
            line,
            "scheduler.step()",
            kind="StepLR",
            optimizer=info.id,
            before=(before,),
            after=(after,),
        )

    def update_by_hand(self, *names: str, rebound: tuple[str, ...] = ()) -> list[Finding]:
        """`p -= lr * p.grad`."""
        numbers = self.numbers(names or tuple(self.ids))
        site = at(LINES["edit"], "p -= lr * p.grad")
        return self.feed(ev.ParametersEdited(parameters=numbers, rebound=rebound, site=site, parent=self.inside))

    def edit_gradients(self, *names: str, how: str = "scaled", factor: float = 0.5) -> list[Finding]:
        """A change of `.grad` that nobody announced; `replaced` also where there was none."""
        numbers = self.numbers(names or tuple(self.ids))
        before = tuple(self.grads.get(n, -1.0) for n in numbers)
        after = tuple(norm * factor if norm > 0 else 1.0 for norm in before)
        self.grads.update(zip(numbers, after, strict=True))
        fields: dict[str, Any] = {"how": how, "factor": factor if how == "scaled" else 0.0}
        return self.feed(
            ev.GradsEdited(
                parameters=numbers,
                before=before,
                after=after,
                finite=(True,) * len(numbers),
                site=at(LINES["edit"]),
                **fields,
            )
        )

    def closure_step(
        self, evaluations: int, clear_inside: bool = True, moves: bool = True, optimizer: str = ""
    ) -> None:
        """A step that evaluates its closure several times, moving the parameters in between."""
        info = self.optimizers[optimizer or next(iter(self.optimizers))]
        self.calls += 1
        step = self.calls
        self.feed(ev.OptimizerStepStarted(optimizer=info.id, closure=True, call=step, site=at(LINES["step"])))
        for number in range(evaluations):
            self.inside = step
            if clear_inside:
                self.zero()
            self.backward(evaluation=number + 1)
            self.inside = 0
            if moves:
                self.feed(ev.ParametersEdited(parameters=info.parameters))
        self.counts["step"] = self.counts.get("step", 0) + 1
        used = tuple(n for n in info.parameters if n in self.grads)
        self.feed(
            ev.OptimizerStepped(
                optimizer=info.id,
                closure=True,
                used=used,
                moved=used,
                call=step,
                ordinal=self.counts["step"],
                site=at(LINES["step"]),
            )
        )

    def loop(self, times: int, **about: Any) -> Run:
        """Ordinary iterations: clear, backward, step."""
        for _ in range(times):
            self.zero()
            self.backward(**about)
            self.step()
        return self

    # -- verdicts -------------------------------------------------------------------------------------------------

    def end(self, exit_code: int | None = 0) -> list[Finding]:
        """The run is over; every confirmed finding."""
        return [finding for finding in self.judge.finish(exit_code, None) if finding.status == "confirmed"]

    def loud(self, exit_code: int | None = 0) -> set[str]:
        """Rules with an error or a warning that no other finding explains."""
        return {finding.rule for finding in self.end(exit_code) if finding.severity != "info" and not finding.cause}

    def only(self, rule: str) -> Any:
        """The one finding of that rule at the end."""
        found = [finding for finding in self.end() if finding.rule == rule]
        assert len(found) == 1, [f"{f.rule}: {f.message}" for f in self.end()]
        return found[0]


def model(*names: str, settings: JudgeSettings | None = None, source: str | None = None) -> Run:
    """A run over a model of two layers (or these parameters) and one optimizer over all of it."""
    run = Run(settings, source)
    run.parameters(*(names or ("model.a.weight", "model.a.bias", "model.b.weight", "model.b.bias")))
    return run.optimizer("optimizer")


def gan() -> Run:
    """Two networks, each with its optimizer."""
    run = Run()
    run.parameters("g.weight", "g.bias", "d.weight", "d.bias")
    return run.optimizer("opt_g", "g.weight", "g.bias").optimizer("opt_d", "d.weight", "d.bias")


ALL = ("g.weight", "g.bias", "d.weight", "d.bias")
NAN, INF = nan, inf
