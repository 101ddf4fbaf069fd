"""Read ONNX models. Start with `importer.py`, then `call.py`; each file of `converters/` is one
family of operators.
"""

from tensorwright.graph.imports.folding import value_inputs
from tensorwright.graph.imports.importer import declared_types, load_onnx, read_supported_model
from tensorwright.graph.imports.reading import external_files
