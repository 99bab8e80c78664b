"""Gradient descent by hand on two spirals: no module, no optimizer.

Four tensors, two matrix products and a tanh separate two interleaved spirals. Every update is written out: step against
the gradient, then set it to None.
"""

import argparse
import math

import torch


def spirals(count):
    """Points on two arms half a turn apart, and which arm each is on."""
    arm = torch.arange(count) % 2
    radius = 0.2 + 0.8 * torch.rand(count)
    angle = 1.5 * math.pi * radius + math.pi * arm
    x = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)
    return x + 0.02 * torch.randn(count, 2), arm.float()


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--steps", type=int, default=1000)
parser.add_argument("--hidden", type=int, default=32)
parser.add_argument("--lr", type=float, default=0.5)
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()

torch.manual_seed(args.seed)
x, y = spirals(400)

W1 = (2.0 * torch.randn(2, args.hidden)).requires_grad_()
b1 = torch.zeros(args.hidden, requires_grad=True)
W2 = (torch.randn(args.hidden) / math.sqrt(args.hidden)).requires_grad_()
b2 = torch.zeros(1, requires_grad=True)

for step in range(1, args.steps + 1):
    hidden = torch.tanh(x @ W1 + b1)
    p = torch.sigmoid(hidden @ W2 + b2)
    loss = -(y * torch.log(p + 1e-7) + (1 - y) * torch.log(1 - p + 1e-7)).mean()

    loss.backward()

    with torch.no_grad():
        W1 -= args.lr * W1.grad
        b1 -= args.lr * b1.grad
        W2 -= args.lr * W2.grad
        b2 -= args.lr * b2.grad
    W1.grad = None
    b1.grad = None
    W2.grad = None
    b2.grad = None

    if step % 100 == 0 or step == args.steps:
        right = ((p > 0.5) == (y > 0.5)).float().mean().item()
        print(f"step {step:4d}  loss {loss.item():.4f}  right {right:.1%}", flush=True)
