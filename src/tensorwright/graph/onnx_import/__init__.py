"""Read ONNX models. Start with `importer.py`, then `call.py`; each file of `converters/` is one family of operators."""

from tensorwright.graph.onnx_import.importer import load_onnx

__all__ = ["load_onnx"]
