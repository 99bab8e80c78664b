"""The gradient control summary on loops of many shapes."""

from __future__ import annotations

from gradtui.ledger.summary import ControlSummary, summarise
from tests.rules.builders import ALL, NAN, Run, gan, model


def summary(run: Run) -> ControlSummary:
    return summarise(run.judge.ledger.of(0))


def windows(run: Run, *sizes: int, **about: float) -> Run:
    for size in sizes:
        for _ in range(size):
            run.backward(**about)  # type: ignore[arg-type]
        run.step()
        run.zero()
    return run


def test_an_ordinary_loop():
    found = summary(model().loop(5))
    assert (found.accumulate, found.averaged, found.amp, found.clip) == (1, "", False, "")
    assert found.verdict == "Each step of `optimizer` uses one backward; gradients are cleared at train.py:10."


def test_accumulation_with_averaged_losses():
    found = summary(windows(model(), 4, 4, 4, divisor=4.0))
    assert (found.accumulate, found.averaged) == (4, "averaged")
    assert "uses 4 backwards, averaged" in found.verdict


def test_accumulation_with_summed_losses():
    found = summary(windows(model(), 4, 4, 4))
    assert (found.accumulate, found.averaged) == (4, "summed")
    assert "summed and not averaged" in found.verdict


def test_a_shorter_last_window_does_not_change_the_size():
    found = summary(windows(model(), 4, 4, 4, 3, divisor=4.0))
    assert found.accumulate == 4
    assert found.optimizers[0].windows == ((4, 3), (3, 1))


def test_two_losses_are_no_accumulation():
    run = model()
    for _ in range(3):
        run.zero()
        run.backward(line=20)
        run.backward(line=21)
        run.step()
    found = summary(run)
    assert (found.averaged, found.optimizers[0].window) == ("", 2)


def test_clipping_before_the_step():
    run = model()
    for _ in range(3):
        run.zero()
        run.backward()
        run.clip(limit=0.5)
        run.step()
    found = summary(run)
    assert (found.clip, found.clip_place) == ("norm 0.5", "before step")


def test_clipping_after_the_step():
    run = model()
    for _ in range(3):
        run.zero()
        run.backward()
        run.step()
        run.clip()
    assert summary(run).clip_place == "after step"


def test_mixed_precision():
    run = model()
    for _ in range(3):
        run.zero()
        run.backward(scale=1024.0)
        run.scaler_step()
        run.update()
    found = summary(run)
    assert found.amp
    assert found.optimizers[0].scaled


def test_mixed_precision_that_skips_everything():
    run = model()
    for _ in range(3):
        run.zero()
        run.backward(scale=1024.0, norm=NAN)
        run.scaler_step(ran=False)
        run.update()
    assert summary(run).amp
    assert "no step was ever taken" in summary(run).verdict.lower()


def test_a_gan():
    run = gan()
    for _ in range(3):
        run.zero("opt_d", line=10)
        run.backward("d.weight", "d.bias")
        run.step("opt_d")
        run.zero("opt_g", line=11)
        run.backward(*ALL, line=21)
        run.step("opt_g", line=31)
    found = summary(run)
    assert [(o.name, o.roots, o.owns, o.steps) for o in found.optimizers] == [
        ("opt_g", ("g",), 2, 3),
        ("opt_d", ("d",), 2, 3),
    ]
    assert "train.py:10 and train.py:11" in found.verdict


def test_a_closure():
    run = Run().parameters("model.a").optimizer("optimizer", kind="LBFGS")
    for _ in range(2):
        run.closure_step(5)
    found = summary(run)
    assert (found.accumulate, "closure" in found.verdict) == (1, True)


def test_hand_written_descent():
    run = Run().inputs("w")
    for _ in range(3):
        run.backward()
        run.update_by_hand()
        run.zero("", "w")
    found = summary(run)
    assert (found.by_hand, found.cleared_by_hand, found.optimizers) == (3, 3, ())
    assert found.verdict == "Parameters are updated by hand, without an optimizer; gradients are cleared by hand."


def test_gradients_made_by_hand():
    run = model()
    for _ in range(3):
        run.zero()
        run.backward()
        run.zero()
        run.edit_gradients(how="replaced")
        run.step()
    assert "made by hand" in summary(run).verdict


def test_no_clear_at_all():
    run = model()
    for _ in range(3):
        run.backward()
        run.step()
    assert "gradients are never cleared" in summary(run).verdict


def test_no_step_at_all():
    run = model()
    for _ in range(3):
        run.zero()
        run.backward()
    assert summary(run).accumulate == 0
    assert "No step was ever taken" in summary(run).verdict


def test_gradients_for_their_own_sake():
    run = Run().parameters("model.a").inputs("x")
    for _ in range(3):
        run.backward()
        run.zero("", "x")
    assert "never used for a step" in summary(run).verdict


def test_one_optimizer_a_parameter_is_said_in_one_line():
    run = Run().parameters(*(f"model.{i}" for i in range(12)))
    for i in range(12):
        run.optimizer(f"adam{i}", f"model.{i}", kind="Adam")
    for _ in range(2):
        run.backward()
        for i in range(12):
            run.step(f"adam{i}")
            run.zero(f"adam{i}")
    assert len(summary(run).optimizers) == 1


def test_nothing():
    assert summary(Run()).verdict == "No gradient call was seen."
