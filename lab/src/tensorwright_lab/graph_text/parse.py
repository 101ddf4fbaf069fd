"""Read the text form of graphs: the inverse of `graph.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tensorwright.base import ExpressionError
from tensorwright.expr import Index, parse_named_size
from tensorwright.graph.builder import frozen_array
from tensorwright.graph.graph import Graph, Layout, Node, digest
from tensorwright.graph.infer import verify
from tensorwright.ops import Array, TensorType
from tensorwright_lab.graph_text.line import Line, parse_error


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant as the text names it."""

    name: str
    type: TensorType
    digest: str


class _Reader:
    """The contents of the lines read so far."""

    def __init__(self) -> None:
        self.name: str | None = None
        self.inputs: list[str] = []
        self.constants: list[Constant] = []
        self.nodes: list[Node] = []
        self.outputs: tuple[str, ...] = ()
        self.types: dict[str, TensorType] = {}
        self.layouts: dict[str, Layout] = {}
        self.sizes: dict[str, Index] = {}

    def declare(self, name: str, type_: TensorType, layout: Layout) -> None:
        self.types[name] = type_
        if not layout.is_plain:
            self.layouts[name] = layout

    def read(self, line: Line) -> None:
        following = line.peek(1)
        if following in ("=", ","):
            self.read_node(line)
        elif line.skip("size"):
            self.read_size(line)
        elif line.skip("graph"):
            reason = "a node holds it, and graphs of nodes are not read from text"
            raise parse_error(f"graph {line.name()}", reason, "keep the model as an ONNX file")
        elif line.skip("input"):
            name = line.name()
            line.expect(":")
            self.declare(name, *line.type())
            self.inputs.append(name)
        elif line.skip("constant"):
            name = line.name()
            line.expect(":")
            type_, layout = line.type()
            self.declare(name, type_, layout)
            line.expect("=")
            self.constants.append(Constant(name, type_, line.take("a digest")))
        elif line.skip("output"):
            self.outputs = line.names() if line.peek() else ()
        else:
            raise line.fail("an input, a constant, a node or the outputs")
        line.end()

    def read_size(self, line: Line) -> None:
        name = line.name()
        line.skip(":")
        text = line.text.partition(name)[2].lstrip(" :")
        try:
            self.sizes[name] = parse_named_size(name, text)
        except (ExpressionError, ValueError):
            raise line.fail("what the size fulfils") from None
        line.at = len(line.tokens)

    def read_node(self, line: Line) -> None:
        outputs = line.names()
        line.expect("=")
        operator = line.name()
        inputs, attributes = [], []
        line.expect("(")
        while not line.skip(")"):
            if line.peek(1) == "=":
                key = line.name()
                line.expect("=")
                attributes.append((key, line.value()))
            else:
                inputs.append(line.name())
            if not line.skip(",") and line.peek() != ")":
                raise line.fail("',' or ')'")
        line.expect(":")
        for position, name in enumerate(outputs):
            if position:
                line.expect(",")
            self.declare(name, *line.type())
        self.nodes.append(Node(operator, tuple(inputs), outputs, tuple(attributes)))


def _read(text: str) -> tuple[_Reader, str]:
    reader = _Reader()
    for number, row in enumerate(text.split("\n"), start=1):
        line = Line(number, row, reader.sizes)
        if not line.tokens:
            continue
        if reader.name is None:
            line.expect("graph")
            reader.name = line.name()
            line.end()
        else:
            reader.read(line)
    if reader.name is None:
        raise parse_error("graph text", "it is empty")
    return reader, reader.name


def constants_named(text: str) -> tuple[Constant, ...]:
    """The constants that a graph's text names, in order: what `parse` must be given."""
    return tuple(_read(text)[0].constants)


def parse(text: str, constants: Mapping[str, Array] | None = None) -> Graph:
    """Read a graph's text back: `str(parse(str(g), g.constants)) == str(g)`.

    `constants` gives the array of each constant by name.
    Raises:  ModelError naming the line; or the constant that is missing or has another digest; or
             what `verify` finds.
    """
    reader, name = _read(text)
    given = constants or {}
    held: dict[str, Array] = {}
    for constant in reader.constants:
        where = f"constant {constant.name}"
        if constant.name not in given:
            raise parse_error(where, "its array is not given", "give the constants of the graph")
        held[constant.name] = frozen_array(given[constant.name])
        actual = digest(held[constant.name])
        if actual != constant.digest:
            reason = f"the array given is {actual}, the text says {constant.digest}"
            raise parse_error(where, reason, "give the constants of this graph")
    graph = Graph(
        name,
        tuple(reader.inputs),
        MappingProxyType(held),
        tuple(reader.nodes),
        reader.outputs,
        MappingProxyType(reader.types),
        MappingProxyType(reader.layouts),
    )
    return verify(graph)
