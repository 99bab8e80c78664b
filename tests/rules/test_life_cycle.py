"""The life cycle of a gradient: each fault beside its nearest innocent twin."""

from __future__ import annotations

import pytest

from tests.rules.builders import ALL, NAN, Run, gan, model

# -- stale-gradient ---------------------------------------------------------------------------------------------------


def test_a_loop_that_clears_before_backward_is_right():
    assert model().loop(5).loud() == set()


def test_a_loop_that_clears_after_step_is_right():
    run = model()
    for _ in range(5):
        run.backward()
        run.step()
        run.zero()
    assert run.loud() == set()


def test_missing_zero_grad_is_stale_from_the_second_backward():
    run = model()
    for _ in range(4):
        run.backward()
        run.step()
    finding = run.only("stale-gradient")
    assert finding.severity == "error"
    assert (finding.first.kind, finding.first.ordinal) == ("backward", 2)
    assert finding.count == 3
    assert finding.parameters == ("model.a.weight", "model.a.bias", "model.b.weight", "model.b.bias")
    assert finding.site.line == 20
    assert 30 in {site.line for site in finding.related}


def test_a_stale_sum_is_only_suspected_until_a_step_uses_it():
    run = model().loop(1)
    (changed,) = run.backward()
    assert (changed.rule, changed.status) == ("stale-gradient", "suspected")
    (changed,) = [finding for finding in run.step() if finding.rule == "stale-gradient"]
    assert changed.status == "confirmed"


def test_a_stale_sum_that_is_cleared_unused_is_withdrawn():
    run = gan()
    for _ in range(4):
        run.zero("opt_d")
        run.backward("d.weight", "d.bias", loss="d_loss", line=21)
        run.step("opt_d", line=31)
        run.zero("opt_g")
        run.backward(*ALL, loss="g_loss", line=22)
        run.step("opt_g", line=32)
    assert run.loud() == set()
    assert {finding.rule for finding in run.end()} == {"gradient-wasted"}


def test_only_the_optimizer_that_is_not_cleared_is_named():
    run = gan()
    for _ in range(4):
        run.zero("opt_d")
        run.backward(*ALL)
        run.step("opt_g", line=31)
        run.step("opt_d", line=32)
    assert run.only("stale-gradient").parameters == ("g.weight", "g.bias")


def test_clearing_too_rarely_is_stale():
    run = model()
    for i in range(12):
        if i % 4 == 0:
            run.zero()
        run.backward()
        run.step()
    assert run.only("stale-gradient").count == 9


def test_two_losses_and_no_clear_are_one_fault():
    run = model()
    for _ in range(3):
        run.backward("model.a.weight", "model.a.bias", loss="one", line=20)
        run.backward(loss="two", line=21)
        run.step()
    finding = run.only("stale-gradient")
    assert len(finding.parameters) == 4


def test_gradients_decayed_by_hand_are_meant():
    run = model()
    run.backward()
    run.step()
    for _ in range(4):
        run.edit_gradients(factor=0.5)
        run.backward()
        run.step()
    assert run.loud() == set()
    assert run.only("decayed-gradient").severity == "info"


def test_an_edit_before_the_step_does_not_excuse_a_missing_clear():
    run = model()
    for _ in range(4):
        run.backward()
        run.edit_gradients(factor=0.5)
        run.step()
    assert run.loud() == {"stale-gradient"}


def test_a_hand_written_update_without_a_clear_is_stale():
    run = Run().inputs("w", "b")
    for _ in range(3):
        run.backward()
        run.update_by_hand()
    finding = run.only("stale-gradient")
    assert finding.parameters == ("w", "b")


def test_a_hand_written_update_that_clears_is_right():
    run = Run().inputs("w", "b")
    for _ in range(3):
        run.backward()
        run.update_by_hand()
        run.zero("", "w", "b", line=36)
    assert run.loud() == set()


def test_lbfgs_that_clears_outside_its_closure_is_stale():
    run = Run().parameters("model.a", "model.b").optimizer("optimizer", kind="LBFGS")
    for _ in range(2):
        run.zero()
        run.closure_step(4, clear_inside=False)
    finding = run.only("stale-gradient")
    assert (finding.first.kind, finding.first.ordinal) == ("backward", 2)
    assert "closure" in finding.fix


def test_lbfgs_that_clears_inside_its_closure_is_right():
    run = Run().parameters("model.a", "model.b").optimizer("optimizer", kind="LBFGS")
    for _ in range(3):
        run.closure_step(4)
    assert run.end() == []


def test_a_kept_gradient_of_an_unused_head_is_stale():
    run = model("model.trunk", "model.one", "model.two")
    for head in ("model.one", "model.two", "model.one"):
        run.zero("", "model.trunk", by="module")
        run.backward("model.trunk", head)
        run.step()
    assert run.loud() == {"stale-gradient"}


# -- gradient-discarded -----------------------------------------------------------------------------------------------


def test_zero_grad_between_backward_and_step_discards_everything():
    run = model()
    for _ in range(4):
        run.backward()
        run.zero()
        run.step()
    finding = run.only("gradient-discarded")
    assert (finding.first.kind, finding.first.ordinal) == ("zero_grad", 1)
    assert finding.site.line == 10
    assert run.loud() == {"gradient-discarded"}


def test_zero_grad_between_two_losses_discards_the_first():
    run = model()
    for _ in range(4):
        run.zero()
        run.backward("model.a.weight", loss="first", line=20)
        run.zero(line=11)
        run.backward("model.b.weight", loss="second", line=21)
        run.step()
    finding = run.only("gradient-discarded")
    assert finding.first.ordinal == 2
    assert finding.parameters == ("model.a.weight",)
    assert finding.site.line == 11


def test_zero_grad_in_the_micro_batch_loop_discards_all_but_the_last():
    run = model()
    for _ in range(3):
        for _ in range(4):
            run.zero()
            run.backward()
        run.step()
    assert run.only("gradient-discarded").count == 9


def test_an_unfinished_window_cleared_at_the_next_epoch_is_discarded():
    run = model()
    for _ in range(3):
        run.zero(line=9)
        for i in range(1, 11):
            run.backward(divisor=4.0)
            if i % 4 == 0:
                run.step()
                run.zero()
    finding = run.only("gradient-discarded")
    assert finding.severity == "error"
    assert finding.site.line == 9


def test_a_gradient_with_a_graph_of_its_own_is_used_through_it():
    """A penalty on the gradient: backward(create_graph=True), something computed from .grad, .grad cleared."""
    run = model()
    for _ in range(4):
        run.zero()
        run.backward(create_graph=True, line=20)
        run.zero(line=11)
        run.backward(loss="penalty", line=21)
        run.step()
    assert run.loud() == set()


def test_an_optimizer_that_never_steps_discards_everything():
    run = model()
    for _ in range(5):
        run.zero()
        run.backward()
        run.schedule()
    assert run.loud() == {"gradient-discarded"}


def test_a_backward_that_other_parameters_used_is_only_wasted_in_part():
    run = gan()
    for _ in range(3):
        run.zero("opt_g")
        run.zero("opt_d")
        run.backward(*ALL, loss="g_loss")
        run.step("opt_g")
    assert run.loud() == set()


def test_attacking_an_input_discards_nothing_that_matters():
    run = model().inputs("delta")
    for _ in range(3):
        for _ in range(5):
            run.backward(line=21)
            run.update_by_hand("delta")
            run.zero("", "delta")
        run.zero()
        run.backward(*list(run.ids)[:4])
        run.step()
    assert run.loud() == set()


def test_gradients_of_its_own_making_excuse_what_was_thrown_away():
    run = model()
    for _ in range(4):
        for line in (20, 21):
            run.zero()
            run.backward(line=line)
        run.zero(line=12)
        run.edit_gradients(how="replaced")
        run.step()
    assert run.loud() == set()


def test_sam_uses_its_first_gradient_to_move_the_weights():
    run = model()
    for _ in range(4):
        run.backward(line=20)
        run.update_by_hand()
        run.zero()
        run.backward(line=22)
        run.update_by_hand()
        run.step()
        run.zero()
    assert run.loud() == set()


def test_a_step_skipped_for_nan_discards_nothing():
    run = model()
    for i in range(12):
        run.zero()
        bad = i % 5 == 2
        run.backward(norm=NAN if bad else 1.0, value=NAN if bad else 0.5)
        run.clip()
        if not bad:
            run.step()
    assert run.loud() == set()


def test_measuring_gradients_between_training_phases_is_no_fault():
    run = model()
    for _ in range(3):
        run.loop(10)
        for _ in range(30):
            run.zero(line=50)
            run.backward(loss="likelihood", line=51)
    assert run.loud() == set()


def test_one_backward_to_warm_up_is_no_fault():
    run = model()
    run.backward(line=5)
    run.zero(line=6)
    assert run.loop(6).loud() == set()


def test_a_step_that_is_skipped_now_and_then_is_worth_a_word_only():
    run = gan()
    for i in range(30):
        run.zero("opt_d")
        run.backward("d.weight", "d.bias", line=21)
        if i not in (4, 5, 11, 19):
            run.step("opt_d", line=31)
        run.zero("opt_g", line=11)
        run.backward(*ALL, line=22)
        run.step("opt_g", line=32)
    assert run.loud() == set()
    assert run.only("gradient-discarded").severity == "info"


# -- step-without-gradient, step-repeats-gradient ----------------------------------------------------------------------


def test_steps_without_any_backward_have_nothing_to_apply():
    run = model()
    for _ in range(3):
        run.zero()
        run.step()
    finding = run.only("step-without-gradient")
    assert finding.severity == "error"
    assert finding.first.ordinal == 1


def test_steps_on_zeros_just_cleared_have_nothing_to_apply():
    run = model()
    for _ in range(3):
        run.backward()
        run.zero(how="zeros")
        run.step()
    assert "step-without-gradient" in {finding.rule for finding in run.end()}


def test_a_step_in_a_phase_that_trains_something_else_is_worth_a_word_only():
    run = gan()
    for i in range(10):
        run.zero("opt_g")
        run.zero("opt_d")
        run.backward(*(ALL if i > 2 else ALL[:2]))
        run.step("opt_g")
        run.step("opt_d", line=31)
    assert run.loud() == set()


def test_stepping_the_wrong_optimizer_repeats_a_gradient():
    run = gan()
    for _ in range(4):
        run.zero("opt_g")
        run.backward("g.weight", "g.bias", loss="teacher", line=20)
        run.step("opt_g", line=30)
        run.zero("opt_d", line=11)
        run.backward("d.weight", "d.bias", loss="student", line=21)
        run.step("opt_g", line=31)
    finding = run.only("step-repeats-gradient")
    assert (finding.first.kind, finding.first.ordinal) == ("step", 2)
    assert finding.site.line == 31
    assert finding.parameters == ("g.weight", "g.bias")
    assert "opt_d.step()" in finding.fix
    assert run.loud() == {"step-repeats-gradient"}


def test_two_optimizers_that_share_a_parameter_may_both_step():
    run = Run().parameters("model.a", "model.b").optimizer("one").optimizer("two", "model.b")
    for _ in range(4):
        run.zero("one")
        run.backward()
        run.step("one")
        run.step("two", line=31)
    assert run.loud() == set()


def test_an_edit_between_two_steps_is_an_algorithm():
    run = model()
    for _ in range(4):
        run.zero()
        run.backward()
        run.step()
        run.edit_gradients(how="replaced")
        run.step(line=31)
    assert run.loud() == set()


# -- gradient-never-stepped --------------------------------------------------------------------------------------------


def accumulate(run: Run, batches: int, size: int = 4) -> Run:
    for i in range(1, batches + 1):
        run.backward(divisor=float(size))
        if i % size == 0:
            run.step()
            run.zero()
    return run


def test_a_last_window_without_a_step_is_told():
    finding = accumulate(model(), 11).only("gradient-never-stepped")
    assert (finding.severity, finding.first.kind, finding.count) == ("warning", "end", 3)


def test_windows_that_come_out_even_leave_nothing():
    assert accumulate(model(), 12).loud() == set()


def test_a_run_that_was_interrupted_leaves_gradients_without_fault():
    assert accumulate(model(), 11).loud(exit_code=130) == set()


def test_a_script_that_only_looks_at_gradients_gets_a_word_only():
    run = model()
    run.backward()
    assert run.loud() == set()


# -- mixed-gradient, validation-backward -------------------------------------------------------------------------------


def test_gradients_left_behind_and_carried_into_the_next_step_are_mixed():
    run = gan()
    for _ in range(4):
        run.zero("opt_g")
        run.backward(*ALL, loss="g_loss", line=20)
        run.step("opt_g", line=30)
        run.backward("d.weight", "d.bias", loss="d_loss", line=21)
        run.step("opt_d", line=31)
        run.zero("opt_d", line=11)
    finding = run.only("mixed-gradient")
    assert (finding.severity, finding.first.kind, finding.first.ordinal) == ("warning", "backward", 2)
    assert finding.parameters == ("d.weight", "d.bias")


def test_two_losses_in_one_window_of_one_network_are_told():
    run = gan()
    for _ in range(3):
        run.backward(*ALL, loss="g", line=20)
        run.backward("d.weight", "d.bias", loss="d", line=21)
        for name in ("opt_g", "opt_d"):
            run.step(name)
            run.zero(name)
    finding = run.only("mixed-gradient")
    assert finding.severity == "info"
    assert finding.parameters == ("d.weight", "d.bias")


def test_one_loss_and_several_optimizers_in_a_row_are_right():
    run = gan()
    for _ in range(4):
        run.zero("opt_g")
        run.zero("opt_d")
        run.backward(*ALL)
        run.step("opt_g")
        run.step("opt_d", line=31)
    assert run.end() == []


def test_a_validation_backward_that_training_uses_is_an_error():
    run = model()
    for _ in range(3):
        run.zero()
        run.backward()
        run.step()
        run.zero()
        run.backward(line=60, loss="val_loss", training="eval")
        run.backward()
        run.step()
    finding = run.only("validation-backward")
    assert finding.site.line == 60


def test_an_eval_backward_that_is_cleared_is_no_fault():
    run = model().inputs("x")
    for _ in range(3):
        run.backward(line=60, training="eval")
        run.zero()
        run.backward(*list(run.ids)[:4])
        run.step()
    assert run.loud() == set()


# -- leaf-replaced, parameter-changed-in-backward, poisoned-gradient-kept ----------------------------------------------


def test_an_update_that_rebinds_its_variable_is_named_by_it():
    run = Run().inputs("w", "b")
    run.backward()
    run.update_by_hand(rebound=("w", "b"))
    run.backward()
    finding = run.only("leaf-replaced")
    assert finding.parameters == ("w", "b")
    assert (finding.first.kind, finding.first.ordinal) == ("backward", 2)
    assert run.loud(exit_code=1) == {"leaf-replaced"}


def test_fast_weights_of_a_meta_learner_are_no_replaced_leaves():
    run = Run().inputs("w").optimizer("meta")
    for _ in range(3):
        run.zero()
        run.update_by_hand("w", rebound=("w",))
        run.backward()
        run.step()
    assert run.loud() == set()


def test_a_parameter_that_changes_in_a_backward_is_an_error():
    from gradtui import events as ev

    run = model()
    for _ in range(2):
        run.zero()
        run.calls += 1
        run.feed(ev.BackwardStarted(loss="loss", call=run.calls, ordinal=run.counts.get("backward", 0) + 1))
        run.inside = run.calls
        run.update_by_hand("model.a.weight")
        run.inside = 0
    assert run.loud() >= {"parameter-changed-in-backward"}


def test_nan_gradients_kept_after_a_skipped_step_poison_what_follows():
    run = model()
    for i in range(1, 17):
        bad = i == 8
        run.backward(divisor=2.0, norm=NAN if bad else 1.0, value=NAN if bad else 0.5)
        if i % 2 == 0:
            run.clip()
            if i < 8:
                run.step()
                run.zero()
    finding = run.only("poisoned-gradient-kept")
    assert (finding.first.kind, finding.first.ordinal) == ("backward", 8)
    assert len(finding.parameters) == 4
    assert run.loud() == {"poisoned-gradient-kept"}


@pytest.mark.parametrize("window", [1, 2, 4])
def test_nan_gradients_cleared_with_the_skipped_step_are_handled(window):
    run = model()
    for i in range(1, 25):
        bad = i == 9
        run.backward(divisor=float(window), norm=NAN if bad else 1.0)
        if i % window == 0:
            run.clip()
            if all(norm == norm for norm in run.grads.values()):
                run.step()
            run.zero()
    assert run.loud() == set()
