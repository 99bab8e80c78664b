"""Accumulation windows and clipping: each fault beside its nearest innocent twin."""

from __future__ import annotations

from typing import Any

import pytest

from gradtui.rules import JudgeSettings, Thresholds
from tests.rules.builders import Run, gan, model


def windows(run: Run, *sizes: int, **about: Any) -> Run:
    """Accumulation windows of these sizes, cleared after each step."""
    for size in sizes:
        for _ in range(size):
            run.backward(**about)
        run.step()
        run.zero()
    return run


# -- accumulation -----------------------------------------------------------------------------------------------------


def test_summed_mean_losses_of_many_micro_batches_are_told():
    run = windows(model(), 8, 8, 8)
    finding = run.only("accumulation-not-averaged")
    assert (finding.severity, finding.first.kind, finding.first.ordinal) == ("warning", "step", 1)
    assert finding.site.line == 20
    assert len(finding.parameters) == 4


@pytest.mark.parametrize("about", [{"divisor": 8.0}, {"divisor": 16.0}, {"reduction": "sum", "divisor": 320.0}])
def test_losses_divided_by_about_their_number_are_right(about):
    assert windows(model(), 8, 8, 8, **about).end() == []


def test_a_sum_reduction_is_worth_a_word_only():
    assert windows(model(), 8, 8, reduction="sum").loud() == set()


def test_gradients_divided_by_hand_are_right():
    run = model()
    for _ in range(3):
        for _ in range(4):
            run.backward()
        run.edit_gradients(factor=0.25)
        run.step()
        run.zero()
    assert run.end() == []


def test_losses_from_several_lines_are_no_micro_batches():
    run = model()
    for _ in range(3):
        for line in (20, 21, 22):
            run.backward(line=line, loss=f"loss_{line}")
        run.step()
        run.zero()
    assert run.end() == []


def test_several_heads_of_one_forward_pass_are_no_micro_batches():
    run = model()
    for _ in range(3):
        for last in (False, False, True):
            run.backward(retain_graph=not last)
        run.step()
        run.zero()
    assert run.loud() == set()


def test_left_over_batches_that_leak_are_told_at_the_step_that_used_them():
    finding = windows(model(), 8, 8, 15, 8, 8, 15, 8, divisor=8.0).only("irregular-window")
    assert (finding.severity, finding.first.kind, finding.first.ordinal) == ("warning", "step", 3)
    assert finding.count == 2


@pytest.mark.parametrize("sizes", [(4, 4, 4, 3, 4, 4, 4, 3), (4, 4, 4, 8, 8, 8), (3, 5, 4, 6, 2), (1, 1, 1, 1)])
def test_tails_schedules_and_free_windows_are_right(sizes):
    assert windows(model(), *sizes, divisor=4.0).loud() == set()


def test_micro_batches_of_different_size_are_worth_a_word():
    run = model()
    for _ in range(3):
        for elements in (100, 900):
            run.backward(divisor=2.0, elements=elements)
        run.step()
        run.zero()
    assert run.only("accumulation-weighting").severity == "info"


def test_clipping_inside_the_window_is_told():
    run = model()
    for _ in range(3):
        for _ in range(4):
            run.backward(divisor=4.0)
            run.clip()
        run.step()
        run.zero()
    finding = run.only("clip-inside-window")
    assert finding.site.line == 25
    assert run.loud() == {"clip-inside-window"}


def test_clipping_each_sample_into_a_buffer_of_its_own_is_right():
    run = model()
    for _ in range(3):
        for _ in range(4):
            run.zero()
            run.backward()
            run.clip()
        run.zero()
        run.edit_gradients(how="replaced")
        run.step()
    assert run.loud() == set()


# -- where the clip stands --------------------------------------------------------------------------------------------


def test_clipping_after_the_step_is_useless():
    run = model()
    for _ in range(3):
        run.zero()
        run.backward()
        run.step()
        run.clip()
    finding = run.only("clip-after-step")
    assert (finding.severity, finding.first.kind, finding.first.ordinal) == ("error", "clip", 1)
    assert finding.site.line == 25
    assert len(finding.parameters) == 4


def test_measuring_the_norm_after_the_step_is_right():
    run = model()
    for _ in range(3):
        run.zero()
        run.backward()
        run.step()
        run.clip(limit=float("inf"))
    assert run.loud() == set()


def test_clipping_between_the_steps_of_two_optimizers_is_right():
    run = gan()
    for _ in range(3):
        run.zero("opt_g")
        run.zero("opt_d")
        run.backward()
        run.clip("g.weight", "g.bias")
        run.step("opt_g")
        run.clip("d.weight", "d.bias", line=26)
        run.step("opt_d")
    assert run.loud() == set()


def test_clipping_before_backward_has_nothing_to_clip():
    run = model()
    for _ in range(3):
        run.zero()
        run.clip()
        run.backward()
        run.step()
    assert run.only("clip-without-gradient").severity == "error"


def test_a_clip_that_now_and_then_finds_nothing_is_right():
    run = gan()
    for i in range(9):
        run.zero("opt_g")
        run.zero("opt_d")
        run.backward(*(("g.weight", "g.bias") if i % 3 == 0 else ("d.weight", "d.bias")))
        run.clip("d.weight", "d.bias")
        run.step("opt_d" if i % 3 else "opt_g")
    assert "clip-without-gradient" not in run.loud()


def test_a_used_up_generator_covers_nothing():
    run = model()
    for _ in range(3):
        run.zero()
        run.backward()
        run.clip(given=0, norm=0.0)
        run.step()
    finding = run.only("clip-covers-nothing")
    assert (finding.first.kind, finding.first.ordinal) == ("clip", 1)
    assert len(finding.parameters) == 4


def test_an_empty_group_beside_a_clip_of_the_rest_is_right():
    run = model()
    for _ in range(3):
        run.zero()
        run.backward()
        run.clip()
        run.clip(given=0, norm=0.0, line=26)
        run.step()
    assert run.loud() == set()


def test_clipping_one_of_two_networks_that_step_together_is_told():
    run = model("encoder.weight", "decoder.weight")
    for _ in range(3):
        run.zero()
        run.backward()
        run.clip("encoder.weight")
        run.step()
    finding = run.only("clip-partial")
    assert finding.parameters == ("decoder.weight",)
    assert finding.severity == "warning"


def test_two_clips_that_cover_everything_together_are_right():
    run = model("encoder.weight", "decoder.weight")
    for _ in range(3):
        run.zero()
        run.backward()
        run.clip("encoder.weight")
        run.clip("decoder.weight", line=26)
        run.step()
    assert run.end() == []


@pytest.mark.parametrize(("norm", "rules"), [(50.0, {"clip-always-active"}), (3.0, set())])
def test_only_clips_that_shrink_by_far_are_worth_a_word(norm, rules):
    run = model(settings=JudgeSettings(thresholds=Thresholds(always_clipped=10)))
    for _ in range(15):
        run.zero()
        run.backward()
        run.clip(norm=norm)
        run.step()
    assert {finding.rule for finding in run.end()} == rules
