"""A GAN that learns eight points on a circle.

The generator turns noise into points of the plane, the discriminator tells them from samples around eight centres on a
circle. One step of each in turn, each with its own Adam; the generator's fakes are detached for the discriminator's
step.
"""

import argparse
import math

import torch
from torch import nn

NOISE = 8


def mlp(inputs, width, outputs):
    return nn.Sequential(
        nn.Linear(inputs, width),
        nn.LeakyReLU(0.2),
        nn.Linear(width, width),
        nn.LeakyReLU(0.2),
        nn.Linear(width, outputs),
    )


def real_samples(count, spread=0.1):
    angle = torch.randint(0, 8, (count,)) * (2 * math.pi / 8)
    centres = torch.stack([angle.cos(), angle.sin()], dim=1)
    return centres + spread * torch.randn(count, 2)


def modes_found(points):
    """How many of the eight centres have at least 2 % of the points within 0.3."""
    angle = torch.arange(8) * (2 * math.pi / 8)
    centres = torch.stack([angle.cos(), angle.sin()], dim=1)
    near = torch.cdist(points, centres) < 0.3
    return (near.float().mean(0) > 0.02).sum().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    netG = mlp(NOISE, args.width, 2)
    netD = mlp(2, args.width, 1)
    optimizerG = torch.optim.Adam(netG.parameters(), lr=args.lr, betas=(0.5, 0.999))
    optimizerD = torch.optim.Adam(netD.parameters(), lr=args.lr, betas=(0.5, 0.999))
    criterion = nn.BCEWithLogitsLoss()
    ones = torch.ones(args.batch_size, 1)
    zeros = torch.zeros(args.batch_size, 1)

    for step in range(1, args.steps + 1):
        fake = netG(torch.randn(args.batch_size, NOISE))

        # discriminator: real up, fake down
        optimizerD.zero_grad()
        errD_real = criterion(netD(real_samples(args.batch_size)), ones)
        errD_real.backward()
        errD_fake = criterion(netD(fake.detach()), zeros)
        errD_fake.backward()
        optimizerD.step()

        # generator: make the discriminator say "real"
        optimizerG.zero_grad()
        errG = criterion(netD(fake), ones)
        errG.backward()
        optimizerG.step()

        if step % 100 == 0 or step == args.steps:
            with torch.no_grad():
                modes = modes_found(netG(torch.randn(1000, NOISE)))
            errD = errD_real.item() + errD_fake.item()
            print(f"step {step:4d}  D {errD:.3f}  G {errG.item():.3f}  centres found {modes}/8", flush=True)


if __name__ == "__main__":
    main()
