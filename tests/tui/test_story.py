"""The run as the client knows it: any way of getting to an event shows the same state there."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradtui.ledger import Ledger, snapshot
from gradtui.timeline import TimelineReader
from gradtui.tui.export import free_name, parameters_csv
from gradtui.tui.panes.parameters import common_root, wanted_by
from gradtui.tui.session import Session, asks, script_of
from gradtui.tui.story import Story
from tests.tui.fake_run import FakeRun, Training


@pytest.fixture
def story(tmp_path: Path) -> Story:
    """A long run, with a snapshot in the middle."""
    run = FakeRun(tmp_path, Training(steps=120, forgets_from=120))
    run.begin()
    run.play(10_000)
    reader = TimelineReader(tmp_path / "timeline.db")
    ledger = Ledger()
    for event in reader.events(0, 200):
        ledger.apply(event)
    run.writer.add_snapshot(200, snapshot(ledger))
    run.writer.commit()
    story = Story(reader)
    story.grow(run.seq)
    return story


def state(story: Story) -> object:
    """Everything the ledger knows, comparable."""
    ledger = story.ledger.of(0)
    return [
        (s.info.name, s.state, s.norm, len(s.contributions), s.steps_since_clear) for s in ledger.parameters.values()
    ]


def test_following_reaches_the_head(story: Story):
    while not story.catch_up():
        pass
    assert story.cursor == story.head


@pytest.mark.parametrize("seq", [4, 7, 150, 200, 201, 333])
def test_seeking_gives_the_same_state_from_either_side(story: Story, seq: int):
    story.seek(seq)
    forwards = state(story)
    story.seek(story.head)
    story.seek(seq)
    assert state(story) == forwards
    assert story.cursor == seq


def test_lines_around_the_cursor_are_in_order_and_without_gaps(story: Story):
    story.seek(100)
    rows = [*story.rows_before(100, 20), *story.rows_after(100, 20)]
    assert [row.seq for row in rows] == list(range(81, 121))


def test_steps_are_found_in_both_directions(story: Story):
    story.seek(100)
    back, on = story.step_away(-1), story.step_away(1)
    assert back < 100 < on
    assert [row.what for row in (story.row(back), story.row(on)) if row] == ["step", "step"]


def test_a_recording_opens_as_an_ended_run(story: Story):
    session = Session(story=story)
    session.open_recording({"exit_code": "3"}, story.head)
    while not story.catch_up():
        pass
    view = session.view()
    assert view.state == "ended"
    assert view.ended
    assert view.ended.exit_code == 3
    assert view.live


def test_filters_understand_names_states_and_sizes(story: Story):
    while not story.catch_up():
        pass
    states = list(story.ledger.of(0).parameters.values())

    def names(text: str) -> list[str]:
        return [s.info.name for s in states if wanted_by(text)(s)]

    assert names("bias") == ["model.0.bias", "model.2.bias"]
    assert names("~^model.2.*weight") == ["model.2.weight"]
    assert names("!spent") == [s.info.name for s in states]
    assert names("!nan") == []
    assert set(names(">0")) == {s.info.name for s in states}
    assert names("<0") == []
    assert names("~[") == []
    assert names(">x") == []


def test_a_table_of_all_parameters_can_be_exported(story: Story, tmp_path: Path):
    while not story.catch_up():
        pass
    text = parameters_csv(Session(story=story).view())
    assert text.splitlines()[1].split(",")[1] == "model.0.weight"
    assert len(text.splitlines()) == 5
    (tmp_path / "a.csv").touch()
    assert free_name(tmp_path, "a", ".csv").name == "a-1.csv"


def test_the_common_root_is_told_once():
    assert common_root(["model.a.w", "model.b.w"]) == "model"
    assert common_root(["model.a.w", "other.b.w"]) == common_root(["W", "b"]) == common_root(["model.w"]) == ""


@pytest.mark.parametrize("last", ["name? ", "(Pdb) ", ">>> ", "go on [y/N]: "])
def test_a_prompt_looks_like_a_question(last: str):
    assert asks(last)


@pytest.mark.parametrize("last", ["", "   ", "epoch 3 loss 0.2", " 40%|####  | 4/10"])
def test_progress_is_no_question(last: str):
    assert not asks(last)


def test_the_script_is_found_in_its_command():
    assert script_of(("python", "-u", "train.py", "--x")).endswith("/train.py")
    assert script_of(("torchrun", "--nproc-per-node", "2")) == ""
