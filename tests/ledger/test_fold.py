"""What the ledger knows after each event: states, contributions, owners, windows; and that it can be saved anywhere on the way."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradtui import events as ev
from gradtui.errors import WireError
from gradtui.ledger import Ledger, restore, snapshot
from gradtui.ledger.ledger import KEPT_BACKWARDS
from gradtui.ledger.state import KEPT_CONTRIBUTIONS
from tests.rules.builders import ALL, NAN, Run, gan, model


def ledger_of(run: Run) -> Ledger:
    return run.judge.ledger.of(run.process)


def states(run: Run) -> list[str]:
    return [state.state for state in ledger_of(run).parameters.values()]


# -- states and contributions -----------------------------------------------------------------------------------------


def test_a_gradient_goes_from_none_to_fresh_to_spent_to_none():
    run = model("model.a")
    seen = [states(run)]
    for act in (run.backward, run.step, run.zero):
        act()
        seen.append(states(run))
    assert seen == [["none"], ["fresh"], ["spent"], ["none"]]


def test_a_clear_to_zeros_leaves_zeros():
    run = model("model.a")
    run.backward()
    run.zero(how="zeros")
    assert states(run) == ["zero"]
    run.backward()
    assert states(run) == ["fresh"]


def test_a_gradient_stays_spent_when_more_is_added():
    run = model("model.a").loop(1)
    run.backward()
    state = ledger_of(run).parameters[1]
    assert (state.state, state.unused, len(state.contributions)) == ("spent", 1, 2)
    assert [item.used_by > 0 for item in state.contributions] == [True, False]


def test_contributions_tell_loss_line_and_sum():
    run = model("model.a")
    run.backward(norm=3.0, same=True, loss="one", line=20)
    run.backward(norm=4.0, same=True, loss="two", line=21)
    first, second = ledger_of(run).parameters[1].contributions
    assert (first.loss, getattr(first.site, "line", 0), first.before, first.after) == ("one", 20, -1.0, 3.0)
    assert (second.loss, second.before, second.after) == ("two", 3.0, 5.0)
    assert second.cosine == pytest.approx(0.0)


def test_only_the_newest_contributions_are_kept():
    run = model("model.a")
    for _ in range(KEPT_CONTRIBUTIONS + 10):
        run.backward()
    state = ledger_of(run).parameters[1]
    assert (len(state.contributions), state.folded, state.unused) == (KEPT_CONTRIBUTIONS, 10, KEPT_CONTRIBUTIONS + 10)


def test_a_clear_tells_who_made_it():
    run = model("model.a")
    run.backward()
    run.zero(line=12)
    cleared = ledger_of(run).parameters[1].cleared
    assert cleared is not None
    assert (cleared.by, cleared.owner, cleared.site.line if cleared.site else 0, cleared.how) == (
        "optimizer",
        "optimizer",
        12,
        "none",
    )


def test_a_hand_written_update_spends_what_nobody_owns():
    run = Run().inputs("w")
    run.backward()
    run.update_by_hand()
    assert states(run) == ["spent"]


def test_a_hand_written_move_of_an_owned_parameter_leaves_its_gradient_for_the_step():
    run = model("model.a")
    run.backward()
    run.update_by_hand()
    state = ledger_of(run).parameters[1]
    assert (state.state, state.unused, state.waiting) == ("fresh", 0, 1)


def test_the_loss_scale_is_carried_until_it_is_taken_off():
    run = model("model.a")
    run.backward(scale=1024.0)
    assert ledger_of(run).parameters[1].scale == 1024.0
    run.unscale()
    assert ledger_of(run).parameters[1].scale == 1.0


def test_a_step_inside_a_backward_uses_what_has_landed_so_far():
    run = Run().parameters("model.a", "model.b").optimizer("first", "model.a").optimizer("second", "model.b")
    run.feed(ev.BackwardStarted(loss="loss", call=1, ordinal=1))
    for number in (1, 2):
        added = ev.Contributions(parameters=(number,), incoming=(1.0,), before=(-1.0,), after=(1.0,), finite=(True,))
        run.feed(ev.BackwardProgressed(contributions=added, call=1, ordinal=1))
        run.feed(ev.OptimizerStepped(optimizer=number, used=(number,), call=10 + number, parent=1, ordinal=number))
        run.feed(
            ev.GradsZeroed(
                by="optimizer",
                owner="",
                how="none",
                parameters=(number,),
                optimizer=number,
                parent=1,
                call=20 + number,
                ordinal=number,
            )
        )
    run.feed(ev.BackwardEnded(loss="loss", call=1, ordinal=1))
    ledger = ledger_of(run)
    assert states(run) == ["none", "none"]
    assert ledger.backwards[1].used == 2
    assert ledger.counts.backward == 1
    assert [state.windows[-1] for state in ledger.optimizers.values()] == [1, 1]
    assert {state.cleared.by for state in ledger.parameters.values() if state.cleared} == {"backward"}
    assert run.loud() == set()


# -- backwards, optimizers, windows -----------------------------------------------------------------------------------


def test_windows_count_the_backwards_that_made_each_step():
    run = model()
    for size in (1, 3, 2):
        for _ in range(size):
            run.backward()
        run.step()
        run.zero()
    assert list(ledger_of(run).optimizers[1].windows) == [1, 3, 2]


def test_a_backward_that_was_cleared_leaves_the_window():
    run = gan()
    run.backward(*ALL)
    run.step("opt_g")
    run.zero("opt_d")
    run.backward("d.weight", "d.bias")
    run.step("opt_d")
    assert ledger_of(run).optimizers[2].windows[-1] == 1


def test_a_backward_knows_what_became_of_it():
    run = gan()
    run.backward(*ALL)
    run.step("opt_g")
    run.zero("opt_d")
    record = ledger_of(run).backwards[1]
    assert (record.used, record.cleared, record.pending) == (2, 2, 0)
    assert record.used_by_optimizer == 1


def test_owners_follow_the_groups():
    run = Run().parameters("model.a", "model.b").optimizer("optimizer", "model.a")
    run.optimizer("optimizer", "model.a", "model.b")
    assert [state.owners for state in ledger_of(run).parameters.values()] == [(1,), (1,)]
    run.optimizer("optimizer", "model.b")
    assert [state.owners for state in ledger_of(run).parameters.values()] == [(), (1,)]


def test_calls_are_counted_by_kind_and_line():
    run = model().loop(3)
    run.zero("", "model.a.weight", line=70)
    ledger = ledger_of(run)
    assert (ledger.counts.backward, ledger.counts.step, ledger.counts.zero_grad, ledger.counts.zero_grad_by_hand) == (
        3,
        3,
        3,
        1,
    )
    assert [(tally.count, tally.site.line if tally.site else 0) for tally in ledger.lines["step"].values()] == [(3, 30)]


def test_unknown_parameters_and_optimizers_do_not_stop_the_fold():
    ledger = Ledger()
    added = ev.Contributions(parameters=(7,), incoming=(1.0,), before=(-1.0,), after=(1.0,), finite=(True,))
    ledger.apply(ev.BackwardEnded(seq=1, loss="loss", contributions=added))
    ledger.apply(ev.OptimizerStepped(seq=2, optimizer=3, used=(7, 8)))
    assert ledger.parameters[7].state == "spent"


# -- bounds -----------------------------------------------------------------------------------------------------------


def test_a_run_of_many_backwards_keeps_a_bounded_number():
    run = model("model.a")
    ledger = ledger_of(run)
    for ordinal in range(1, KEPT_BACKWARDS + 500):
        added = ev.Contributions(parameters=(1,), incoming=(1.0,), before=(1.0,), after=(1.0,), finite=(True,))
        ledger.apply(ev.BackwardEnded(seq=ordinal, ordinal=ordinal, call=ordinal, loss="loss", contributions=added))
    assert len(ledger.backwards) == KEPT_BACKWARDS
    assert len(ledger.optimizers[1].window) <= KEPT_BACKWARDS


def test_leaves_made_anew_each_time_are_forgotten(monkeypatch):
    monkeypatch.setattr("gradtui.ledger.ledger.KEPT_PARAMETERS", 100)
    run = model("model.a")
    ledger = ledger_of(run)
    for number in range(2, 400):
        info = ev.ParameterInfo(id=number, name="delta", shape=(1,), dtype="float32", device="cpu", is_parameter=False)
        ledger.apply(ev.ParametersSeen(seq=number, parameters=(info,)))
    assert len(ledger.parameters) <= 100
    assert 1 in ledger.parameters


def test_ten_thousand_parameters_fold():
    names = [f"model.{i}" for i in range(10_000)]
    run = model(*names)
    run.loop(1)
    assert states(run) == ["spent"] * 10_000


# -- snapshots --------------------------------------------------------------------------------------------------------

_ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("backward"), st.sets(st.sampled_from(ALL), min_size=1), st.sampled_from([1.0, 0.0, NAN])),
        st.tuples(st.just("step"), st.sampled_from(["opt_g", "opt_d"]), st.booleans()),
        st.tuples(st.just("zero"), st.sampled_from(["opt_g", "opt_d"]), st.sampled_from(["none", "zeros"])),
        st.tuples(st.just("by hand"), st.sets(st.sampled_from(ALL), min_size=1), st.booleans()),
        st.tuples(st.just("closure"), st.integers(1, 3), st.booleans()),
    ),
    max_size=25,
)


def play(acts: list[Any]) -> Run:
    run = gan()
    for what, one, other in acts:
        match what:
            case "backward":
                run.backward(*sorted(one), norm=other, scale=4.0 if len(one) == 2 else 1.0)
            case "step":
                run.scaler_step(one, ran=False) if other else run.step(one)
            case "zero":
                run.zero(one, how=other)
            case "by hand":
                run.edit_gradients(*sorted(one)) if other else run.update_by_hand(*sorted(one))
            case "closure":
                run.closure_step(one, clear_inside=other, optimizer="opt_g")
    return run


@settings(max_examples=60, deadline=None)
@given(acts=_ACTS, cut=st.floats(0, 1))
def test_a_fold_can_be_saved_anywhere_and_goes_on_the_same(acts, cut):
    events = play(acts).events
    whole, part = Ledger(), Ledger()
    for event in events:
        whole.apply(event)
    at = int(cut * len(events))
    for event in events[:at]:
        part.apply(event)
    again = restore(snapshot(part))
    for event in events[at:]:
        again.apply(event)
    assert again.snapshot() == whole.snapshot()


@settings(max_examples=60, deadline=None)
@given(acts=_ACTS)
def test_whatever_happens_the_books_balance(acts):
    ledger = ledger_of(play(acts))
    for record in ledger.backwards.values():
        assert 0 <= record.used + record.cleared <= len(record.parameters)
    for state in ledger.parameters.values():
        assert (state.state in ("none", "zero")) <= (not state.contributions)
        assert state.unused <= state.waiting or not state.owners
        assert all(item.used_by for item in state.contributions[: len(state.contributions) - state.unused])


def test_a_snapshot_of_something_else_is_refused():
    for data in (b"", b"nonsense", snapshot(Ledger())[:-4]):
        with pytest.raises(WireError):
            restore(data)
