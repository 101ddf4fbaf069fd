"""A program of torch.export in a file, which is compiled without PyTorch and saved."""

import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from torch import nn

module = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 8)).eval()
batch = torch.export.Dim("batch", min=1, max=64)
program = torch.export.export(module, (torch.randn(2, 64),), dynamic_shapes=({0: batch},))

WITHOUT_PYTORCH = """
import numpy as np, sys, tensorwright
executable = tensorwright.compile("model.pt2")
print(*executable.sizes, "->", executable(np.ones((5, 64), np.float32)).shape)
executable.save("model.tw")
assert "torch" not in sys.modules
"""
with tempfile.TemporaryDirectory() as folder:
    torch.export.save(program, Path(folder) / "model.pt2")
    subprocess.run([sys.executable, "-c", WITHOUT_PYTORCH], cwd=folder, check=True)
    print("model.tw:", (Path(folder) / "model.tw").stat().st_size, "bytes")
