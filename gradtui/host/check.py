"""A run without a screen: the script keeps our terminal, nothing stops it, and the judgement comes at the end."""

from __future__ import annotations

import asyncio
import signal
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gradtui.host.launch import Launch
from gradtui.host.run import Ending, Run, Steering
from gradtui.ledger.run import RunLedger
from gradtui.rules.finding import Finding
from gradtui.rules.settings import JudgeSettings

_FROM_THE_TERMINAL = (signal.SIGINT, signal.SIGQUIT)


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check found."""

    findings: tuple[Finding, ...]
    ledger: RunLedger
    kinds: Mapping[str, int]
    """Events by class."""
    ending: Ending


def check(launch: Launch, settings: JudgeSettings, watch: str = "params") -> Checked:
    """Run the program to its end and judge it. Raises UsageError when it cannot be started."""
    with tempfile.TemporaryDirectory(prefix="gradtui-") as directory:
        return asyncio.run(_check(Path(directory), launch, settings, watch))


async def _check(directory: Path, launch: Launch, settings: JudgeSettings, watch: str) -> Checked:
    run = Run(directory, settings, Steering(watch=watch), record=False)
    loop = asyncio.get_running_loop()
    for number in (*_FROM_THE_TERMINAL, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        if signal.getsignal(number) is signal.SIG_IGN:
            continue  # under nohup, say: it stays ignored, for the script too
        if number in _FROM_THE_TERMINAL:
            loop.add_signal_handler(number, _leave_to_the_script)
        else:
            loop.add_signal_handler(number, run.debuggee.signal, number)
    try:
        await run.start(launch, None)
        await run.finished.wait()
        return Checked(tuple(run.judge.findings()), run.judge.ledger, dict(run.kinds), run.ending)
    finally:
        run.close()


def _leave_to_the_script() -> None:
    """Ctrl-C and Ctrl-\\ reach the script from the terminal; we wait for what it does."""
