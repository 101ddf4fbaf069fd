"""Read models: of ONNX, and exported programs of PyTorch. Start with `importer.py`, then `call.py`.

reading, refusals             from a path or bytes to a checked model; what import refuses
importer, call                a model as a graph, node by node; a node as converters see it
converters/                   one family of operators in a file, of ONNX and of ATen
counterparts, formula         operators that are ours by another name; arithmetic as text, types
aten/                         programs of PyTorch: their files, their records, their importer
gguf/                         language models of GGUF files, as ONNX models
com_microsoft/, ai_onnx_ml/   ONNX Runtime's own operators; trees and other classical models
control_flow                  branches and loops; what they use of the graph around them
functions                     a node in place of which its function's nodes stand
shapes, open_dimensions       types of inputs; their open dimensions as named sizes
size_terms, folding           what is computed of sizes, and of constants, while a model is read
tensors                       encodings of arrays
"""

from tensorwright.graph.imports.folding import value_inputs
from tensorwright.graph.imports.importer import declared_types, load_onnx, read_supported_model
from tensorwright.graph.imports.reading import external_files, is_gguf, whole_model
