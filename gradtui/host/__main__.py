"""The host of an interactive run, as a process of its own: `python -m gradtui.host RUN_DIRECTORY`, with its orders in orders.json there."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from gradtui.errors import GradtuiError
from gradtui.host.launch import Launch
from gradtui.host.run import Run, Steering
from gradtui.host.server import Server
from gradtui.rules.settings import JudgeSettings, thresholds_from

_WAIT_FOR_CLIENT = 60.0
"""Seconds that a run waits for the client that started it: then nobody will ever let it go on, and it runs freely."""


async def serve(directory: Path, orders: dict[str, Any], umask: int = -1) -> None:
    """Run the program and serve clients until the program has ended and the last client has left."""
    steering = Steering(
        stop_first=bool(orders.get("stop_first", True)), free=False, watch=orders.get("watch", "params")
    )
    run = Run(directory, _settings(orders.get("settings") or {}), steering, record=True, umask=umask)
    server = Server(run)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, run.debuggee.signal, signal.SIGTERM)
    for number in (signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, _ignore)
    try:
        await run.start(Launch(**orders["launch"]), tuple(orders.get("size") or (24, 80)))
        await server.start(directory / "client.sock")
        loop.call_later(_WAIT_FOR_CLIENT, _let_go_unless_served, server)
        await run.finished.wait()
        if not server.served:
            await _first_client(server)
        if server.clients:
            await server.empty.wait()
    finally:
        server.close()
        run.close()


def _settings(raw: dict[str, Any]) -> JudgeSettings:
    return JudgeSettings(
        tuple(raw.get("select") or ()), tuple(raw.get("ignore") or ()), thresholds_from(raw.get("thresholds") or {})
    )


def _let_go_unless_served(server: Server) -> None:
    if not server.served:
        server.let_go()


async def _first_client(server: Server) -> None:
    loop = asyncio.get_running_loop()
    until = loop.time() + _WAIT_FOR_CLIENT
    while not server.served and loop.time() < until:
        await asyncio.sleep(0.05)


def _ignore() -> None:
    """The terminal's signals are for the client."""


def main() -> None:
    """Read the orders and serve; a fault is left in `fault` in the run's directory for the client to tell."""
    umask = os.umask(0o077)
    directory = Path(sys.argv[1])
    orders = json.loads((directory / "orders.json").read_text())
    orders["launch"]["command"] = tuple(orders["launch"]["command"])
    try:
        asyncio.run(serve(directory, orders, umask))
    except GradtuiError as error:
        (directory / "fault").write_text(str(error))
        sys.exit(2)
    except Exception:
        import traceback

        (directory / "fault").write_text(traceback.format_exc())
        sys.exit(70)
    finally:
        for name in ("client.sock", "probe.sock", "page"):
            (directory / name).unlink(missing_ok=True)


if __name__ == "__main__":
    main()
