"""A character-level GRU that learns to write like Romeo and Juliet.

Reads the first act of the play, 31 kB of text, and trains a one-layer GRU to predict the next character in windows of
64. Prints the loss as it goes and, at the end, a few lines of its own. Adam, with gradients clipped to norm 1.
"""

import argparse
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

TEXT = Path(__file__).with_name("romeo_and_juliet.txt")


class CharGRU(nn.Module):
    def __init__(self, vocabulary, width):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.gru = nn.GRU(width, width, batch_first=True)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, x, hidden=None):
        out, hidden = self.gru(self.embed(x), hidden)
        return self.head(self.norm(out)), hidden


def batches(data, batch_size, length):
    """One pass over the text in random windows: inputs and, one character later, targets."""
    starts = torch.randperm(len(data) - length - 1)
    for i in range(len(data) // (batch_size * length)):
        rows = starts[i * batch_size : (i + 1) * batch_size]
        window = torch.stack([data[s : s + length + 1] for s in rows.tolist()])
        yield window[:, :-1], window[:, 1:]


@torch.no_grad()
def sample(model, chars, prompt, count, temperature=0.7):
    model.eval()
    index = {c: i for i, c in enumerate(chars)}
    x = torch.tensor([[index[c] for c in prompt]])
    hidden, out = None, prompt
    for _ in range(count):
        logits, hidden = model(x, hidden)
        x = torch.multinomial(F.softmax(logits[:, -1] / temperature, dim=-1), 1)
        out += chars[x.item()]
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=Path, default=TEXT, help="file to learn from")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--steps", type=int, default=None, help="stop after this many steps")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--length", type=int, default=64, help="characters in a window")
    parser.add_argument("--width", type=int, default=96)
    parser.add_argument("--lr", type=float, default=4e-3)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    text = args.text.read_text(encoding="utf-8")
    chars = sorted(set(text))
    data = torch.tensor([chars.index(c) for c in text])

    model = CharGRU(len(chars), args.width)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    size = sum(p.numel() for p in model.parameters())
    print(f"{len(text):,} characters, {len(chars)} different; {size:,} parameters")

    step = 0
    started = time.time()
    for epoch in range(1, args.epochs + 1):
        model.train()
        total = count = 0
        for x, y in batches(data, args.batch_size, args.length):
            if step == args.steps:
                break
            optimizer.zero_grad()
            logits, _ = model(x)
            loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), args.clip)
            optimizer.step()
            total += loss.item()
            count += 1
            step += 1
        if count == 0:
            break
        print(f"epoch {epoch:2d}  step {step:4d}  loss {total / count:.3f}  {time.time() - started:.1f}s", flush=True)

    print("-" * 40)
    print(sample(model, chars, prompt="ROMEO:\n", count=200))


if __name__ == "__main__":
    main()
