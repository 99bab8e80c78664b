"""Starts the probe in this process: called once, when torch has just been imported."""

from __future__ import annotations

import os
from typing import Any

from gradtui.probe.apart import out_of_sight
from gradtui.probe.discover import Discovery
from gradtui.probe.hooks.backward import BackwardHook
from gradtui.probe.hooks.clip import ClipHook
from gradtui.probe.hooks.ops import OpsHook
from gradtui.probe.hooks.parameter import ParameterHook
from gradtui.probe.hooks.scaler import ScalerHook
from gradtui.probe.hooks.scheduler import SchedulerHook
from gradtui.probe.hooks.step import StepHook
from gradtui.probe.hooks.zero_grad import ZeroGradHook
from gradtui.probe.registry import Registry
from gradtui.probe.session import Session
from gradtui.probe.views import Views
from gradtui.probe.watch import Watcher


class Probe:
    """Everything of ours in this process."""

    def __init__(self, socket_path: str) -> None:
        self.session = session = Session(socket_path)
        self.registry = registry = Registry()
        parameter = ParameterHook(session)
        self.discovery = discovery = Discovery(session, registry, parameter.site_of)
        watcher = Watcher(session, registry)
        scaler = ScalerHook(session, discovery, watcher)
        ops = OpsHook(session) if os.environ.get("GRADTUI_WATCH") == "ops" else None
        backward = BackwardHook(session, discovery, watcher, scaler.scales, ops)
        self.hooks: list[Any] = [
            backward,
            StepHook(session, discovery, watcher, backward.progress),
            ZeroGradHook(session, discovery, watcher, backward.progress),
            ClipHook(session, discovery, watcher),
            scaler,
            SchedulerHook(session, discovery),
            parameter,
        ]
        if ops is not None:
            self.hooks.append(ops)
        session.answer = Views(registry, session).answer
        session.on_join.append(self._tell_again)

    def install(self) -> None:
        """Put every hook in place."""
        out_of_sight()
        for hook in self.hooks:
            hook.install()
        os.register_at_fork(after_in_child=self.session.reset_after_fork)

    def remove(self) -> None:
        """Leave torch as it was."""
        for hook in reversed(self.hooks):
            hook.remove()
        self.session.off = True

    def _tell_again(self) -> None:
        """A forked child knows leaves that its host has not heard of from it."""
        if self.registry.tracked:
            self.discovery.tell(list(self.registry.tracked))
        for record in self.discovery.optimizers.values():
            optimizer = record.ref()
            if optimizer is not None and record.signature:
                self.discovery.tell_optimizer(record, optimizer)


probe: Probe | None = None
"""The probe of this process, once started."""


def start() -> None:
    """Start it, once, if the environment names a host."""
    global probe
    path = os.environ.get("GRADTUI_SOCKET")
    if probe is None and path:
        probe = Probe(path)
        probe.install()
