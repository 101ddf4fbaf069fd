"""Read the text form of graphs: the inverse of `graph.py`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tensorwright.base import DType, ExpressionError, ModelError, OpenSize, Shape
from tensorwright.expr import Index, parse_named_size, parse_size
from tensorwright.graph.builder import frozen_array
from tensorwright.graph.graph import PLAIN, Graph, Layout, Node, digest
from tensorwright.graph.infer import verify
from tensorwright.ops import Array, AttributeValue, TensorType

_TOKEN = re.compile(
    r'\s*(?:("(?:[^"\\]|\\.)*")|(sha256:[0-9a-f]+)|(-?[A-Za-z0-9_./]+(?:(?<=[eE])[+-][0-9]+)?)|(.))'
)
_WORD = re.compile(r"[A-Za-z_]\w*")
_INTEGER = re.compile(r"-?[0-9]+")
_WORDS: dict[str, AttributeValue] = {
    "True": True,
    "False": False,
    "inf": float("inf"),
    "-inf": float("-inf"),
    "nan": float("nan"),
}
_DTYPES = {dtype.value: dtype for dtype in DType}


def parse_error(where: str, reason: str, remedy: str = "correct the text") -> ModelError:
    """The error for a text that is not a graph."""
    return ModelError(stage="parse", where=where, reason=reason, remedy=remedy)


class Line:
    """The tokens of one line, consumed from the left; mutable, used inside one function.

    Its methods raise a ModelError that names the line and says what is expected.
    """

    def __init__(self, number: int, text: str, sizes: Mapping[str, Index]) -> None:
        self.number = number
        self.text = text
        self.sizes = sizes
        self.tokens = [m.group().strip() for m in _TOKEN.finditer(text) if m.group().strip()]
        self.at = 0

    def fail(self, expected: str) -> ModelError:
        """The error for the next token, where something else is expected."""
        present = f"found {self.peek()!r}" if self.peek() else "found the end of the line"
        where = f"line {self.number}: {self.text.strip()}"
        return parse_error(where, f"expected {expected}, {present}")

    def peek(self, ahead: int = 0) -> str:
        """A token that is not taken yet; "" beyond the end."""
        index = self.at + ahead
        return self.tokens[index] if index < len(self.tokens) else ""

    def take(self, expected: str = "more") -> str:
        """The next token."""
        if not self.peek():
            raise self.fail(expected)
        self.at += 1
        return self.tokens[self.at - 1]

    def skip(self, token: str) -> bool:
        """Take a token if it is the next one; says whether it is."""
        if self.peek() != token:
            return False
        self.at += 1
        return True

    def expect(self, token: str) -> None:
        """Take a token that must be the next one."""
        if not self.skip(token):
            raise self.fail(repr(token))

    def name(self) -> str:
        """Take a name."""
        token = self.peek()
        if not token or not (token[0] in '"_./' or token[0].isalnum()):
            raise self.fail("a name")
        self.at += 1
        if token[0] != '"':
            return token
        text: str = json.loads(token)
        return text

    def names(self) -> tuple[str, ...]:
        """Take names with commas between them."""
        names = [self.name()]
        while self.skip(","):
            names.append(self.name())
        return tuple(names)

    def _number(self, token: str) -> AttributeValue:
        if _INTEGER.fullmatch(token):
            return int(token)
        try:
            return float(token)
        except ValueError:
            self.at -= 1
            raise self.fail("a value") from None

    def size(self) -> Index | None:
        """The expression that is the next item of a list; None where no size is in that."""
        depth, end, closed = 0, self.at, self.at
        while end < len(self.tokens) and (depth or self.tokens[end] not in (",", ")")):
            depth += {"(": 1, ")": -1}.get(self.tokens[end], 0)
            end += 1
            closed = closed if depth or closed != self.at else end
        text = " ".join(self.tokens[self.at : end])
        is_list = self.peek() == "(" and closed == end
        if is_list or text.startswith('"') or not set(_WORD.findall(text)) & self.sizes.keys():
            return None
        try:
            size = parse_size(text, self.sizes.get)
        except ValueError:
            raise self.fail("an expression of the sizes") from None
        self.at = end
        return size

    def value(self) -> AttributeValue:
        """Take the value of an attribute."""
        size = self.size() if self.sizes else None
        if size is not None:
            return size
        token = self.take("a value")
        if token == "(":
            items: list[AttributeValue] = []
            while not self.skip(")"):
                items.append(self.value())
                if not self.skip(",") and self.peek() != ")":
                    raise self.fail("',' or ')'")
            return tuple(items)
        if token[0] == '"':
            text: str = json.loads(token)
            return text
        if token in _WORDS:
            return _WORDS[token]
        return _DTYPES[token] if token in _DTYPES else self._number(token)

    def integers(self) -> tuple[int, ...]:
        """Take integers in brackets."""
        value = self.value()
        if isinstance(value, tuple) and all(type(item) is int for item in value):
            return value  # type: ignore[return-value]
        self.at -= 1
        raise self.fail("integers in brackets")

    def shape(self) -> Shape:
        """Take integers and expressions of sizes in brackets."""
        value = self.value()
        if isinstance(value, tuple):
            sizes = tuple(e for e in value if type(e) is int or isinstance(e, OpenSize))
            if len(sizes) == len(value):
                return sizes
        self.at -= 1
        raise self.fail("integers in brackets")

    def type(self) -> tuple[TensorType, Layout]:
        """Take the type of a tensor, with its layout."""
        dtype = _DTYPES.get(self.peek())
        if dtype is None:
            raise self.fail("an element type")
        self.at += 1
        shape = self.shape()
        layout = self.layout() if self.skip("layout") else PLAIN
        return TensorType(dtype, shape), layout

    def layout(self) -> Layout:
        """Take the fields of a layout."""
        self.expect("(")
        axis, block, order = -1, 1, tuple[int, ...]()
        while not self.skip(")"):
            key = self.take("a field of the layout")
            self.expect("=")
            if key == "order":
                order = self.integers()
            elif key in ("axis", "block"):
                number = self.value()
                if type(number) is not int:
                    raise self.fail("an integer")
                axis, block = (number, block) if key == "axis" else (axis, number)
            else:
                raise self.fail("axis, block or order")
            self.skip(",")
        return Layout(axis, block, order)

    def end(self) -> None:
        """Refuse more tokens."""
        if self.peek():
            raise self.fail("the end of the line")


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
