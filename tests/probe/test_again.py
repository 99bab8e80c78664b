"""Facts told again by number: what comes out at the other end is what packets of their own would have said."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import torch
from torch import nn

from gradtui import events
from gradtui.events import Event
from gradtui.host.kept import Figures, Kept
from gradtui.wire.decode import event_of, unpack
from gradtui.wire.encode import FIGURES

from .conftest import Probed


class _Loop:
    """A training loop that changes nothing, with norms only at the start."""

    def __init__(self, probed: Probed) -> None:
        self.model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.0)
        numbers = probed.probe.hooks[0]._numbers
        numbers.credit = -1.0

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.optimizer.zero_grad()
            self.model(torch.ones(2, 3)).mean().backward()
            self.optimizer.step()


def _told(probed: Probed) -> list[Event]:
    return [
        event
        for event in probed.events()
        if isinstance(event, events.BackwardEnded | events.GradsZeroed | events.OptimizerStepped)
    ]


def _content(event: Event) -> dict[str, Any]:
    """All but what differs between two runs: the clock, and places in the run."""
    fields = dataclasses.asdict(event)
    return {
        key: repr(value) for key, value in fields.items() if key not in ("time", "duration", "seq", "call", "ordinal")
    }


def test_a_fact_told_again_is_the_fact(probed: Probed):
    """Event by event the same, whether or not the host remembers."""
    loop = _Loop(probed)
    loop.run(33)  # past the steps whose values are compared
    first, told = len(_told(probed)), probed.again
    loop.run(10)
    again = _told(probed)[first:]
    assert probed.again == told + 30
    probed.probe.session._remembers = False
    probed.probe.session._told.clear()
    loop.run(10)
    plain = _told(probed)[first + 30 :]
    assert probed.again == told + 30
    for one, other in zip(again, plain, strict=True):
        assert (one.call + 30, one.ordinal + 10) == (other.call, other.ordinal)
        assert _content(one) == _content(other)


def test_a_value_that_is_not_finite_is_told_in_full(probed: Probed):
    w = torch.ones(1, requires_grad=True)
    for factor in (1.0, 1.0, math.nan, 1.0):
        w.grad = None
        (w * factor).sum().backward()
    values = [event.value for event in probed.all(events.BackwardEnded)]
    assert values[:2] == [1.0, 1.0]
    assert math.isnan(values[2] or 0.0)
    assert values[3] == 1.0


def test_the_header_made_anew_decodes_to_the_event():
    """What a timeline keeps of a fact told again is what it keeps of any other."""
    header = b'{"t":"event","k":"GradsZeroed","call":1,"parent":0,"ordinal":1,"time":1.5,"duration":0.5,"s":3,"keep":2,"by":"optimizer","owner":"o","how":"none","@":[["parameters","I",2]]}'
    payload = b"\x01\0\0\0\x02\0\0\0"
    event = event_of("GradsZeroed", {**unpack(header, payload), "seq": 1, "process": 0})
    kept = Kept("GradsZeroed", event, header, payload, 3, None)
    figures = Figures(7, 2, 5, 9.25, 0.125, 0.0)
    fields = unpack(kept.header_at(figures), kept.payload)
    assert "keep" not in fields
    assert event_of("GradsZeroed", {**fields, "seq": 8, "process": 0}) == kept.event_at(8, figures)
    assert FIGURES.size == 40
