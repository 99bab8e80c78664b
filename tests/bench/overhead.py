"""What watching costs: each workload bare and under `gradtui check` in turn, as ratios of one round. See DESIGN §8; `scripts/bench` runs it.

Both runs of a round time their own steps after a warm-up that spends what gradtui allows itself at the start. `wall` is what a
person waits, and on a busy machine mostly noise; `cpu` is the time of the training thread alone.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

WORKLOAD = Path(__file__).with_name("workload.py")
BUDGETS = {"mlp": 1.15, "small": 1.05, "transformer": 1.02, "window": 1.05}
MEMORY_BUDGET = 32.0
HELP_BUDGET = 0.2

Timing = dict[str, float]


def once(name: str, observed: bool, warm_up: float, seconds: float) -> Timing:
    """One run of a workload. Raises RuntimeError with its stderr when it fails."""
    program = [str(WORKLOAD), name, str(warm_up), str(seconds)]
    command = [sys.executable, *program]
    if observed:
        command = [sys.executable, "-m", "gradtui", "check", "--quiet", "--fail-on", "never", *program]
    done = subprocess.run(
        command, capture_output=True, text=True, env=dict(os.environ, OMP_NUM_THREADS="1"), check=False
    )
    try:
        return dict(json.loads(done.stdout.splitlines()[-1]))
    except (IndexError, ValueError):
        raise RuntimeError(f"{name}: exit code {done.returncode}\n{done.stderr[-2000:]}") from None


def spread(values: list[float], digits: int = 3) -> str:
    """Median, and the least and the most."""
    return f"{median(values):.{digits}f} ({min(values):.{digits}f}–{max(values):.{digits}f})"


def compare(name: str, rounds: int, warm_up: float, seconds: float) -> None:
    """Run a workload both ways so often, and print its row; which way goes first alternates."""
    pairs = []
    for number in range(rounds):
        runs = {way: once(name, way, warm_up, seconds) for way in ((False, True) if number % 2 else (True, False))}
        pairs.append((runs[False], runs[True]))
    wall = [observed["wall"] / bare["wall"] for bare, observed in pairs]
    cpu = [observed["cpu"] / bare["cpu"] for bare, observed in pairs]
    memory = [observed["peak"] - bare["peak"] for bare, observed in pairs]
    step = median(bare["cpu"] for bare, _ in pairs)
    print(
        f"{name:<12} {step:8.2f} ms  ≤ {BUDGETS[name]:.2f}  {spread(wall):<22} {spread(cpu):<22} {spread(memory, 1)} MB",
        flush=True,
    )


def help_seconds() -> float:
    """How long `gradtui --help` takes."""
    began = perf_counter()
    subprocess.run([sys.executable, "-m", "gradtui", "--help"], capture_output=True, check=True)
    return perf_counter() - began


def main() -> None:
    """Print a table: a row a workload."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("workload", nargs="*", choices=[[], *BUDGETS], help="which (default: all)")
    parser.add_argument("-r", "--rounds", type=int, default=5, help="pairs of runs a workload")
    parser.add_argument("-w", "--warm-up", type=float, default=4.0, metavar="S", help="seconds before timing")
    parser.add_argument("-s", "--seconds", type=float, default=5.0, metavar="S", help="seconds timed")
    options = parser.parse_args()
    print(
        f"{'workload':<12} {'step':>11}  budget  {'wall ratio':<22} {'cpu ratio':<22} extra memory (≤ {MEMORY_BUDGET:.0f} MB)"
    )
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state
        for name in options.workload or BUDGETS:
            compare(name, options.rounds, options.warm_up, options.seconds)
    times = [help_seconds() for _ in range(max(options.rounds, 3))]
    print(f"\ngradtui --help  ≤ {HELP_BUDGET} s  {spread(times)} s")


if __name__ == "__main__":
    main()
