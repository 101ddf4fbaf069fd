"""A module of PyTorch, compiled by torch.compile: other batches, new weights, no gradients."""

import torch
from torch import nn

module = nn.Sequential(
    nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU(inplace=True),
    nn.Conv2d(16, 32, 3, 2, 1), nn.GELU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10),
).eval()  # fmt: skip
compiled = torch.compile(module, backend="tensorwright")


def check(what: str, images: torch.Tensor) -> None:
    difference = (compiled(images) - module(images)).abs().max().item()
    print(f"{what}: greatest difference {difference:.1e}")
    assert difference < 1e-4


with torch.no_grad():
    check("two images", torch.randn(2, 3, 64, 64))
    for batch in (3, 5, 8):  # one executable for all of them
        check(f"{batch} images", torch.randn(batch, 3, 64, 64))
    module[-1].weight.mul_(2.0)
    check("other weights", torch.randn(2, 3, 64, 64))
