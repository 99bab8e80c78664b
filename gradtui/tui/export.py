"""What the screen shows, as files for other programs."""

from __future__ import annotations

import csv
import io
from itertools import count
from pathlib import Path

from gradtui.tui import flags
from gradtui.tui.view import View


def parameters_csv(view: View) -> str:
    """One row a parameter, at the view's event."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(("event", "name", "shape", "dtype", "device", "state", "norm", "finite", "contributions", "flags"))
    for state in view.parameters.values():
        info = state.info
        shape = "x".join(map(str, info.shape))
        writes = len(state.contributions) + state.folded
        letters = flags.letters(state, view.counts.backward)
        rows.writerow(
            (
                view.cursor,
                info.name,
                shape,
                info.dtype,
                info.device,
                state.state,
                state.norm,
                state.finite,
                writes,
                letters,
            )
        )
    return text.getvalue()


def free_name(folder: Path, stem: str, suffix: str) -> Path:
    """A file that does not exist yet."""
    names = (folder / f"{stem}{f'-{number}' if number else ''}{suffix}" for number in count())
    return next(name for name in names if not name.exists())
