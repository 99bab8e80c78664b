"""GradScaler and half precision: each fault beside its nearest innocent twin."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.builders import NAN, Run, model

SCALE = 1024.0


def scaled(run: Run, **about: Any) -> None:
    run.zero()
    run.backward(scale=SCALE, value=500.0, **about)


def test_a_scaler_used_as_documented_is_right():
    run = model()
    for _ in range(4):
        scaled(run)
        run.unscale()
        run.clip()
        run.scaler_step()
        run.update()
    assert run.end() == []


def test_clipping_scaled_gradients_is_an_error():
    run = model()
    for _ in range(3):
        scaled(run)
        run.clip()
        run.scaler_step()
        run.update()
    finding = run.only("clip-before-unscale")
    assert (finding.severity, finding.first.kind, finding.first.ordinal) == ("error", "clip", 1)
    assert "unscale_(optimizer)" in finding.fix


def test_stepping_on_scaled_gradients_is_an_error():
    run = model()
    for _ in range(3):
        scaled(run)
        run.step()
    finding = run.only("step-on-scaled-gradient")
    assert (finding.first.kind, finding.first.ordinal) == ("step", 1)
    assert len(finding.parameters) == 4


def test_stepping_by_hand_after_unscaling_is_right():
    run = model()
    for _ in range(3):
        scaled(run)
        run.unscale()
        run.step()
        run.update()
    assert "step-on-scaled-gradient" not in run.loud()


def test_a_scaler_that_is_never_updated_raises_and_is_explained():
    run = model()
    scaled(run)
    run.scaler_step()
    scaled(run)
    run.raised("scaler_step", "step() has already been called since the last update().", line=30)
    finding = run.only("scaler-never-updated")
    assert (finding.first.kind, finding.first.ordinal) == ("backward", 2)
    assert finding.site.line == 30
    assert run.loud(exit_code=1) == {"scaler-never-updated"}


def test_one_scaler_for_two_optimizers_is_updated_once():
    run = Run().parameters("g.weight", "d.weight").optimizer("opt_g", "g.weight").optimizer("opt_d", "d.weight")
    for _ in range(4):
        run.zero("opt_d")
        run.backward("d.weight", scale=SCALE, line=20)
        run.scaler_step("opt_d")
        run.zero("opt_g")
        run.backward("g.weight", "d.weight", scale=SCALE, line=21)
        run.scaler_step("opt_g", line=31)
        run.update()
    assert run.loud() == set()


def test_unscaling_inside_the_window_is_an_error():
    run = model()
    for _ in range(3):
        run.zero()
        for _ in range(3):
            run.backward(scale=SCALE, divisor=3.0)
            run.unscale()
        run.scaler_step()
        run.update()
    assert run.loud() == {"unscale-inside-window"}


def test_an_unscaled_loss_under_a_scaler_is_an_error():
    run = model()
    for _ in range(3):
        run.zero()
        run.backward()
        run.scaler_step()
        run.update()
    finding = run.only("unscaled-backward")
    assert finding.site.line == 20
    assert finding.severity == "error"


def test_a_scaler_that_skips_forever_is_an_error_since_the_first_bad_backward():
    run = model()
    for _ in range(10):
        scaled(run, norm=NAN)
        run.scaler_step(ran=False)
        run.update()
    finding = run.only("scaler-always-skips")
    assert (finding.first.kind, finding.first.ordinal) == ("backward", 1)
    assert finding.count == 10
    assert run.loud() == {"scaler-always-skips"}


@pytest.mark.parametrize("skips", [1, 4, 7])
def test_a_scaler_that_calibrates_is_right(skips):
    run = model()
    for i in range(20):
        scaled(run, norm=NAN if i < skips else 1.0)
        run.scaler_step(ran=i >= skips)
        run.update()
        run.schedule(after=0.1)
    assert run.loud() == set()


def test_half_precision_gradients_that_are_all_zero_underflow():
    run = Run().parameters("model.weight", dtype="float16").optimizer("optimizer")
    run.loop(12, norm=0.0, value=4e-7)
    finding = run.only("fp16-underflow")
    assert (finding.first.kind, finding.first.ordinal) == ("backward", 1)
    assert run.loud() == {"fp16-underflow"}


def test_a_zero_gradient_of_a_perfect_fit_is_no_underflow():
    run = Run().parameters("model.weight", dtype="float16").optimizer("optimizer")
    assert "fp16-underflow" not in run.loop(12, norm=0.0, value=0.0).loud()


def test_a_scaler_that_never_scaled_refuses_and_is_explained():
    run = model()
    run.zero()
    run.backward()
    run.raised(
        "scaler_step",
        "Attempted unscale_ but _scale is None.  This may indicate your script did not use scaler.scale(loss or outputs) earlier in the iteration.",
    )
    assert run.loud(exit_code=1) == {"unscaled-backward"}
