"""Keys to requests, messages to panes: the screen against a scripted host on a real socket."""

from __future__ import annotations

from pathlib import Path

from gradtui.tui.app import GradtuiApp
from gradtui.tui.settings import ScreenSettings
from gradtui.tui.widgets.list_pane import ListPane
from gradtui.wire.messages import Continue, Pause, RunTo, SetBreakpoints, StepOver, TypeInput
from tests.tui.conftest import Open, settled
from tests.tui.fake_run import FakeRun


def text_of(app: GradtuiApp, pane: str) -> str:
    return app.board.panes[pane].text()  # type: ignore[index]


async def test_shows_the_call_that_is_about_to_run(open_run: Open):
    async with open_run(beats=1) as (app, _, _run):
        assert "STOPPED before backward #1" in app.board.status._painted[0].text
        assert "► 19" in text_of(app, "source")


async def test_a_step_shows_what_the_call_did(open_run: Open):
    async with open_run(beats=1) as (app, pilot, run):
        await pilot.press("n")
        await settled(app, pilot, lambda: app.session.where[0].ordinal == 2)
        assert StepOver() in run.asked
        assert "● fresh" in text_of(app, "parameters")
        assert "just ran  backward #1" in app.board.ticker._painted[0].text


async def test_steps_are_not_queued_while_running(open_run: Open):
    async with open_run(beats=1) as (app, pilot, run):
        await pilot.press("c")
        await settled(app, pilot, lambda: app.session.state == "running")
        await pilot.press("n", "n")
        await settled(app, pilot)
        assert run.asked.count(StepOver()) == 0
        assert "space pauses" in app.board.ticker._painted[0].text
        assert Continue() in run.asked


async def test_space_pauses_a_running_script(open_run: Open):
    async with open_run(beats=1) as (app, pilot, run):
        await pilot.press("c")
        await settled(app, pilot, lambda: app.session.state == "running")
        await pilot.press("space")
        await settled(app, pilot, lambda: app.session.state == "stopped")
        assert Pause() in run.asked


async def test_run_to_an_optimizer_step(open_run: Open):
    async with open_run(beats=1) as (app, pilot, run):
        await pilot.press("O")
        await settled(app, pilot, lambda: bool(app.session.where) and app.session.where[0].kind == "step")
        assert RunTo(kinds=("step",)) in run.asked


async def test_a_finding_is_told_and_leads_to_its_event(open_run: Open):
    async with open_run(beats=1) as (app, pilot, _run):
        await pilot.press("W")
        await settled(app, pilot, lambda: bool(app.session.story and app.session.story.findings))
        assert "stale-gradient" in app.board.ticker._painted[0].text
        await pilot.press("7", "enter")
        await settled(app, pilot, lambda: not app.view.live)
        assert app.view.cursor == app.view.findings[0].finding.first.seq  # type: ignore[union-attr]


async def test_looking_back_shows_gradients_as_they_were(open_run: Open):
    async with open_run(beats=4) as (app, pilot, _run):
        assert "spent" in text_of(app, "parameters")
        await pilot.press("left_square_bracket")
        await settled(app, pilot, lambda: not app.view.live)
        assert "fresh" in text_of(app, "parameters")
        await pilot.press("H")
        await settled(app, pilot, lambda: app.view.live)
        assert "spent" in text_of(app, "parameters")


async def test_a_breakpoint_is_marked_and_sent(open_run: Open):
    async with open_run(beats=1) as (app, pilot, run):
        await pilot.press("1", "b")
        await settled(app, pilot, lambda: bool(app.view.breakpoints))
        assert any(isinstance(request, SetBreakpoints) and request.breakpoints[0].line == 19 for request in run.asked)
        assert "► 19●" in text_of(app, "source")


async def test_the_selected_gradient_is_read_from_the_script(open_run: Open):
    async with open_run(beats=2) as (app, pilot, _run):
        await pilot.press("4")
        await settled(app, pilot, lambda: app.view.tensor.view is not None)
        assert "norm 1.20e-01" in text_of(app, "gradient")


async def test_the_selection_survives_resizing_and_time_travel(open_run: Open):
    async with open_run(beats=4) as (app, pilot, _run):
        await pilot.press("down", "down")
        await pilot.resize_terminal(200, 50)
        await pilot.press("left_square_bracket")
        await settled(app, pilot, lambda: not app.view.live and "model.2.weight" in text_of(app, "accumulation"))
        assert app.view.selection.parameter == 3


async def test_filtering_keeps_only_what_matches(open_run: Open):
    async with open_run(beats=2) as (app, pilot, _run):
        await pilot.press("slash", *"bias", "enter")
        await settled(app, pilot)
        assert "weight" not in text_of(app, "parameters").replace("model.0.weight", "")
        assert "2.bias" in text_of(app, "parameters")


async def test_a_recording_opens_without_a_host(tmp_path: Path):
    run = FakeRun(tmp_path / "run")
    run.begin()
    run.play(99)
    run.writer.set_meta("exit_code", "0")
    run.writer.close()
    app = GradtuiApp(tmp_path / "run" / "timeline.db", ScreenSettings(recording=True))
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(app, pilot, lambda: app.view.state == "ended")
        assert "stale-gradient" in text_of(app, "findings") + app.board.ticker._painted[0].text
        await pilot.press("2", "home")
        await settled(app, pilot, lambda: not app.view.live)
        assert app.view.cursor == 1
        await pilot.press("q")
    assert app.exit_code == 0


async def test_the_first_run_card_closes_on_any_key(open_run: Open):
    async with open_run(beats=1, settings=ScreenSettings(tour=True)) as (app, pilot, _run):
        assert len(app.screen_stack) == 2
        await pilot.press("n")
        await pilot.pause()
        assert len(app.screen_stack) == 1


async def test_a_search_goes_from_match_to_match(open_run: Open):
    async with open_run(beats=4) as (app, pilot, _run):
        await pilot.press("1", "home", "slash", *"loss", "enter")
        await settled(app, pilot)
        source = app.board.panes["source"]
        assert isinstance(source, ListPane)
        first = source.cursor
        await pilot.press("full_stop")
        assert source.cursor > first
        await pilot.press("comma")
        assert source.cursor == first


async def test_a_line_typed_goes_to_the_script(open_run: Open):
    async with open_run(beats=1) as (app, pilot, run):
        await pilot.press("i", *"yes", "enter")
        await settled(app, pilot, lambda: TypeInput("yes\n") in run.asked)
        await pilot.press("i", "n", "escape")
        await settled(app, pilot)
        assert run.asked.count(StepOver()) == 0
        assert TypeInput("n\n") not in run.asked


async def test_the_palette_reaches_a_parameter(open_run: Open):
    async with open_run(beats=2) as (app, pilot, _run):
        await pilot.press("colon", *"2.bias")
        for _ in range(100):
            await pilot.pause(0.02)
        await pilot.press("enter")
        await settled(app, pilot, lambda: app.view.selection.parameter == 4)


async def test_quitting_asks_while_the_script_lives(open_run: Open):
    async with open_run(beats=1) as (app, pilot, _run):
        await pilot.press("q")
        await pilot.pause()
        assert len(app.screen_stack) == 2
        await pilot.press("q")
        await pilot.pause()
        assert len(app.screen_stack) == 1


async def test_killing_leaves_with_the_signal(open_run: Open):
    async with open_run(beats=1) as (app, pilot, _run):
        await pilot.press("q")
        await pilot.pause()
        await pilot.press("k")
        for _ in range(300):
            await pilot.pause(0.01)
            if not app.is_running:
                break
        assert app.exit_code == 128 + 15


async def test_q_leaves_an_ended_run_with_its_exit_code(open_run: Open):
    async with open_run(beats=99, exit_code=3) as (app, pilot, _run):
        assert app.exit_code == 3
        await pilot.press("q")
        await pilot.pause()
    assert not app.is_running
