"""Read exported graphs of PyTorch, from a .pt2 file or from memory, without PyTorch.

Start with `record.py`, which defines such a graph.  `archive.py` and `schema.py` read one from a
file, and `importer.py` makes a Graph of it.
"""

from tensorwright.graph.imports.aten.archive import is_archive, read_pt2
from tensorwright.graph.imports.aten.importer import declared_inputs, load_exported
from tensorwright.graph.imports.aten.record import (
    DTYPES, Argument, Body, ElementType, ExportedGraph, Input, Node, Ref, TensorMeta,
    only_in_pytorch,
)
