"""The operators of hand_schedules.py in PyTorch, in every layout that PyTorch may be best in.

Each is a factory for the competitor of kind "function" (see tensorwright.peers): it is imported
in a process that never loads our kernels. Weights are constants, packed before timing where the
variant can pack them; inputs lie in the layout that the variant likes best.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch.utils import mkldnn

Run = Callable[[], torch.Tensor]


def operator(
    inputs: Mapping[str, np.ndarray],
    threads: int,
    kind: str,
    variant: str,
    sizes: Mapping[str, int],
) -> Callable[[], object]:
    """The function to time: one call of an operator, on inputs of its own.

    Variants: contiguous, channels_last, frozen, frozen channels_last, mkldnn (convolution and
    matmul); transposed weight, out (matmul); contiguous, out (softmax).
    """
    del inputs
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    torch.set_num_threads(threads)
    torch.set_grad_enabled(mode=False)
    torch.manual_seed(0)
    make = {"conv2d": _conv2d, "matmul": _matmul, "softmax": _softmax}[kind]
    run = make(variant, **sizes)

    run()
    return run


def _conv2d(variant: str, channels: int, filters: int, size: int, kernel: int, groups: int) -> Run:
    module = torch.nn.Conv2d(
        channels, filters, kernel, padding=kernel // 2, groups=groups, bias=False
    ).eval()
    x = torch.randn(1, channels, size, size)
    if variant.endswith("channels_last"):
        module = module.to(memory_format=torch.channels_last)
        x = x.contiguous(memory_format=torch.channels_last)
    return _prepared(module, x, variant)


def _matmul(variant: str, m: int, k: int, n: int) -> Run:
    a = torch.randn(m, k)
    linear = torch.nn.Linear(k, n, bias=False).eval()
    match variant:
        case "contiguous":
            b = linear.weight.detach().T.contiguous()
            return lambda: torch.mm(a, b)
        case "out":
            b = linear.weight.detach().T.contiguous()
            c = torch.empty(m, n)
            return lambda: torch.mm(a, b, out=c)
        case "transposed weight":
            return lambda: torch.nn.functional.linear(a, linear.weight)
    return _prepared(linear, a, variant)


def _softmax(variant: str, rows: int, columns: int) -> Run:
    x = torch.randn(rows, columns)
    if variant == "out":
        y = torch.empty(rows, columns)
        return lambda: torch.softmax(x, 1, out=y)
    return lambda: torch.softmax(x, 1)


def _prepared(module: torch.nn.Module, x: torch.Tensor, variant: str) -> Run:
    """The module as it is, frozen by TorchScript (oneDNN packs its weights), or in oneDNN's own
    layout from input to output.
    """
    if variant.startswith("frozen"):
        traced = torch.jit.trace(module, x)
        frozen = torch.jit.optimize_for_inference(torch.jit.freeze(traced))
        for _ in range(3):
            frozen(x)
        return lambda: frozen(x)
    if variant == "mkldnn":
        packed = mkldnn.to_mkldnn(module)
        blocked = x.to_mkldnn()
        return lambda: packed(blocked)
    return lambda: module(x)
