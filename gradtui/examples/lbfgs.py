"""Fits a damped swing to noisy measurements with L-BFGS.

Five numbers (amplitude, frequency, phase, damping, offset) are fitted to 300 noisy readings of a swing that dies down.
Each call of step(closure) evaluates the loss and its gradient as often as the line search wants.
"""

import argparse

import torch
from torch import nn


class DampedSwing(nn.Module):
    def __init__(self):
        super().__init__()
        self.amplitude = nn.Parameter(torch.tensor(1.0))
        self.frequency = nn.Parameter(torch.tensor(2.2))
        self.phase = nn.Parameter(torch.tensor(0.0))
        self.damping = nn.Parameter(torch.tensor(0.1))
        self.offset = nn.Parameter(torch.tensor(0.0))

    def forward(self, t):
        return self.amplitude * torch.exp(-self.damping * t) * torch.cos(self.frequency * t + self.phase) + self.offset


def measure(count, noise=0.05):
    t = torch.linspace(0, 10, count)
    return t, 1.7 * torch.exp(-0.3 * t) * torch.cos(2.5 * t + 0.4) + 0.2 + noise * torch.randn(count)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    t, y = measure(300)
    model = DampedSwing()
    criterion = nn.MSELoss()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4, line_search_fn="strong_wolfe")

    for step in range(1, args.steps + 1):
        evaluations = 0

        def closure():
            nonlocal evaluations
            evaluations += 1
            optimizer.zero_grad()
            loss = criterion(model(t), y)
            loss.backward()
            return loss

        loss = optimizer.step(closure)
        print(f"step {step:2d}  loss {loss.item():.6f}  {evaluations} evaluations", flush=True)

    for name, value in model.named_parameters():
        print(f"{name:10s} {value.item():+.3f}")


if __name__ == "__main__":
    main()
