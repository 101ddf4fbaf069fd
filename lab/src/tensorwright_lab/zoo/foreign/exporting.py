"""Cases from PyTorch: one module, written by both exporters and by the quantizers after them."""

from __future__ import annotations

import io
import logging
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
import torch
from onnxruntime import quantization
from torch import nn
from torch.nn import functional

from tensorwright.base import Array, detect_target
from tensorwright_lab.zoo.foreign.case import Case, Given, Size

BOTH = ("torchscript", "dynamo")
_OPSET = {"torchscript": 17, "dynamo": 18}


@dataclass(frozen=True, slots=True)
class Network:
    """A module of PyTorch with open dimensions, and who writes it."""

    family: str
    name: str
    make: Callable[[], Any]
    inputs: tuple[Given, ...]
    sizes: Mapping[str, Size]
    exporters: tuple[str, ...] = BOTH

    def cases(self) -> Iterator[Case]:
        """A case for each exporter."""
        for exporter in self.exporters:
            build = partial(_built, self, exporter)
            yield Case(self.family, self.name, exporter, self.inputs, self.sizes, build)


def _built(network: Network, exporter: str) -> onnx.ModelProto:
    """The file that an exporter writes, `torchscript`, `dynamo`, `torchscript+dynamic`, ..."""
    writer, _, quantizer = exporter.partition("+")
    with _quiet():
        model = _exported(network, writer)
        if not quantizer:
            return model
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder, "source.onnx"), Path(folder, "target.onnx")
            onnx.save(model, source)
            if quantizer == "dynamic":
                quantization.quantize_dynamic(source, target, reduce_range=_saturates())
            else:
                form = {"qdq": "QDQ", "operators": "QOperator"}[quantizer]
                quantization.quantize_static(
                    source,
                    target,
                    _Calibration(_examples(network, seed) for seed in range(4)),
                    quant_format=quantization.QuantFormat[form],
                    reduce_range=_saturates(),
                )
            return onnx.load(target)


def _saturates() -> bool:
    """Whether ONNX Runtime adds products of bytes in 16 bits, which weights of 7 bits always fit.

    It does so on processors without an instruction that adds four of them in 32 bits.
    """
    return not detect_target().multiplies_bytes


def _exported(network: Network, writer: str) -> onnx.ModelProto:
    torch.manual_seed(0)
    module = network.make().eval()
    example = tuple(torch.from_numpy(array) for array in _examples(network, 0).values())
    names = [each.name for each in network.inputs]
    if writer == "dynamo":
        program = torch.onnx.export(
            module,
            example,
            dynamo=True,
            verbose=False,
            input_names=names,
            opset_version=_OPSET[writer],
            dynamic_shapes=tuple(
                dict.fromkeys(_open_axes(each), torch.export.Dim.DYNAMIC) for each in network.inputs
            ),
        )
        written: onnx.ModelProto = program.model_proto
        return written
    stream = io.BytesIO()
    axes = {
        each.name: {axis: each.shape[axis] for axis in _open_axes(each)} for each in network.inputs
    }
    torch.onnx.export(
        module,
        example,
        stream,
        dynamo=False,
        input_names=names,
        opset_version=_OPSET[writer],
        dynamic_axes=axes,
    )
    return onnx.load_from_string(stream.getvalue())


def _open_axes(given: Given) -> tuple[int, ...]:
    return tuple(axis for axis, extent in enumerate(given.shape) if isinstance(extent, str))


def _examples(network: Network, seed: int) -> dict[str, Array]:
    sizes = {name: size.example for name, size in network.sizes.items()}
    generator = np.random.default_rng(seed)
    return {each.name: each.draw(sizes, generator) for each in network.inputs}


class _Calibration(quantization.CalibrationDataReader):
    """The inputs of which a static quantizer measures the ranges."""

    def __init__(self, feeds: Iterable[dict[str, Array]]) -> None:
        self._feeds = iter(feeds)

    def get_next(self) -> dict[str, Array] | None:
        return next(self._feeds, None)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the warnings and progress of exporters and quantizers."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


Tensor: TypeAlias = Any


class Block(nn.Module):
    """Attention, then two layers, each behind a norm and beside a skip.

    PyTorch's own attention, written by the older exporter, holds the sizes of its example.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.products = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.wide = nn.Linear(width, 2 * width)
        self.narrow = nn.Linear(2 * width, width)

    def forward(self, x: Tensor, hidden: Tensor | None = None) -> Tensor:
        """(batch, positions, width) to the same; hidden (batch, positions): who is not seen."""
        batch, length, width = x.shape
        parts = self.products(self.norms[0](x)).reshape(batch, length, 3, self.heads, -1)
        query, keys, values = parts.permute(2, 0, 3, 1, 4).unbind(0)
        scores = query @ keys.transpose(2, 3) / (width // self.heads) ** 0.5
        if hidden is not None:
            scores = scores.masked_fill(hidden[:, None, None], -1e9)
        mixed = (scores.softmax(-1) @ values).transpose(1, 2).reshape(batch, length, width)
        x = x + self.out(mixed)
        return x + self.narrow(functional.gelu(self.wide(self.norms[1](x))))
