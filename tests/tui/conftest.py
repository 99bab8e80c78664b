"""A fake run, and an app on it, for every test of the screen."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from gradtui.tui.settings import ScreenSettings, prepare_environment

prepare_environment(ScreenSettings())
for _name in ("NO_COLOR", "COLORFGBG", "TMUX", "STY"):
    os.environ.pop(_name, None)
os.environ["TERM"] = "xterm-256color"

from textual.pilot import Pilot  # noqa: E402

from gradtui.tui.app import GradtuiApp  # noqa: E402
from tests.tui.fake_run import FakeRun, Training  # noqa: E402

Open = Callable[..., AbstractAsyncContextManager[tuple[GradtuiApp, Pilot[int], FakeRun]]]


async def settled(app: GradtuiApp, pilot: Pilot[int], done: Callable[[], bool] = lambda: True) -> None:
    """Wait until the app has heard everything, painted it, and `done` holds."""
    for _ in range(400):
        await pilot.pause(0.01)
        story = app.session.story
        quiet = story is None or not story.following or story.cursor >= story.head
        if done() and quiet and not app.gate.pending:
            return
    raise AssertionError("the screen did not settle")


@asynccontextmanager
async def opened(
    folder: Path,
    size: tuple[int, int] = (80, 24),
    *,
    beats: int = 0,
    settings: ScreenSettings | None = None,
    training: Training | None = None,
    exit_code: int = 0,
) -> AsyncIterator[tuple[GradtuiApp, Pilot[int], FakeRun]]:
    """An app on a fake run that has made so many calls."""
    run = FakeRun(folder / "run", training, exit_code)
    run.begin()
    run.play(beats)
    await run.serve()
    app = GradtuiApp(run.folder, settings or ScreenSettings())
    async with app.run_test(size=size) as pilot:
        await settled(app, pilot, lambda: app.session.welcome is not None and app.session.state == run.state)
        yield app, pilot, run
    await run.close()


@pytest.fixture
def open_run(tmp_path: Path) -> Open:
    """`async with open_run(size=…, beats=…) as (app, pilot, run)`."""
    return lambda *args, **kwargs: opened(tmp_path, *args, **kwargs)
