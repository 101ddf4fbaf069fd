"""The text form of graphs; `parse.py` reads it back.

Grammar
    graph     ::= "graph" name NEWLINE (line NEWLINE)*
    line      ::= "input" name ":" type | "constant" name ":" type "=" digest
                | name ("," name)* "=" operator "(" (name | key "=" value) ("," ...)* ")" ":" type
                ("," type)*
                | "output" name ("," name)*
    type      ::= dtype "(" (int ("," int)*)? ")" ("layout" "(" ... ")")?
    value     ::= int | float | True | False | "text" | dtype | "(" value ("," value)* ","? ")"
    name      ::= letters, digits, "_", "." and "/" as they are; anything else as a JSON string
"""

from __future__ import annotations

import hashlib
import html
import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from tensorwright.base import DType, Printer
from tensorwright.ops import Array, AttributeValue, TensorType

if TYPE_CHECKING:
    from tensorwright.graph.graph import Graph, Layout, Node

PLAIN_NAME = re.compile(r"[A-Za-z0-9_./]+")
_DIGEST_DIGITS = 16
_HTML_NODES = 200


def digest(array: Array) -> str:
    """A short SHA-256 of the element type, the shape and the bytes, as the text form shows it."""
    head = f"{DType.from_numpy(array.dtype)}{array.shape}".encode()
    state = hashlib.sha256(head)
    state.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return "sha256:" + state.hexdigest()[:_DIGEST_DIGITS]


def format_name(name: str) -> str:
    """A tensor name, quoted where it holds more than letters, digits, "_", "." and "/"."""
    return name if PLAIN_NAME.fullmatch(name) else json.dumps(name)


def format_value(value: AttributeValue) -> str:
    """An attribute value as the text form writes it."""
    if isinstance(value, tuple):
        inner = ", ".join(map(format_value, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return str(value) if isinstance(value, DType) else repr(value)


def format_layout(layout: Layout) -> str:
    """`plain`, or what differs from it: `layout(axis=1, block=16)`."""
    parts = []
    if layout.block != 1:
        parts += [f"axis={layout.axis}", f"block={layout.block}"]
    if layout.order:
        parts.append(f"order={format_value(layout.order)}")
    return f"layout({', '.join(parts)})" if parts else "plain"


def format_node(node: Node, outputs: Iterable[str] = ()) -> str:
    """`y = conv(x, w, strides=(1, 1))`, with the types of the outputs behind it where given."""
    arguments = [format_name(name) for name in node.inputs]
    arguments += [f"{key}={format_value(value)}" for key, value in node.attributes]
    left = ", ".join(map(format_name, node.outputs))
    types = ", ".join(outputs)
    return f"{left} = {node.operator}({', '.join(arguments)})" + (f" : {types}" if types else "")


def _typed(name: str, types: Mapping[str, TensorType], layouts: Mapping[str, Layout]) -> str:
    layout = layouts.get(name)
    suffix = "" if layout is None or layout.is_plain else f" {format_layout(layout)}"
    return f"{types[name]}{suffix}"


def format_graph(graph: Graph) -> str:
    """The text form of a graph; constants by name, type and digest."""
    page = Printer()
    types, layouts = graph.types, graph.layouts
    with page.block(f"graph {format_name(graph.name)}"):
        for name in graph.inputs:
            page.line(f"input {format_name(name)}: {_typed(name, types, layouts)}")
        for name, array in graph.constants.items():
            typed = _typed(name, types, layouts)
            page.line(f"constant {format_name(name)}: {typed} = {digest(array)}")
        for node in graph.nodes:
            page.line(format_node(node, [_typed(name, types, layouts) for name in node.outputs]))
        page.line(f"output {', '.join(map(format_name, graph.outputs))}".rstrip())
    return str(page)


def graph_to_html(graph: Graph) -> str:
    """A small page for notebooks: the signature, and the first nodes folded away."""
    rows = [f"{graph.name}: {len(graph.nodes)} nodes, {len(graph.constants)} constants"]
    rows += [f"input {name}: {graph.types[name]}" for name in graph.inputs]
    rows += [f"output {name}: {graph.types[name]}" for name in graph.outputs]
    nodes = [
        format_node(node, [str(graph.types[name]) for name in node.outputs])
        for node in graph.nodes[:_HTML_NODES]
    ]
    if len(graph.nodes) > _HTML_NODES:
        nodes.append(f"... and {len(graph.nodes) - _HTML_NODES} more")
    head, body = html.escape("\n".join(rows)), html.escape("\n".join(nodes))
    return f"<details><summary><pre>{head}</pre></summary><pre>{body}</pre></details>"
