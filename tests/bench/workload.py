"""One workload of the benchmark, timed from inside: `python workload.py NAME WARM_UP SECONDS` prints one JSON object. Knows nothing of gradtui."""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter, thread_time
from typing import Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy

Step = Callable[[], None]


def _steps(model: nn.Module, optimizer: torch.optim.Optimizer, batches: Sequence[tuple[Any, Any]]) -> Step:
    """One accumulation window over these batches."""

    def step() -> None:
        optimizer.zero_grad()
        for x, y in batches:
            loss = cross_entropy(model(x), y) / len(batches)
            loss.backward()
        optimizer.step()

    return step


def mlp() -> Step:
    """The smallest model anybody debugs: three layers, well under a millisecond a step."""
    model = nn.Sequential(
        nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10)
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    return _steps(model, optimizer, [(torch.randn(64, 64), torch.randint(0, 10, (64,)))])


def small() -> Step:
    """200 small tensors."""
    layers = [module for _ in range(100) for module in (nn.Linear(64, 64), nn.Tanh())]
    model = nn.Sequential(*layers)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    return _steps(model, optimizer, [(torch.randn(128, 64), torch.randint(0, 64, (128,)))])


class _Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(512, 256)
        layer = nn.TransformerEncoderLayer(256, 4, 512, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.head = nn.Linear(256, 512)

    def forward(self, tokens: torch.Tensor) -> Any:
        return self.head(self.encoder(self.embedding(tokens))).transpose(1, 2)


def _transformer(micro_batches: int) -> Step:
    model = _Transformer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    batches = [(torch.randint(0, 512, (4, 64)), torch.randint(0, 512, (4, 64))) for _ in range(micro_batches)]
    return _steps(model, optimizer, batches)


def transformer() -> Step:
    """Four layers of width 256."""
    return _transformer(1)


def window() -> Step:
    """The same, eight backwards to a step."""
    return _transformer(8)


WORKLOADS: dict[str, Callable[[], Step]] = {"mlp": mlp, "small": small, "transformer": transformer, "window": window}


def peak() -> float:
    """Largest resident memory of this process so far, in MB."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(name: str, warm_up: float, seconds: float) -> None:
    """Warm up, then step for so long; wall and CPU milliseconds a step, and peak memory, to stdout."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    step = WORKLOADS[name]()
    until = perf_counter() + warm_up
    step()
    while perf_counter() < until:
        step()
    count, began, cpu = 0, perf_counter(), thread_time()
    until = began + seconds
    while perf_counter() < until:
        step()
        count += 1
    wall, cpu = perf_counter() - began, thread_time() - cpu
    print(json.dumps({"wall": wall / count * 1e3, "cpu": cpu / count * 1e3, "steps": count, "peak": peak()}))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), float(sys.argv[3]))
