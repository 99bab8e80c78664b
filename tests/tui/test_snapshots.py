"""Pictures of every screen state that a person meets, named after the state."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from textual.pilot import Pilot

from gradtui.tui.app import GradtuiApp
from gradtui.tui.settings import ScreenSettings
from tests.tui.conftest import settled
from tests.tui.fake_run import FakeRun, Training

SMALL, MIDDLE, LARGE, LECTURE = (80, 24), (120, 40), (200, 50), (60, 18)

# name, size, calls made before, keys pressed, settings
STATES: list[tuple[str, tuple[int, int], int, Sequence[str], ScreenSettings]] = [
    (f"{name}_{size[0]}x{size[1]}", size, beats, (), ScreenSettings())
    for name, beats in (("stopped_at_zero_grad", 4), ("stopped_at_backward", 2), ("stopped_at_step", 3))
    for size in (SMALL, MIDDLE, LARGE)
]
STATES += [
    ("stopped_at_backward_60x18", LECTURE, 2, (), ScreenSettings()),
    ("first_run_80x24", SMALL, -1, (), ScreenSettings(tour=True)),
    ("failed_80x24", SMALL, 99, (), ScreenSettings()),
    ("palette_80x24", SMALL, 2, ("colon",), ScreenSettings()),
    ("typing_to_the_script_80x24", SMALL, 3, ("c", "i", "y"), ScreenSettings()),
    ("finding_explained_80x24", SMALL, 11, ("7", "K"), ScreenSettings()),
    ("slow_link_gradient_80x24", SMALL, 2, ("4",), ScreenSettings(link="slow")),
    ("too_small_38x8", (38, 8), 2, (), ScreenSettings()),
    ("starting_80x24", SMALL, -1, (), ScreenSettings()),
    ("running_80x24", SMALL, 3, ("c",), ScreenSettings()),
    ("ended_80x24", SMALL, 99, (), ScreenSettings()),
    ("ended_120x40", MIDDLE, 99, (), ScreenSettings()),
    ("looking_back_120x40", MIDDLE, 7, ("left_square_bracket", "left_square_bracket"), ScreenSettings()),
    ("finding_open_80x24", SMALL, 11, ("7",), ScreenSettings()),
    ("finding_open_120x40", MIDDLE, 11, ("7",), ScreenSettings()),
    ("not_cleared_80x24", SMALL, 10, ("5",), ScreenSettings()),
    ("help_80x24", SMALL, 2, ("question_mark",), ScreenSettings()),
    ("explain_80x24", SMALL, 4, ("K",), ScreenSettings()),
    ("quitting_80x24", SMALL, 2, ("q",), ScreenSettings()),
    ("filtering_80x24", SMALL, 2, ("slash", "b", "i", "a"), ScreenSettings()),
    ("values_120x40", MIDDLE, 2, ("4", "v"), ScreenSettings()),
    ("ascii_80x24", SMALL, 3, ("5",), ScreenSettings(ascii=True)),
    ("ascii_gradient_120x40", MIDDLE, 3, ("4",), ScreenSettings(ascii=True)),
    ("light_120x40", MIDDLE, 11, (), ScreenSettings(theme="light")),
    ("contrast_80x24", SMALL, 11, (), ScreenSettings(theme="contrast")),
    ("ansi_120x40", MIDDLE, 11, (), ScreenSettings(theme="ansi")),
    ("no_color_80x24", SMALL, 11, (), ScreenSettings(color="none")),
]
STATES += [
    (f"zoomed_{name}_80x24", SMALL, 7, (str(digit), "z"), ScreenSettings())
    for digit, name in enumerate(
        ("source", "events", "parameters", "gradient", "accumulation", "flow", "findings", "output"), 1
    )
]


@pytest.mark.parametrize(
    ("size", "beats", "keys", "settings"), [state[1:] for state in STATES], ids=[state[0] for state in STATES]
)
def test_picture(
    size: tuple[int, int],
    beats: int,
    keys: Sequence[str],
    settings: ScreenSettings,
    tmp_path: Path,
    snap_compare: Callable[..., bool],
):
    run = FakeRun(
        tmp_path / "run", Training(), exit_code=int(size == SMALL and "failed" in os.environ["PYTEST_CURRENT_TEST"])
    )
    if beats >= 0:
        run.begin()
        run.play(beats)
    app = GradtuiApp(run.folder, settings)

    async def prepare(pilot: Pilot[int]) -> None:
        await run.serve()
        await settled(app, pilot, lambda: app.session.welcome is not None and app.session.state == run.state)
        for key in keys:
            await pilot.press(key)
            await settled(app, pilot)
        await settled(app, pilot, lambda: app.session.state == run.state)
        if beats >= 0 and app.board.panes["gradient"].display and app.view.state == "stopped" and app.view.live:
            await settled(app, pilot, lambda: app.view.tensor.view is not None and not app.view.tensor.stale)
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=prepare)
