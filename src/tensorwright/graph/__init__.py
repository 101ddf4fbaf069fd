"""Graphs: networks as lists of operator applications. Read `graph.py` first, then `builder.py` and
`interpret.py`.

`onnx_import/` reads ONNX models, `onnx_export/` writes them, `passes/` simplifies.
"""

from tensorwright.graph.builder import GraphBuilder
from tensorwright.graph.graph import PLAIN, Graph, Layout, Node
from tensorwright.graph.interpret import check_inputs, interpret, last_uses, run_node
from tensorwright.graph.onnx_export import save_onnx, to_onnx
from tensorwright.graph.onnx_import import load_onnx, value_inputs
from tensorwright.graph.parse import parse
from tensorwright.graph.passes import PASSES, Simplification, simplify, simplify_with_report
from tensorwright.graph.printing import digest
from tensorwright.graph.rename import rename_tensors
from tensorwright.graph.text_file import load_text, save_text
from tensorwright.graph.verify import verify

__all__ = [
    "PASSES",
    "PLAIN",
    "Graph",
    "GraphBuilder",
    "Layout",
    "Node",
    "Simplification",
    "check_inputs",
    "digest",
    "interpret",
    "last_uses",
    "load_onnx",
    "load_text",
    "parse",
    "rename_tensors",
    "run_node",
    "save_onnx",
    "save_text",
    "simplify",
    "simplify_with_report",
    "to_onnx",
    "value_inputs",
    "verify",
]
