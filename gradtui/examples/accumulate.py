"""A small transformer that learns to sort, with four micro-batches to a step.

Eight digits go in, the same digits in order come out. Each step adds up the gradients of four micro-batches of 32, each
loss divided by four, so that it moves as one batch of 128 would, in a quarter of the memory.
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

DIGITS = 10
LENGTH = 8


class Sorter(nn.Module):
    def __init__(self, width=48, heads=4, depth=2):
        super().__init__()
        self.token = nn.Embedding(DIGITS, width)
        self.position = nn.Parameter(0.02 * torch.randn(LENGTH, width))
        layer = nn.TransformerEncoderLayer(width, heads, 2 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(width, DIGITS)

    def forward(self, x):
        return self.head(self.encoder(self.token(x) + self.position))


def make_batch(size):
    x = torch.randint(0, DIGITS, (size, LENGTH))
    return x, x.sort(dim=1).values


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=175)
    parser.add_argument("--micro-batch", type=int, default=32)
    parser.add_argument("--accumulate", type=int, default=4, help="micro-batches to a step")
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    model = Sorter()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)

    for step in range(1, args.steps + 1):
        total = 0.0
        for _ in range(args.accumulate):
            x, y = make_batch(args.micro_batch)
            loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten()) / args.accumulate
            loss.backward()
            total += loss.item()
        optimizer.step()
        optimizer.zero_grad()
        if step % 25 == 0 or step == args.steps:
            print(f"step {step:4d}  loss {total:.4f}", flush=True)

    model.eval()
    with torch.no_grad():
        x, y = make_batch(500)
        guess = model(x).argmax(-1)
    print(f"sorted without a mistake: {(guess == y).all(1).float().mean().item():.1%}")
    print(f"{x[0].tolist()} -> {guess[0].tolist()}")


if __name__ == "__main__":
    main()
