"""The health of the numbers: each fault beside its nearest innocent twin."""

from __future__ import annotations

import pytest

from gradtui import events as ev
from tests.rules.builders import NAN, Run, at, model


def test_nan_that_a_step_uses_is_an_error_since_its_backward():
    run = model().loop(3)
    run.zero()
    run.backward(norm={"model.a.weight": NAN, "model.a.bias": NAN})
    run.step()
    run.loop(3, norm=NAN, value=NAN)
    finding = run.only("nonfinite-gradient")
    assert (finding.severity, finding.first.kind, finding.first.ordinal) == ("error", "backward", 4)
    assert finding.parameters == ("model.a.weight", "model.a.bias")
    assert "loss was still finite" in finding.message
    assert run.loud() == {"nonfinite-gradient"}


def test_nan_that_is_thrown_away_is_worth_a_word():
    run = model().loop(3)
    run.zero()
    run.backward(norm=NAN)
    run.clip()
    run.loop(3)
    assert run.only("nonfinite-gradient").severity == "info"


def test_the_operation_that_made_nan_is_named_when_it_is_known():
    run = model().loop(1)
    run.zero()
    run.backward(norm=NAN)
    run.feed(
        ev.NonfiniteOrigin(
            op="SqrtBackward0", module="model.a", forward=at(7, "d.sqrt()"), cause="sqrt at 0", ordinal=2
        )
    )
    run.step()
    finding = run.only("nonfinite-gradient")
    assert finding.site.line == 7
    assert "SqrtBackward0" in finding.fix


def test_a_loss_that_is_nan_comes_before_its_gradients():
    run = model().loop(2)
    run.loop(2, norm=NAN, value=NAN)
    assert run.loud() == {"nonfinite-loss"}


def test_a_jump_of_the_norm_that_ends_in_nan_is_an_explosion():
    run = model().loop(10)
    run.loop(1, norm=1e5)
    run.loop(2, norm=NAN, value=NAN)
    finding = run.only("exploding-gradient")
    assert finding.first.ordinal == 11
    assert run.loud() == {"exploding-gradient"}


def test_a_huge_first_gradient_that_ends_in_nan_is_an_explosion_of_what_carries_it():
    run = model()
    run.loop(
        1, value=8e9, norm={"model.a.weight": 5e11, "model.a.bias": 6e9, "model.b.weight": 4e10, "model.b.bias": 0.5}
    )
    run.loop(2, norm=NAN, value=NAN)
    assert run.only("exploding-gradient").parameters == ("model.a.weight", "model.a.bias")


@pytest.mark.parametrize("after", [1.0, 0.1])
def test_a_jump_that_does_no_harm_is_no_explosion(after):
    run = model().loop(10)
    run.loop(1, norm=1e5)
    run.loop(25, norm=after)
    assert run.loud() == set()


def test_a_large_sum_of_squares_is_no_explosion():
    assert model().loop(30, norm=1e6, value=1e9).loud() == set()


def deep(layers: int, factor: float) -> Run:
    names = [f"model.{i}.weight" for i in range(layers)]
    run = model(*names)
    return run.loop(8, norm={name: factor ** (layers - i) for i, name in enumerate(names)})


def test_a_gradient_that_fades_over_the_layers_is_told():
    finding = deep(12, 0.1).only("vanishing-gradient")
    assert "model.0.weight" in finding.parameters
    assert "model.11.weight" not in finding.parameters


@pytest.mark.parametrize("factor", [0.8, 0.4])
def test_a_gradient_that_fades_a_little_is_ordinary(factor):
    assert deep(12, factor).loud() == set()


def test_a_model_whose_every_gradient_is_zero_is_dead():
    run = model().loop(10, norm=0.0)
    finding = run.only("dead-gradient")
    assert (finding.severity, finding.first.ordinal) == ("error", 1)
    assert run.loud() == {"dead-gradient"}


def test_a_module_that_stays_at_zero_is_dead():
    run = model().loop(10, norm={"model.a.weight": 0.0, "model.a.bias": 0.0})
    assert run.only("dead-gradient").parameters == ("model.a.weight", "model.a.bias")


def test_a_zero_initialised_branch_wakes_up():
    run = model().loop(2, norm={"model.a.weight": 0.0, "model.a.bias": 0.0})
    assert run.loop(10).end() == []


def test_recurrent_weights_at_a_zero_state_are_worth_a_word_only():
    run = model("model.weight_hh", "model.bias_hh").loop(10, norm={"model.weight_hh": 0.0})
    assert run.loud() == set()


def test_a_step_that_makes_nan_of_finite_gradients_is_blamed():
    run = model()
    run.zero()
    run.backward()
    run.step(nonfinite=(1, 2))
    run.loop(2, norm=NAN, value=NAN)
    assert run.loud() == {"nonfinite-parameter"}


@pytest.mark.parametrize(("ratio", "rules"), [(1e-8, {"update-ratio"}), (1e-3, set()), (0.5, {"update-ratio"})])
def test_updates_far_out_of_range_are_worth_a_word(ratio, rules):
    run = model()
    for _ in range(30):
        run.zero()
        run.backward()
        run.step(ratios=(ratio,) * 4)
    assert {finding.rule for finding in run.end()} == rules


def test_one_batch_again_and_again_is_told():
    run = model()
    for _ in range(6):
        for _ in range(4):
            run.backward(same=True, divisor=4.0)
        run.step()
        run.zero()
    assert run.loud() == {"same-gradient-again"}
