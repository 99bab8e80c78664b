"""Every size gives a screen without gaps or overlaps, and the pane that was asked for."""

from __future__ import annotations

import pytest

from gradtui.tui.layout import PANES, Plan, Wish, plan

SIZES = [
    (40, 10),
    (60, 16),
    (60, 18),
    (79, 23),
    (80, 24),
    (99, 60),
    (100, 30),
    (120, 40),
    (159, 50),
    (160, 45),
    (200, 50),
    (400, 100),
]


def cells(made: Plan) -> list[tuple[int, int]]:
    """Every cell of every pane."""
    return [
        (x, y)
        for place in made.panes.values()
        for x in range(place.x, place.x + place.width)
        for y in range(place.y, place.y + place.height)
    ]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("main", PANES)
@pytest.mark.parametrize("zoomed", [False, True])
def test_panes_fill_the_body_and_never_overlap(size: tuple[int, int], main: str, zoomed: bool):
    slot = main if main in ("gradient", "flow", "findings") else "gradient"
    made = plan(*size, Wish(main=main, slot=slot, zoomed=zoomed, parameters=300))  # type: ignore[arg-type]
    taken = cells(made)
    chrome = 2 + made.tabs + made.ticker
    assert len(taken) == len(set(taken)) == size[0] * (size[1] - chrome)
    assert main in made.panes


@pytest.mark.parametrize("parameters", [0, 1, 4, 12, 300])
@pytest.mark.parametrize("size", [(100, 30), (120, 40), (160, 45), (200, 50)])
def test_a_short_table_leaves_its_room_to_others(size: tuple[int, int], parameters: int):
    made = plan(*size, Wish(parameters=parameters))
    taken = cells(made)
    assert len(taken) == len(set(taken)) == size[0] * (size[1] - 3)
    assert all(place.height >= 4 for place in made.panes.values())


def test_below_the_least_size_there_is_one_honest_line():
    assert plan(39, 24, Wish()).mode == plan(80, 9, Wish()).mode == "tiny"
    assert not plan(39, 24, Wish()).panes


def test_the_source_strip_stays_with_the_main_pane():
    assert set(plan(80, 24, Wish(main="flow")).panes) == {"source", "flow"}
    assert set(plan(80, 24, Wish(main="flow", strip=0)).panes) == {"flow"}
