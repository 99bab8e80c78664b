"""Who owns what: each fault beside its nearest innocent twin."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.builders import Run, gan, model

LISTED = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = [nn.Conv1d(4, 4, 3) for _ in range(2)]
"""


def test_a_parameter_of_the_model_that_nobody_owns_is_told():
    run = Run().parameters("model.a", "model.new").optimizer("optimizer", "model.a").loop(4)
    finding = run.only("unowned-gradient")
    assert finding.parameters == ("model.new",)
    assert (finding.first.kind, finding.first.ordinal) == ("backward", 1)


@pytest.mark.parametrize(("norm", "severity"), [(0.1, "warning"), (5.0, "error")])
def test_what_nobody_owns_is_an_error_when_it_holds_most_of_the_gradient(norm, severity):
    run = Run().parameters("model.a", "model.new").optimizer("optimizer", "model.a")
    run.loop(4, norm={"model.new": norm})
    assert run.only("unowned-gradient").severity == severity


def test_another_model_without_an_optimizer_is_no_fault():
    run = Run().parameters("gen.a", "vgg.a").optimizer("optimizer", "gen.a")
    assert run.loop(4).loud() == set()


def test_a_network_that_another_optimizer_owns_is_no_fault():
    run = gan()
    for _ in range(4):
        run.zero("opt_g")
        run.backward()
        run.step("opt_g")
        run.zero("opt_d")
    assert "unowned-gradient" not in run.loud()


def test_a_group_that_is_added_later_is_no_fault():
    run = Run().parameters("model.a", "model.b").optimizer("optimizer", "model.a").loop(3)
    run.optimizer("optimizer", "model.a", "model.b").loop(5)
    assert run.loud() == set()


def test_before_any_optimizer_there_is_nobody_to_own():
    run = Run().parameters("model.a")
    for _ in range(3):
        run.backward()
    assert run.loud() == set()


def test_a_swapped_head_leaves_the_optimizer_with_the_old_one():
    run = Run().parameters("model.a", "model.head").optimizer("optimizer")
    old = run.ids.pop("model.head")
    run.ids["old"] = old
    run.parameters("model.head")
    for _ in range(4):
        run.zero()
        run.backward("model.a", "model.head")
        run.step()
    finding = run.only("stale-optimizer-parameters")
    assert finding.severity == "error"
    assert finding.parameters == ("model.head",)
    assert run.loud() == {"stale-optimizer-parameters"}


def test_parameters_that_nothing_reaches_are_told():
    run = model()
    for _ in range(4):
        run.zero()
        run.backward("model.b.weight", "model.b.bias")
        run.step()
    finding = run.only("owned-without-gradient")
    assert finding.parameters == ("model.a.weight", "model.a.bias")
    assert (finding.severity, finding.first.kind, finding.first.ordinal) == ("warning", "backward", 1)


def test_an_optimizer_of_which_nothing_is_reached_is_an_error():
    run = gan()
    for _ in range(4):
        run.zero("opt_g")
        run.backward("g.weight", "g.bias")
        run.step("opt_g")
        run.step("opt_d", line=31)
    finding = run.only("owned-without-gradient")
    assert finding.severity == "error"
    assert finding.parameters == ("d.weight", "d.bias")
    assert run.loud() == {"owned-without-gradient"}


def test_frozen_parameters_in_an_optimizer_are_right():
    run = Run().parameters("model.frozen", requires_grad=False).parameters("model.head").optimizer("optimizer")
    for _ in range(4):
        run.zero()
        run.backward("model.head")
        run.step(frozen=(1,))
    assert run.end() == []


def test_parameters_that_are_reached_in_a_later_phase_are_right():
    run = model()
    for part in ("model.a.weight", "model.a.bias"), ("model.b.weight", "model.b.bias"):
        for _ in range(5):
            run.zero()
            run.backward(*part)
            run.step()
    assert run.loud() == set()


def test_layers_in_a_plain_list_are_named_with_their_line():
    run = Run(source=LISTED).parameters("model.fc").optimizer("optimizer")
    run.parameters("model.convs[0].weight", "model.convs[1].weight", registered=False)
    run.loop(4)
    finding = run.only("unregistered-parameter")
    assert finding.parameters == ("model.convs[0].weight", "model.convs[1].weight")
    assert finding.site.line == 8
    assert run.loud() == {"unregistered-parameter"}


def test_a_lone_parameter_that_an_optimizer_owns_is_right():
    run = Run().parameters("model.a").parameters("log_alpha", registered=False, root="").optimizer("optimizer")
    assert run.loop(4).loud() == set()


def test_a_loss_without_history_reaches_nothing():
    run = model().inputs("loss")
    for _ in range(3):
        run.zero()
        run.backward("loss", root="", reached=1)
        run.step()
    finding = run.only("backward-reaches-nothing")
    assert finding.parameters == ("model.a.weight", "model.a.bias", "model.b.weight", "model.b.bias")
    assert run.loud() == {"backward-reaches-nothing"}


def test_a_backward_that_only_wants_the_inputs_gradient_is_right():
    run = model().inputs("x")
    for _ in range(3):
        run.zero()
        run.backward("x", line=21)
        run.backward(*list(run.ids)[:4])
        run.step()
    assert run.loud() == set()


def test_a_refused_backward_of_a_cut_graph_is_explained():
    run = model()
    run.raised("backward", "element 0 of tensors does not require grad and does not have a grad_fn")
    assert run.loud(exit_code=1) == {"backward-reaches-nothing"}


def frozen_later(how: str, **settings: Any) -> Run:
    run = Run().parameters("model.low", "model.top").optimizer("optimizer", **settings).loop(2)
    for _ in range(4):
        run.zero(how=how)
        run.backward("model.top")
        run.step(frozen=(1,), unchanged=None)
    return run


def test_a_frozen_parameter_with_zeros_for_a_gradient_still_moves():
    finding = frozen_later("zeros", momentum=0.9).only("frozen-parameter-moves")
    assert finding.parameters == ("model.low",)
    assert (finding.first.kind, finding.first.ordinal) == ("step", 3)


@pytest.mark.parametrize(("how", "momentum"), [("none", 0.9), ("zeros", 0.0)])
def test_a_frozen_parameter_without_gradient_or_momentum_stays(how, momentum):
    assert "frozen-parameter-moves" not in frozen_later(how, momentum=momentum).loud()


@pytest.mark.parametrize(("how", "rules"), [("zeros", {"moves-without-gradient"}), ("none", set())])
def test_an_unused_head_moves_when_its_gradient_is_zeros(how, rules):
    run = Run().parameters("model.one", "model.two").optimizer("optimizer", momentum=0.9).loop(2)
    for _ in range(4):
        run.zero(how=how)
        run.backward("model.one")
        run.step(unchanged=None)
    assert run.loud() == rules


@pytest.mark.parametrize(("about", "rules"), [({}, {"step-changes-nothing"}), ({"lr": (0.0,)}, set())])
def test_steps_that_change_nothing_are_an_error_unless_the_rate_is_zero(about, rules):
    run = model()
    for _ in range(4):
        run.zero()
        run.backward()
        run.step(unchanged=True, **about)
    assert run.loud() == rules
