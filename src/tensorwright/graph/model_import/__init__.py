"""Import a model of any kind: the readers of ONNX and of PyTorch behind one name."""

from tensorwright.graph.model_import.load_model import (
    Source,
    check_operators,
    declared_types,
    files_beside,
    is_exported_program,
    load_model,
)

__all__ = [
    "Source",
    "check_operators",
    "declared_types",
    "files_beside",
    "is_exported_program",
    "load_model",
]
