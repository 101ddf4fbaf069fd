"""From a path, bytes or a ModelProto to a checked model. Read `read.py` first."""

from tensorwright.graph.onnx_import.reading.aside import NO_WEIGHTS, Weights, set_aside
from tensorwright.graph.onnx_import.reading.read import (
    DEFAULT_DOMAINS,
    Source,
    external_files,
    opset_of,
    read_model,
)

__all__ = [
    "DEFAULT_DOMAINS",
    "NO_WEIGHTS",
    "Source",
    "Weights",
    "external_files",
    "opset_of",
    "read_model",
    "set_aside",
]
