"""Write a network of the suite as an ONNX file, as PyTorch's users do. Run in a process of its own.

PyTorch brings a libgomp of its own: kernels of the calling process must not meet it.
"""

from __future__ import annotations

import importlib
import io
import warnings
from collections.abc import Callable

import onnx
import torch
from onnx import ModelProto

from tensorwright_lab.zoo.wild.example import Example, draw_weights
from tensorwright_lab.zoo.wild.suite import BUILDER, SEED

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
