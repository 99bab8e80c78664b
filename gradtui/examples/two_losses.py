"""Where a thrown ball lands and whether it clears the wall: one trunk, two heads, two losses.

From speed, angle and height of release, a shared trunk feeds a head that predicts the distance and one that predicts
whether the ball passes over a wall ten metres away. Each loss has a backward of its own; what the trunk learns from is
their sum.
"""

import argparse
import math

import torch
from torch import nn

GRAVITY = 9.81
WALL_AT, WALL_HEIGHT = 10.0, 3.0


class Throw(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(3, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.distance = nn.Linear(width, 1)
        self.clears = nn.Linear(width, 1)

    def forward(self, x):
        features = self.trunk(x)
        return self.distance(features).squeeze(1), self.clears(features).squeeze(1)


def throw_balls(count):
    """Inputs scaled to -1..1, the distance in tens of metres, and 1.0 where the ball passes over the wall."""
    scaled = 2 * torch.rand(count, 3) - 1
    speed = 14 + 6 * scaled[:, 0]
    angle = math.radians(45) + math.radians(30) * scaled[:, 1]
    height = 1.5 + 0.5 * scaled[:, 2]
    vx, vy = speed * angle.cos(), speed * angle.sin()
    landing = vx * (vy + (vy**2 + 2 * GRAVITY * height).sqrt()) / GRAVITY
    t = WALL_AT / vx
    over = height + vy * t - GRAVITY * t**2 / 2 > WALL_HEIGHT
    return scaled, landing / 10, over.float()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    model = Throw()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    mse = nn.MSELoss()
    bce = nn.BCEWithLogitsLoss()

    for step in range(1, args.steps + 1):
        x, distance, clears = throw_balls(args.batch_size)
        distance_hat, clears_hat = model(x)
        loss_distance = mse(distance_hat, distance)
        loss_clears = bce(clears_hat, clears)

        optimizer.zero_grad()
        loss_distance.backward(retain_graph=True)
        loss_clears.backward()
        optimizer.step()

        if step % 100 == 0 or step == args.steps:
            print(f"step {step:4d}  distance {loss_distance.item():.4f}  clears {loss_clears.item():.4f}", flush=True)

    with torch.no_grad():
        x, distance, clears = throw_balls(2000)
        distance_hat, clears_hat = model(x)
        error = 10 * (distance_hat - distance).abs().mean().item()
        right = ((clears_hat > 0) == (clears > 0.5)).float().mean().item()
    print(f"distance off by {error:.2f} m on average; the wall judged rightly {right:.1%} of the time")


if __name__ == "__main__":
    main()
