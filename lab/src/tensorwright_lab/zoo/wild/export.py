"""Write a network of the suite as an ONNX file, as PyTorch's users do. Run in a process of its own.

PyTorch brings a libgomp of its own: kernels of the calling process must not meet it.

A PyTorch module with seeded weights, and the inputs that it is exported with.
"""

from __future__ import annotations

import importlib
import io
import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import onnx
import torch
from onnx import ModelProto
from torch import Tensor, nn

from tensorwright_lab.zoo.wild.suite import BUILDER, SEED


@dataclass(frozen=True, slots=True)
class Example:
    """A module, and inputs by name in the order of its `forward`."""

    module: nn.Module
    inputs: Mapping[str, Tensor]


def draw_weights(module: nn.Module, seed: int) -> None:
    """Give every parameter and every statistic of a norm random values that follow the seed.

    Matrices and filters keep the scale of their inputs; scales and variances lie near 1, biases
    are small: no part of the network is the identity, and activations neither vanish nor explode.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for owner, name, tensor in _floats_of(module):
            tensor.copy_(_draw(owner, name, tensor, generator))


def draw_inputs(example: Example, seed: int) -> dict[str, Tensor]:
    """Inputs that follow the seed: normal numbers, and positions that all tables have.

    Whole numbers that are not zero in the example, as those of masks, stay as they are.
    """
    generator = torch.Generator().manual_seed(seed)
    tables = (nn.Embedding, nn.EmbeddingBag)
    sizes = (each.num_embeddings for each in example.module.modules() if isinstance(each, tables))
    rows = min(sizes, default=2)
    drawn = {}
    for name, given in example.inputs.items():
        if given.is_floating_point():
            drawn[name] = torch.randn(given.shape, generator=generator)
        elif given.any():
            drawn[name] = given
        else:
            drawn[name] = torch.randint(0, rows, given.shape, generator=generator)
    return drawn


def _floats_of(module: nn.Module) -> Iterator[tuple[nn.Module, str, Tensor]]:
    """Parameters, and the buffers of batch normalisation, with the module that holds them."""
    for owner in module.modules():
        for name, parameter in owner.named_parameters(recurse=False):
            yield owner, name, parameter
        for name, buffer in owner.named_buffers(recurse=False):
            if name.startswith("running_"):
                yield owner, name, buffer


def _draw(owner: nn.Module, name: str, tensor: Tensor, generator: torch.Generator) -> Tensor:
    normal = torch.randn(tensor.shape, generator=generator)
    if isinstance(owner, nn.PReLU):
        return 0.25 + 0.05 * normal
    if isinstance(owner, nn.Embedding):
        return 0.5 * normal
    if tensor.dim() == 1 and name in ("weight", "running_var"):
        return torch.rand(tensor.shape, generator=generator) + 0.5
    if tensor.dim() == 1:
        return 0.1 * normal
    convolution = isinstance(owner, nn.Conv1d | nn.Conv2d | nn.Conv3d)
    gain = math.sqrt(2.0) if convolution else 1.0
    return normal * gain / math.sqrt(max(1, tensor[0].numel()))


OPSET = 17


def make_example(builder: str, seed: int) -> Example:
    """The example that "file:function" of this folder makes, with seeded weights."""
    module, _, function = builder.partition(":")
    file = importlib.import_module(f"{__package__}.{module}")
    make: Callable[[], Example] = getattr(file, function)
    torch.manual_seed(seed)
    example = make()
    draw_weights(example.module, seed)
    return example


def export_onnx(example: Example) -> ModelProto:
    """The model that PyTorch's exporter writes by tracing, nothing of it changed."""
    example.module.eval()
    file = io.BytesIO()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # of the exporter: that it is the old one, and of tracing
        torch.onnx.export(
            example.module,
            tuple(example.inputs.values()),
            file,
            input_names=list(example.inputs),
            opset_version=OPSET,
            dynamo=False,
        )
    return onnx.load_from_string(file.getvalue())


def export_file(builder: str, seed: int, path: str) -> None:
    """Write the model of a builder to a file, and from what it was made beside its graph."""
    model = export_onnx(make_example(builder, seed))
    onnx.helper.set_model_props(model, {BUILDER: builder, SEED: str(seed)})
    onnx.save(model, path)
