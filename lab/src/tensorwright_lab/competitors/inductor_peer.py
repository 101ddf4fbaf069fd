"""PyTorch's compiler at its best: `torch.compile` with max-autotune, weights frozen.

Freezing makes the weights constants of the compiled code, which folds and packs them. Its code is
C++: it needs a compiler, and minutes for a large network; what it has compiled is kept in the knob
`home` for the next time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import torch._inductor.config as settings

from tensorwright.base import knobs
from tensorwright_lab.competitors.pytorch_peer import ModuleNetwork, TorchPeer, bind_call
from tensorwright_lab.competitors.torch_network import Network


class InductorPeer(TorchPeer):
    """See the module's text."""

    def describe(self) -> str:
        """How it runs, in a word."""
        return "inductor, max-autotune, frozen"

    def prepare(
        self, network: Network | ModuleNetwork, tensors: Sequence[Any]
    ) -> Callable[[], Sequence[Any]]:
        """The function to time: the network, compiled whole for these shapes."""
        os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(Path(knobs.HOME.get()) / "inductor"))
        settings.freezing = True
        compiled = torch.compile(network, mode="max-autotune", fullgraph=True, dynamic=False)
        return bind_call(compiled, tensors)
