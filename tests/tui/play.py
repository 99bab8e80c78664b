"""Opens the real screen on a fake run, in this process's terminal: `play.py FOLDER BEATS [crash]`. For tests under a PTY."""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path

from gradtui.tui import ScreenSettings, open_screen
from tests.tui.fake_run import FakeRun, Training


def serve(folder: Path, beats: int) -> None:
    """The fake host, on a thread and a loop of its own."""

    async def forever() -> None:
        run = FakeRun(folder, Training(steps=400, forgets_from=400))
        run.begin()
        run.play(beats)
        await run.serve()
        await asyncio.Event().wait()

    asyncio.run(forever())


def main() -> int:
    """Play, and end with the screen's exit code."""
    folder, beats = Path(sys.argv[1]), int(sys.argv[2])
    threading.Thread(target=serve, args=(folder, beats), daemon=True).start()
    if "crash" in sys.argv:
        from gradtui.tui.panes.flow import FlowPane

        def broken(*_: object) -> object:
            raise ZeroDivisionError("made to fail")

        FlowPane.content = broken  # type: ignore[assignment, method-assign]
    return open_screen(folder, settings=ScreenSettings())


if __name__ == "__main__":
    sys.exit(main())
