"""Where a run stops, and what it does when it is let go."""

from __future__ import annotations

import signal
import threading
import traceback
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from gradtui.events import BackwardEnded
from tests.probe.conftest import Probed


def train(steps: int = 3, micro: int = 1) -> nn.Linear:
    """zero_grad, backward × micro, step."""
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        for _ in range(micro):
            loss = model(torch.ones(1, 2)).sum()
            loss.backward()  # the backward
        optimizer.step()
    return model


def train_with_closure() -> None:
    w = torch.tensor([3.0], requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = w.pow(2).sum()
        loss.backward()
        return loss

    for _ in range(2):
        optimizer.step(closure)


def stops(probed: Probed) -> list[str]:
    """`backward 1`, `step 1`, …"""
    probed.events()
    return [f"{stop['kind']} {stop['ordinal']}" for stop in probed.collector.stops]


def reasons(probed: Probed) -> list[str]:
    probed.events()
    return [stop["reason"] for stop in probed.collector.stops]


def test_a_free_run_stops_nowhere(probed: Probed):
    """Nothing was asked for."""
    train()
    assert stops(probed) == []


def test_stepping_over_stops_before_each_call(probed: Probed):
    """In the order of the program, then freely on."""
    probed.configure(stop_first=True)
    probed.at_stops("step_over", "step_over", "step_over", "continue")
    train()
    assert stops(probed) == ["zero_grad 1", "backward 1", "step 1", "zero_grad 2"]
    assert reasons(probed) == ["step"] * 4


def test_a_stop_comes_before_the_call(probed: Probed):
    """At the stop before a backward its event has not been told, and the loss is known."""
    probed.configure(stop_first=True, stops=["backward"])
    told: list[int] = []

    def count() -> list[dict[str, Any]]:
        told.append(sum(fields.get("k") == "BackwardEnded" for fields in probed.collector.packets))
        return [{"do": "continue"}]

    probed.collector.moves.append(count)
    w = torch.tensor([2.0], requires_grad=True)
    w.pow(2).sum().backward()
    assert told == [0]
    assert [stop["value"] for stop in probed.collector.stops] == [4.0]
    assert len(probed.all(BackwardEnded)) == 1


def test_a_stop_tells_the_persons_frames(probed: Probed):
    """Innermost first; none of ours, none of torch's."""
    probed.configure(stop_first=True)
    train(1)
    file, line, function = (
        probed.collector.stops[1]["frames"][0]
        if len(probed.collector.stops) > 1
        else probed.collector.stops[0]["frames"][0]
    )
    assert (file, function) == (__file__, "train")
    assert "optimizer.zero_grad()" in Path(__file__).read_text().splitlines()[line - 1]


def test_kinds_that_are_not_chosen_are_passed_by(probed: Probed):
    """Stops at steps only; chosen at the first stop."""
    probed.configure(stop_first=True)
    probed.at_stops([{"do": "set_stops", "kinds": ["step"]}, "step_over"], "step_over", "step_over", "step_over")
    train()
    assert stops(probed) == ["zero_grad 1", "step 1", "step 2", "step 3"]


def test_finishing_the_window_stops_after_the_step(probed: Probed):
    """Whatever the number of backwards in it: before the call that follows the step."""
    probed.configure(stop_first=True)
    probed.at_stops("finish_window", "finish_window", "continue")
    train(3, micro=4)
    assert stops(probed) == ["zero_grad 1", "zero_grad 2", "zero_grad 3"]


def test_running_to_a_kind_stops_before_its_next_call(probed: Probed):
    """Also to one that stepping does not stop at."""
    probed.configure(stop_first=True)
    probed.at_stops({"do": "run_to", "kinds": ["step"]}, {"do": "run_to", "kinds": ["step"]}, "continue")
    train()
    assert stops(probed) == ["zero_grad 1", "step 1", "step 2"]
    assert reasons(probed)[1:] == ["next step"] * 2


def test_running_to_a_line_stops_there(probed: Probed):
    """File and line of the person's call."""
    lines = Path(__file__).read_text().splitlines()
    line = next(number for number, text in enumerate(lines, 1) if text.endswith("# the backward"))
    probed.configure(stop_first=True)
    probed.at_stops({"do": "run_to", "file": __file__, "line": line}, "continue")
    train()
    assert stops(probed) == ["zero_grad 1", "backward 1"]


def test_running_to_a_write_stops_at_the_call_after_it(probed: Probed):
    """The backward that writes to the parameter has run then."""
    probed.configure(stop_first=True)
    probed.at_stops({"do": "run_to", "parameter": 1}, "continue")
    train()
    assert stops(probed) == ["zero_grad 1", "step 1"]
    assert reasons(probed)[1] == "the parameter was written"


@pytest.mark.parametrize(
    ("point", "expected"),
    [
        ({"kind": "step"}, ["step 1", "step 2", "step 3"]),
        ({"line": "# the backward", "file": __file__}, ["backward 1", "backward 2", "backward 3"]),
        ({"kind": "zero_grad", "line": "# the backward"}, []),
        ({"parameter": 1}, ["step 1", "step 2", "step 3"]),
        ({"rule": "stale-gradient"}, []),
    ],
)
def test_a_breakpoint_stops_a_free_run(probed: Probed, point, expected):
    """On a kind, a line, a write to a parameter; all that is given must hold. Findings are the host's affair."""
    lines = Path(__file__).read_text().splitlines()
    if "line" in point:
        point = {
            **point,
            "line": next(n for n, text in enumerate(lines, 1) if text.endswith(point["line"]) and "loss" in text),
        }
    probed.configure(breakpoints=[{"id": 7, **point}])
    train()
    assert stops(probed) == expected
    assert set(reasons(probed)) <= {"breakpoint 7"}


def test_breakpoints_can_be_replaced_at_a_stop(probed: Probed):
    """None are left: the run is free."""
    probed.configure(breakpoints=[{"id": 1, "kind": "step"}])
    probed.at_stops([{"do": "set_breakpoints", "breakpoints": []}, "continue"])
    train()
    assert stops(probed) == ["step 1"]


def test_a_pause_stops_a_free_run_at_the_next_call(probed: Probed):
    """Whatever its kind; the byte in shared memory is what makes the program look."""
    link = probed.probe.session.link
    w = torch.ones(1, requires_grad=True)
    w.sum().backward()
    probed.collector.send({"do": "pause"})
    page = memoryview(link.page)
    page[0] = 1
    page.release()
    w.sum().backward()
    w.sum().backward()
    assert stops(probed) == ["backward 2"]
    assert reasons(probed) == ["pause"]


def test_without_the_byte_nothing_is_read(probed: Probed):
    """Free-run looks at shared memory and at nothing else."""
    w = torch.ones(1, requires_grad=True)
    w.sum().backward()
    probed.collector.send({"do": "pause"})
    w.sum().backward()
    assert stops(probed) == []


def test_stepping_over_a_closure_step_stops_after_it(probed: Probed):
    """The calls of the closure are inside."""
    probed.configure(stop_first=True)
    probed.at_stops("step_over", "continue")
    train_with_closure()
    assert stops(probed) == ["step 1", "step 2"]


def test_stepping_into_a_closure_stops_at_its_first_call(probed: Probed):
    """zero_grad inside step, one deeper; then out of it again by finishing."""
    probed.configure(stop_first=True)
    probed.at_stops("step_into", "step_over", "finish_window", "continue")
    train_with_closure()
    assert stops(probed) == ["step 1", "zero_grad 1", "backward 1", "step 2"]
    assert [stop["depth"] for stop in probed.collector.stops] == [0, 1, 1, 0]
    assert reasons(probed)[-1] == "left the call"


def test_the_host_leaving_at_a_stop_lets_the_program_go(probed: Probed, capfd):
    """It trains on, unobserved, to the same result; one notice on stderr."""
    torch.manual_seed(0)
    probed.configure(stop_first=True)
    probed.collector.hang_up_at_stop = True
    weight = train().weight.detach().clone()
    assert capfd.readouterr().err == "gradtui: the host is gone; the program goes on unobserved\n"
    assert probed.probe.session.silent
    torch.manual_seed(0)
    assert torch.equal(train().weight, weight)


def test_nobody_listening_is_no_reason_to_fail(probed: Probed, capfd):
    """The host ended before the first call: silence."""
    probed.collector.close()
    train()
    assert capfd.readouterr() == ("", "")


def test_threads_wait_their_turn_at_a_stop(probed: Probed):
    """While one thread is stopped, others stop at their next call, and all go on."""
    probed.configure(stop_first=True)
    probed.at_stops(*["step_over"] * 4, "continue")
    weights = [torch.ones(1, requires_grad=True) for _ in range(3)]
    threads = [threading.Thread(target=lambda w=w: [w.sum().backward() for _ in range(2)]) for w in weights]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stops(probed) == [f"backward {n}" for n in range(1, 6)]


class TooLong(Exception):
    """What a signal handler of the person's raises."""


@pytest.mark.parametrize("error", [KeyboardInterrupt, TooLong])
def test_a_signal_at_a_stop_is_the_persons(probed: Probed, error):
    """Ctrl-C or a handler of theirs, while the program waits: raised at their line, in no frame of ours."""

    def handle(number, frame):
        raise error

    main = threading.main_thread().ident or 0
    before = signal.signal(signal.SIGINT, handle)
    probed.configure(stop_first=True)
    probed.collector.moves.append(lambda: signal.pthread_kill(main, signal.SIGINT) or [])  # type: ignore[func-returns-value]
    w = torch.ones(1, requires_grad=True)
    try:
        with pytest.raises(error) as raised:
            w.sum().backward()
    finally:
        signal.signal(signal.SIGINT, before)
    files = {frame.filename for frame in traceback.extract_tb(raised.value.__traceback__)}
    assert not any("gradtui/probe" in name and "tests" not in name for name in files)
    assert probed.all(BackwardEnded) == []
