"""A residual network on noisy waves, in mixed precision with a gradient scaler.

Tells sine, square, triangle and sawtooth waves apart under noise. The forward pass runs in bfloat16, losses are scaled,
and gradients are unscaled before they are clipped: the loop that one writes for a GPU, here on the CPU.
"""

import argparse
import math

import torch
from torch import nn
from torch.nn import functional as F

POINTS = 64
SHAPES = ("sine", "square", "triangle", "sawtooth")


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class WaveNet(nn.Module):
    def __init__(self, width=96, depth=2):
        super().__init__()
        self.stem = nn.Linear(POINTS, width)
        self.blocks = nn.Sequential(*[Block(width) for _ in range(depth)])
        self.head = nn.Linear(width, len(SHAPES))

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)))


def make_waves(count, noise=0.4):
    labels = torch.randint(0, len(SHAPES), (count,))
    cycles = 1 + 2 * torch.rand(count, 1)
    start = torch.rand(count, 1)
    turn = (cycles * torch.linspace(0, 1, POINTS) + start) % 1
    waves = torch.stack(
        [
            (2 * math.pi * turn).sin(),
            torch.where(turn < 0.5, 1.0, -1.0),
            4 * (turn - 0.5).abs() - 1,
            2 * turn - 1,
        ]
    )
    x = waves[labels, torch.arange(count)]
    return x + noise * torch.randn(count, POINTS), labels


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    model = WaveNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    scaler = torch.amp.GradScaler("cpu")

    for step in range(1, args.steps + 1):
        x, y = make_waves(args.batch_size)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        scaler.step(optimizer)
        scaler.update()
        if step % 50 == 0 or step == args.steps:
            print(f"step {step:4d}  loss {loss.item():.4f}  scale {scaler.get_scale():.0f}", flush=True)

    model.eval()
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        x, y = make_waves(2000)
        right = (model(x).argmax(1) == y).float().mean().item()
    print(f"waves named rightly: {right:.1%}")


if __name__ == "__main__":
    main()
