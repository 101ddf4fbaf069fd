"""Nested graphs that are kept as graphs: what they use of the graph around them are inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tensorwright.graph.builder import GraphBuilder
from tensorwright.graph.graph import Graph
from tensorwright.graph.onnx_import.call import Operand, as_tensor
from tensorwright.ops import TensorType


class Captured(Mapping[str, Operand]):
    """What a nested graph sees around it: a tensor becomes an input when it is first asked for.

    Constants are constants inside, too; arrays and sizes are what they are.
    """

    def __init__(
        self, around: Mapping[str, Operand], outer: GraphBuilder, inner: GraphBuilder
    ) -> None:
        self._around = around
        self._outer = outer
        self._inner = inner
        self.names: dict[str, str] = {}  # of the tensors outside -> inside

    def __getitem__(self, name: str) -> Operand:
        operand = self._around[name]
        if not isinstance(operand, str):
            return operand
        known = self._outer.constant_value(operand)
        if known is not None:
            return known
        if operand not in self.names:
            type_ = self._outer.type_of(operand)
            self.names[operand] = self._inner.input(
                self._inner.fresh(operand), type_.shape, type_.dtype
            )
        return self.names[operand]

    def __contains__(self, name: object) -> bool:
        return name in self._around

    def __iter__(self) -> Iterator[str]:
        return iter(self._around)

    def __len__(self) -> int:
        return len(self._around)


@dataclass(frozen=True, slots=True)
class Body:
    """A nested graph under construction.

    given     its own inputs     captured   tensors outside -> inputs
    """

    builder: GraphBuilder
    given: tuple[str, ...]
    captured: Mapping[str, str]
    results: tuple[Operand, ...]

    @property
    def types(self) -> tuple[TensorType, ...]:
        """The types of its results."""
        return tuple(self.builder.type_of(as_tensor(each, self.builder)) for each in self.results)

    def finish(self, name: str, captured: Sequence[str], outer: GraphBuilder) -> Graph:
        """The graph.

        captured   the tensors outside that are its inputs behind its own, among them its own ones
        """
        inputs = [*self.given]
        for tensor in captured:
            inner = self.captured.get(tensor)
            if inner is None:
                type_ = outer.type_of(tensor)
                inner = self.builder.input(self.builder.fresh(tensor), type_.shape, type_.dtype)
            inputs.append(inner)
        results = [as_tensor(each, self.builder) for each in self.results]
        graph = self.builder.finish(results)
        return replace(graph, name=name, inputs=tuple(inputs))
