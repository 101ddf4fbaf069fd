"""Read ONNX models. Start with `importer.py`, then `call.py`; each file of `converters/` is one
family of operators.
"""

from tensorwright.graph.onnx_import.folding import value_inputs
from tensorwright.graph.onnx_import.importer import declared_types, load_onnx, read_supported_model
from tensorwright.graph.onnx_import.reading import external_files
