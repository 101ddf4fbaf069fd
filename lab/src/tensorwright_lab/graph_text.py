"""Read the text form of graphs: the inverse of `printing.py`, where the grammar stands."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tensorwright.base import DType, ModelError
from tensorwright.graph.builder import frozen_array
from tensorwright.graph.graph import PLAIN, Graph, Layout, Node
from tensorwright.graph.printing import digest
from tensorwright.graph.verify import verify
from tensorwright.ops import Array, AttributeValue, TensorType

_TOKEN = re.compile(
    r'\s*(?:("(?:[^"\\]|\\.)*")|(sha256:[0-9a-f]+)|(-?[A-Za-z0-9_./]+(?:(?<=[eE])[+-][0-9]+)?)|(.))'
)
_INTEGER = re.compile(r"-?[0-9]+")
_WORDS: dict[str, AttributeValue] = {
    "True": True,
    "False": False,
    "inf": float("inf"),
    "-inf": float("-inf"),
    "nan": float("nan"),
}
_DTYPES = {dtype.value: dtype for dtype in DType}


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant as the text names it."""

    name: str
    type: TensorType
    digest: str


class _Line:
    """The tokens of one line, consumed from the left."""

    def __init__(self, number: int, text: str) -> None:
        self.number = number
        self.text = text
        self.tokens = [m.group().strip() for m in _TOKEN.finditer(text) if m.group().strip()]
        self.at = 0

    def fail(self, expected: str) -> ModelError:
        found = f"found {self.peek()!r}" if self.peek() else "found the end of the line"
        where = f"line {self.number}: {self.text.strip()}"
        return ModelError(stage="parse", where=where, reason=f"expected {expected}, {found}")

    def peek(self, ahead: int = 0) -> str:
        place = self.at + ahead
        return self.tokens[place] if place < len(self.tokens) else ""

    def take(self, expected: str = "more") -> str:
        if not self.peek():
            raise self.fail(expected)
        self.at += 1
        return self.tokens[self.at - 1]

    def skip(self, token: str) -> bool:
        if self.peek() != token:
            return False
        self.at += 1
        return True

    def expect(self, token: str) -> None:
        if not self.skip(token):
            raise self.fail(repr(token))

    def name(self) -> str:
        token = self.peek()
        if not token or not (token[0] in '"_./' or token[0].isalnum()):
            raise self.fail("a name")
        self.at += 1
        if token[0] != '"':
            return token
        text: str = json.loads(token)
        return text

    def names(self) -> tuple[str, ...]:
        found = [self.name()]
        while self.skip(","):
            found.append(self.name())
        return tuple(found)

    def number_(self, token: str) -> AttributeValue:
        if _INTEGER.fullmatch(token):
            return int(token)
        try:
            return float(token)
        except ValueError:
            self.at -= 1
            raise self.fail("a value") from None

    def value(self) -> AttributeValue:
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
        return _DTYPES[token] if token in _DTYPES else self.number_(token)

    def integers(self) -> tuple[int, ...]:
        found = self.value()
        if isinstance(found, tuple) and all(type(item) is int for item in found):
            return found  # type: ignore[return-value]
        self.at -= 1
        raise self.fail("integers in brackets")

    def type(self) -> tuple[TensorType, Layout]:
        dtype = _DTYPES.get(self.peek())
        if dtype is None:
            raise self.fail("an element type")
        self.at += 1
        shape = self.integers()
        layout = self.layout() if self.skip("layout") else PLAIN
        return TensorType(dtype, shape), layout

    def layout(self) -> Layout:
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
        if self.peek():
            raise self.fail("the end of the line")


class _Reader:
    """What the lines say so far."""

    def __init__(self) -> None:
        self.name: str | None = None
        self.inputs: list[str] = []
        self.constants: list[Constant] = []
        self.nodes: list[Node] = []
        self.outputs: tuple[str, ...] = ()
        self.types: dict[str, TensorType] = {}
        self.layouts: dict[str, Layout] = {}

    def declare(self, name: str, type_: TensorType, layout: Layout) -> None:
        self.types[name] = type_
        if not layout.is_plain:
            self.layouts[name] = layout

    def read(self, line: _Line) -> None:
        following = line.peek(1)
        if following in ("=", ","):
            self.read_node(line)
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

    def read_node(self, line: _Line) -> None:
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
        line = _Line(number, row)
        if not line.tokens:
            continue
        if reader.name is None:
            line.expect("graph")
            reader.name = line.name()
            line.end()
        else:
            reader.read(line)
    if reader.name is None:
        raise ModelError(stage="parse", where="graph text", reason="it is empty")
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
            raise ModelError(stage="parse", where=where, reason="its array is not given")
        held[constant.name] = frozen_array(given[constant.name])
        actual = digest(held[constant.name])
        if actual != constant.digest:
            reason = f"the array given is {actual}, the text says {constant.digest}"
            raise ModelError(stage="parse", where=where, reason=reason)
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
