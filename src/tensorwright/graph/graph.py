"""The graph IR: a network as a list of operator applications in an order in which they can run.

Grammar
    graph ::= Graph(name, inputs, constants, nodes, outputs)
    node  ::= Node(operator, inputs, attributes, outputs, graphs)    every tensor has one definition

Text form, which `text/parse.py` reads back
    graph     ::= "graph" name NEWLINE (line NEWLINE)*
    line      ::= "size" name (":" constraints, "n <= 512, n % 8 == 0")?
                | "input" name ":" type | "constant" name ":" type "=" digest
                | name ("," name)* "=" operator "(" (name | key "=" value) ("," ...)* ")" ":" type
                ("," type)* graph*, indented: those that the node holds
                | "output" name ("," name)*
    type      ::= dtype "(" (size ("," size)*)? ")" ("layout" "(" ... ")")?
    value     ::= size | float | True | False | "text" | dtype | "(" value ("," value)* ","? ")"
    size      ::= int | an expression of the sizes, "2*n + 1"
    name      ::= letters, digits, "_", "." and "/" as they are; anything else as a JSON string

Semantics.  A graph is a pure function of its inputs.  Dtypes are static, shapes are numbers or
expressions of named sizes, which are known when the network runs (`sizes.py`); the types of
all tensors follow from the inputs, the constants and the operators' shape rules, and are kept in
`types`.  A layout is the order of a tensor in memory and does not change its meaning: shapes and
axes of operators are always those of the plain tensor.  A node may hold graphs, which it runs when
it runs (`nested/`): a branch, a loop.  They see nothing of the graph around them but their inputs.
"""

from __future__ import annotations

import hashlib
import html
import json
import math
import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, count
from types import MappingProxyType

import numpy as np

from tensorwright import base, ops
from tensorwright.expr import Index, IndexExpr, NamedSize, named_sizes_of

PLAIN_NAME = re.compile(r"[A-Za-z0-9_./]+")
_DIGEST_DIGITS = 16


def digest(array: ops.Array) -> str:
    """A short SHA-256 of the element type, the shape and the bytes, as the text form shows it."""
    head = f"{base.DType.from_numpy(array.dtype)}{array.shape}".encode()
    state = hashlib.sha256(head)
    state.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return "sha256:" + state.hexdigest()[:_DIGEST_DIGITS]


def format_name(name: str) -> str:
    """A tensor name, quoted where it holds more than letters, digits, "_", "." and "/"."""
    return name if PLAIN_NAME.fullmatch(name) else json.dumps(name)


def format_value(value: ops.AttributeValue) -> str:
    """An attribute value as the text form writes it."""
    if isinstance(value, tuple):
        inner = ", ".join(map(format_value, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return str(value) if isinstance(value, base.DType | base.OpenSize) else repr(value)


_HTML_NODES = 200


@dataclass(frozen=True, slots=True)
class Node:
    """One application of an operator; attributes are sorted by name and complete.

    graphs   nested graphs: the branches of a branch, the body of a loop
    """

    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: tuple[tuple[str, ops.AttributeValue], ...] = ()
    graphs: tuple[Graph, ...] = ()

    @property
    def attribute_map(self) -> dict[str, ops.AttributeValue]:
        """The attributes by name."""
        return dict(self.attributes)

    def ints(self, name: str) -> tuple[int, ...]:
        """An attribute that is a tuple of integers.

        Raises:  UndecidedError where one is a named size.
        """
        return tuple(map(ops.number_of, self.sizes(name)))

    def sizes(self, name: str) -> tuple[Index, ...]:
        """An attribute that is a tuple of integers, or of named sizes."""
        value = self.attribute_map[name]
        if not isinstance(value, tuple):
            raise self._wrong(name, "a tuple of integers")
        return tuple(map(ops.as_size, value))

    def integer(self, name: str) -> int:
        """An integer or bool attribute, as an integer."""
        value = self.attribute_map[name]
        if isinstance(value, int):
            return int(value)
        raise self._wrong(name, "an integer")

    def number(self, name: str) -> float:
        """A number attribute."""
        value = self.attribute_map[name]
        if isinstance(value, int | float):
            return float(value)
        raise self._wrong(name, "a number")

    def _wrong(self, name: str, wanted: str) -> base.ModelError:
        reason = f"attribute {name} is not {wanted}"
        remedy = f"docs/operators.md says what attributes {self.operator} has"
        return base.ModelError(stage="graph", where=self.label, reason=reason, remedy=remedy)

    def renamed(self, names: Mapping[str, str]) -> Node:
        """The node with new names for its tensors; one without a new name keeps its own."""
        inputs, outputs = (
            tuple(names.get(name, name) for name in each) for each in (self.inputs, self.outputs)
        )
        return replace(self, inputs=inputs, outputs=outputs)

    @property
    def label(self) -> str:
        """The name in messages: the operator and its first output."""
        return f"node {self.outputs[0]} ({self.operator})"

    def text(self, types: Iterable[str] = ()) -> str:
        """`y = conv(x, w, strides=(1, 1))`, with the types of the outputs behind it if given."""
        arguments = [format_name(name) for name in self.inputs]
        arguments += [f"{key}={format_value(value)}" for key, value in self.attributes]
        left = ", ".join(map(format_name, self.outputs))
        right = f"{self.operator}({', '.join(arguments)})"
        return " : ".join(filter(None, [f"{left} = {right}", ", ".join(types)]))

    def __str__(self) -> str:
        return self.text()


@dataclass(frozen=True, slots=True)
class Layout:
    """The order of a tensor in memory: plain row-major, or dimension `axis` split with the inner
    part of `block` last.

    "NCHW16c" is Layout(axis=1, block=16): physical shape (N, C/16, H, W, 16).
    `block` divides the extent.
    `order` is a permutation of the logical dimensions that is applied first (NHWC is order (0, 2,
    3, 1)); empty: none.
    """

    axis: int = -1
    block: int = 1
    order: tuple[int, ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether this is row-major order."""
        return self.block == 1 and not self.order

    def __str__(self) -> str:
        """`plain`, or the differences from it: `layout(axis=1, block=16)`."""
        parts = []
        if self.block != 1:
            parts += [f"axis={self.axis}", f"block={self.block}"]
        if self.order:
            parts.append(f"order={format_value(self.order)}")
        return f"layout({', '.join(parts)})" if parts else "plain"


PLAIN = Layout()


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """A network.  Compare with `str(graph)` (and the constants' bytes): identity is not structure.

    inputs     names in calling order
    constants  name -> read-only array
    nodes      in topological order
    outputs    names of tensors, in order; may name an input or a constant
    types      name -> TensorType of every tensor
    layouts    name -> Layout; a tensor that is not named here is plain
    """

    name: str
    inputs: tuple[str, ...]
    constants: Mapping[str, ops.Array]
    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    types: Mapping[str, ops.TensorType]
    layouts: Mapping[str, Layout] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def input_types(self) -> dict[str, ops.TensorType]:
        """The type of each input, in calling order."""
        return {name: self.types[name] for name in self.inputs}

    @property
    def output_types(self) -> dict[str, ops.TensorType]:
        """The type of each output, in order."""
        return {name: self.types[name] for name in self.outputs}

    @property
    def sizes(self) -> tuple[NamedSize, ...]:
        """The named sizes of its tensors and attributes, each once."""
        pending: list[ops.AttributeValue] = [type_.shape for type_ in self.types.values()]
        pending += [value for node in self.nodes for _, value in node.attributes]
        sizes: dict[NamedSize, None] = {}
        for value in pending:
            if isinstance(value, tuple):
                pending.extend(value)
            elif isinstance(value, IndexExpr):
                sizes.update(dict.fromkeys(named_sizes_of(value)))
        for node in self.nodes:
            for nested in node.graphs:
                sizes.update(dict.fromkeys(nested.sizes))
        return tuple(sizes)

    def producers(self) -> dict[str, Node]:
        """The node that makes each tensor; inputs and constants have none."""
        return {name: node for node in self.nodes for name in node.outputs}

    def __str__(self) -> str:
        page = base.Printer()
        with page.block(f"graph {format_name(self.name)}"):
            for size in self.sizes:
                page.line(f"size {size.name}: {size.constraints}".removesuffix(": "))
            for name in self.inputs:
                page.line(f"input {format_name(name)}: {self._typed(name)}")
            for name, array in self.constants.items():
                page.line(f"constant {format_name(name)}: {self._typed(name)} = {digest(array)}")
            for node in self.nodes:
                page.line(node.text(map(self._typed, node.outputs)))
                with page.indent():
                    for nested in node.graphs:
                        page.lines(str(nested).splitlines())
            page.line(f"output {', '.join(map(format_name, self.outputs))}".rstrip())
        return str(page)

    def _typed(self, name: str) -> str:
        layout = self.layouts.get(name, PLAIN)
        return f"{self.types[name]}" + ("" if layout.is_plain else f" {layout}")

    def _repr_html_(self) -> str:
        """A small page for notebooks: the signature, and the first nodes folded away."""
        rows = [f"{self.name}: {len(self.nodes)} nodes, {len(self.constants)} constants"]
        rows += [f"input {name}: {self.types[name]}" for name in self.inputs]
        rows += [f"output {name}: {self.types[name]}" for name in self.outputs]
        nodes = [
            node.text(str(self.types[name]) for name in node.outputs)
            for node in self.nodes[:_HTML_NODES]
        ]
        if len(self.nodes) > _HTML_NODES:
            nodes.append(f"... and {len(self.nodes) - _HTML_NODES} more")
        head, body = html.escape("\n".join(rows)), html.escape("\n".join(nodes))
        return f"<details><summary><pre>{head}</pre></summary><pre>{body}</pre></details>"


def free_name(wish: str, taken: Container[str], first: int = 0, sign: str = "_") -> str:
    """A name that is not taken: the wish, or the wish with a number behind it."""
    numbered = (f"{wish}{sign}{number}" for number in count(first))
    return next(name for name in chain((wish,), numbered) if name not in taken)


def rename_tensors(graph: Graph, names: Mapping[str, str]) -> Graph:
    """The same graph under new names; a tensor that is not in `names` keeps its own, numbered where
    that is taken.

    Raises:  InternalError if two tensors would get one name.
    """
    if len(set(names.values())) < len(names):
        raise base.InternalError(
            stage="graph", where=f"graph {graph.name}", reason="two tensors get one name"
        )
    full = dict(names)
    taken = set(names.values())
    for old in graph.types:
        if old in full:
            continue
        full[old] = free_name(old, taken)
        taken.add(full[old])
    nodes = tuple(node.renamed(full) for node in graph.nodes)
    return Graph(
        graph.name,
        tuple(full[name] for name in graph.inputs),
        MappingProxyType({full[name]: array for name, array in graph.constants.items()}),
        nodes,
        tuple(full[name] for name in graph.outputs),
        MappingProxyType({full[name]: type_ for name, type_ in graph.types.items()}),
        MappingProxyType({full[name]: layout for name, layout in graph.layouts.items()}),
    )


def are_alike(one: Graph, other: Graph) -> bool:
    """Whether two graphs are the same but for the names of tensors between inputs and outputs."""
    ends = ((*one.inputs, *one.outputs), (*other.inputs, *other.outputs))
    if (one.inputs, one.outputs) != (other.inputs, other.outputs):
        return False
    if len(one.nodes) != len(other.nodes):
        return False
    pairs = list(zip(*ends, strict=True))
    for mine, its in zip(one.nodes, other.nodes, strict=True):
        if (mine.operator, mine.attributes) != (its.operator, its.attributes):
            return False
        if len(mine.graphs) != len(its.graphs) or not all(map(are_alike, mine.graphs, its.graphs)):
            return False
        if (len(mine.inputs), len(mine.outputs)) != (len(its.inputs), len(its.outputs)):
            return False
        pairs += zip((*mine.inputs, *mine.outputs), (*its.inputs, *its.outputs), strict=True)
    names = dict(pairs)
    if any(names[mine] != its for mine, its in pairs) or len(set(names.values())) < len(names):
        return False
    return all(_tensors_alike(one, mine, other, its) for mine, its in names.items())


def _tensors_alike(one: Graph, mine: str, other: Graph, its: str) -> bool:
    """Whether tensors have one type and layout and, if they are constants, one value."""
    if one.types[mine] != other.types[its] or one.layouts.get(mine) != other.layouts.get(its):
        return False
    if mine not in one.constants or its not in other.constants:
        return (mine in one.constants) == (its in other.constants)
    return np.array_equal(one.constants[mine], other.constants[its], equal_nan=True)
