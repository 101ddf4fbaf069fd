"""Save small modules with torch.export.save, and what they compute: the files in `saved/`.

    python save_programs.py FOLDER

Run by each version of PyTorch whose files the reader must know; the folder of a version has its
name, as torch-2.9.1.  Weights and inputs are the same for all versions.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional


class Cnn(nn.Module):
    """Two convolutions with batch normalization, a mean of pixels, a product."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU()),
            *(nn.Conv2d(8, 12, 3, stride=2, padding=1), nn.BatchNorm2d(12), nn.SiLU()),
            *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(12, 5)),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


class Encoder(nn.Module):
    """One layer of a transformer, whose weights of queries, keys and values are views of one."""

    def __init__(self, width: int = 16, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.joint, self.mixed = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.joint(self.before(x)).chunk(3, dim=-1)
        shape = (batch, length, self.heads, width // self.heads)
        q, k, v = (part.view(shape).transpose(1, 2) for part in parts)
        mixed = functional.scaled_dot_product_attention(q, k, v)
        x = x + self.mixed(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(functional.gelu(self.up(self.between(x))))


class Counter(nn.Module):
    """Counts its calls in a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls.add_(1)
        return x * self.calls


class Several(nn.Module):
    """Two results of two types, and a constant that is no parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.scores = nn.Linear(6, 4)
        self.steps = torch.arange(4, dtype=torch.float32)

    def forward(self, x: torch.Tensor, shift: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scores = torch.softmax(self.scores(x) + self.steps + shift, dim=-1)
        return scores, scores.argmax(dim=-1)


def main() -> None:
    """Write the files of the version of PyTorch that runs this."""
    folder = Path(sys.argv[1]) / f"torch-{torch.__version__.partition('+')[0]}"
    folder.mkdir(parents=True, exist_ok=True)
    batch = torch.export.Dim("batch", min=1, max=8)
    draw = np.random.default_rng(5).standard_normal
    save(folder, "cnn", Cnn(), (draw((2, 3, 9, 9)),), None)
    save(folder, "encoder", Encoder(), (draw((3, 5, 16)),), ({0: batch},))
    save(folder, "several", Several(), (draw((2, 6)), draw((2, 4))), None)
    save(folder, "counter", Counter(), (draw((4,)),), None)


def save(folder: Path, name: str, module: nn.Module, given: tuple[Any, ...], sizes: Any) -> None:
    """Write NAME.pt2 and NAME.npz, with inputs x0, x1, ... and results y0, y1, ...

    `sizes` is what torch.export.export takes as dynamic shapes.
    """
    draw = np.random.default_rng(sum(map(ord, name))).uniform
    module.eval()
    for key, held in module.state_dict().items():
        if held.is_floating_point() and held.ndim:
            low, high = (0.5, 1.5) if "var" in key else (-0.5, 0.5)
            held.copy_(torch.from_numpy(draw(low, high, held.shape)))
    inputs = tuple(torch.from_numpy(each.astype(np.float32)) for each in given)
    with torch.no_grad():
        program = torch.export.export(module, inputs, dynamic_shapes=sizes)
        results = program.module()(*inputs)
    torch.export.save(program, folder / f"{name}.pt2")
    listed = results if isinstance(results, tuple) else (results,)
    arrays = {f"x{n}": each.numpy() for n, each in enumerate(inputs)}
    arrays |= {f"y{n}": each.numpy() for n, each in enumerate(listed)}
    np.savez_compressed(folder / f"{name}.npz", **arrays)


if __name__ == "__main__":
    main()
