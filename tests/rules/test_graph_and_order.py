"""Graph, mode and order, raising programs, several processes, and how the judge keeps its findings."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gradtui import events as ev
from gradtui.ledger import Change, Ledger
from gradtui.rules import RULES, Finding, JudgeSettings, Rule, thresholds_from
from gradtui.rules.judge import Judge
from tests.rules.builders import NAN, Run, at, model

SUMMED = """
def train():
    total = 0.0
    for x in data:
        loss = model(x)
        loss.backward()
        total += loss
"""

CARRIED = """
def train():
    h = None
    for x in data:
        y, h = model(x, h)
        loss = f(y)
        loss.backward()
"""


def test_graphs_kept_by_a_running_sum_are_told_with_its_line():
    run = Run(source=SUMMED).parameters("model.a").optimizer("optimizer")
    for i in range(5):
        run.zero()
        run.backward(line=6)
        if i:
            run.feed(ev.GraphKept(backwards=i, nodes=10 * i, names=("total",)))
        run.step()
    finding = run.only("graph-retained")
    assert finding.parameters == ("total",)
    assert (finding.first.kind, finding.first.ordinal) == ("backward", 2)
    assert finding.site.line == 7


def test_one_graph_that_lives_a_little_longer_is_no_fault():
    run = model()
    for _ in range(6):
        run.zero()
        run.backward()
        run.feed(ev.GraphKept(backwards=1, nodes=10))
        run.step()
    assert run.loud() == set()


@pytest.mark.parametrize(
    ("sizes", "rules"), [((10, 20, 30, 40, 50, 60, 70), {"graph-retained"}), ((10, 20, 15, 30, 12, 40, 9), set())]
)
def test_a_graph_that_only_grows_holds_the_ones_before(sizes, rules):
    run = model()
    for nodes in sizes:
        run.zero()
        run.backward(nodes=nodes, retain_graph=True)
        run.step()
    assert run.loud() == rules


def test_a_freed_graph_is_explained_by_what_carried_it_over():
    run = Run(source=CARRIED).parameters("model.a").optimizer("optimizer").loop(1, line=7)
    run.zero()
    run.raised("backward", "Trying to backward through the graph a second time", line=7)
    finding = run.only("freed-graph-reused")
    assert finding.parameters == ("h",)
    assert 5 in {site.line for site in finding.related}
    assert "h = h.detach()" in finding.fix


def test_an_in_place_change_is_explained_by_the_step_that_made_it():
    run = (
        Run()
        .parameters("critic.out", shape=(1, 32))
        .parameters("critic.hidden", shape=(32, 6))
        .optimizer("q_optim")
        .loop(1)
    )
    run.raised(
        "backward",
        "modified by an inplace operation: [torch.FloatTensor [32, 1]], which is at version 2; expected version 1",
        line=45,
    )
    finding = run.only("inplace-modification")
    assert finding.parameters == ("critic.out",)
    assert finding.site.line == 30
    assert 45 in {site.line for site in finding.related}


def test_training_in_eval_mode_names_the_modules_that_do_not_train():
    run = Run().parameters("model.0.weight", "model.1.weight").optimizer("optimizer").loop(1)
    run.loop(4, training="eval", eval_modules=("model.1", "model.3"))
    finding = run.only("eval-mode-backward")
    assert finding.parameters == ("model.1.weight",)
    assert (finding.first.kind, finding.first.ordinal) == ("backward", 2)


@pytest.mark.parametrize("about", [{"training": "mixed", "eval_modules": ("model.1",)}, {"training": "eval"}])
def test_frozen_batch_norm_and_models_without_modes_are_right(about):
    assert model().loop(5, **about).loud() == set()


def test_a_scheduler_ahead_of_its_optimizer_is_told():
    run = model()
    run.schedule()
    assert run.loop(3).loud() == {"scheduler-before-optimizer"}


def test_a_scheduler_behind_its_optimizer_is_right():
    run = model()
    for _ in range(4):
        run.loop(1)
        run.schedule(after=0.1)
    assert run.end() == []


@pytest.mark.parametrize(
    ("rates", "rules"),
    [((0.1,) * 5 + (0.0,) * 15, {"learning-rate-vanished"}), ((0.0, 0.05) + (0.1,) * 15 + (0.0,), set())],
)
def test_a_rate_that_is_gone_long_before_the_end_is_told(rates, rules):
    run = model()
    for rate in rates:
        run.zero()
        run.backward()
        run.step(lr=(rate,))
    assert run.loud() == rules


def test_a_refused_sparse_gradient_is_explained():
    run = model().loop(1)
    run.raised("step", "Adam does not support sparse gradients, please consider SparseAdam instead", line=30)
    assert run.loud(exit_code=1) == {"unsupported-gradient"}


def test_torchs_own_warning_is_passed_on():
    run = model().loop(1)
    run.feed(ev.WarningSeen(category="UserWarning", message="Using a target size that is different", site=at(15)))
    assert run.only("torch-warning").site.line == 15


# -- several processes ------------------------------------------------------------------------------------------------


def ranks(norms: tuple[float, float], steps: tuple[int, int] = (4, 4)) -> set[str]:
    judge = Judge()
    runs = []
    for rank in range(2):
        run = Run(process=rank)
        run.judge = judge
        run.feed(ev.ProcessJoined(pid=rank, rank=rank, world_size=2))
        runs.append(run.parameters("model.a").optimizer("optimizer"))
    for i in range(max(steps)):
        for rank, run in enumerate(runs):
            if i < steps[rank]:
                run.zero()
                run.backward(norm=norms[rank], same=True)
                run.step()
    return {f.rule for f in judge.finish(0) if f.status == "confirmed" and f.rule != "same-gradient-again"}


def test_ranks_with_different_gradients_diverge():
    assert ranks((1.0, 1.5)) == {"replicas-diverge"}


def test_ranks_with_equal_gradients_are_right():
    assert ranks((1.0, 1.0)) == set()


def test_a_rank_that_made_fewer_steps_is_behind():
    assert ranks((1.0, 1.0), (4, 3)) == {"rank-behind"}


def test_a_step_right_after_no_sync_is_an_error():
    run = model()
    for _ in range(3):
        run.zero()
        run.backward(unsynced=True)
        run.step()
    assert run.loud() == {"unsynced-step"}


# -- the judge --------------------------------------------------------------------------------------------------------


def test_every_rule_has_its_own_file_and_explains_itself():
    for rule in RULES:
        assert rule.__module__ == "gradtui.rules." + rule.slug.replace("-", "_")
        for part in ("What it means:", "Why it matters:", "What to do:"):
            assert part in (rule.__doc__ or ""), rule.slug


def test_repeats_are_told_at_powers_of_two_and_counted_exactly():
    run = model()
    told = 0
    for _ in range(64):
        run.backward()
        told += sum(finding.rule == "stale-gradient" for finding in run.step())
    assert told <= 8
    assert run.only("stale-gradient").count == 63


def test_ignored_rules_are_silent_and_selected_ones_alone():
    for settings in (JudgeSettings(ignore=("stale-*",)), JudgeSettings(select=("clip-*",))):
        run = model(settings=settings)
        for _ in range(3):
            run.backward()
            run.step()
        assert run.loud() == set()


def test_a_rule_that_breaks_is_put_aside_and_told_once():
    class Broken(Rule):
        slug = "broken"

        def observe(self, change: Change, ledger: Ledger) -> Iterator[Finding]:
            raise RuntimeError("no")

    run = model()
    run.judge = Judge(rules=(Broken, *RULES))
    run.parameters("model.z").optimizer("again")
    for _ in range(3):
        run.backward()
        run.step("again")
    found = run.end()
    assert [finding.rule for finding in found if finding.severity == "info"] == ["rule-failed"]
    assert "stale-gradient" in {finding.rule for finding in found}


def test_a_consequence_is_folded_under_its_cause():
    run = model()
    for _ in range(4):
        run.backward()
        run.zero()
        run.step()
    causes = {finding.rule: finding.cause for finding in run.end()}
    assert causes == {"gradient-discarded": "", "step-without-gradient": "gradient-discarded"}


def test_thresholds_are_checked_by_name_and_kind():
    assert thresholds_from({"scaler-skips": 3}).scaler_skips == 3
    with pytest.raises(ValueError, match="no threshold"):
        thresholds_from({"nonsense": 1})
    with pytest.raises(ValueError, match="must be a number"):
        thresholds_from({"scaler_skips": "many"})


def test_nothing_is_found_in_nothing():
    assert Judge().finish(0) == []
    assert NAN != NAN
