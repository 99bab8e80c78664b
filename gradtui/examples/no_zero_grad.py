"""A housing-price regression whose loss will not settle.

Fits a small network to made-up houses: size, rooms, age and distance from the centre give the price. The loss falls at
first, so it looks as if a lower learning rate or more epochs would do the rest.
"""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_houses(count):
    size = 40 + 160 * torch.rand(count)
    rooms = (size / 30 + torch.randn(count)).round().clamp(1, 8)
    age = 80 * torch.rand(count)
    distance = 20 * torch.rand(count)
    price = 3.0 * size + 15 * rooms - 1.2 * age + 400 / (1 + distance / 4) + 20 * torch.randn(count)
    x = torch.stack([size, rooms, age, distance], dim=1)
    x = (x - x.mean(0)) / x.std(0)
    y = (price - price.mean()) / price.std()
    return x, y.unsqueeze(1)


class PriceModel(nn.Module):
    def __init__(self, features=4, width=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(features, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, 1),
        )

    def forward(self, x):
        return self.net(x)


def train_epoch(model, loader, loss_fn, optimizer):
    model.train()
    total = 0.0
    for x, y in loader:
        prediction = model(x)
        loss = loss_fn(prediction, y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--batch-size", type=int, default=50)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    x, y = make_houses(1000)
    loader = DataLoader(TensorDataset(x, y), batch_size=args.batch_size, shuffle=True)

    model = PriceModel()
    loss_fn = nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)

    for epoch in range(1, args.epochs + 1):
        loss = train_epoch(model, loader, loss_fn, optimizer)
        print(f"epoch {epoch:2d}  loss {loss:.4f}", flush=True)


if __name__ == "__main__":
    main()
