"""Write terms of a network as a graph again.

    write_network(network, choice)       choice: the node that is taken for each class

Operators of rules mean chains of operators of networks; some chains are written as a single
operator (`read.py`).  Names of inputs and outputs stay. `simplify` folds terms of constants.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from tensorwright.base import InternalError
from tensorwright.graph import Graph, GraphBuilder
from tensorwright.ops import Array
from tensorwright.rewriting.dims import NeedsItselfError, arguments_first
from tensorwright.rewriting.egraph import INPUT, Id
from tensorwright.rewriting.networks.network_analysis import CALL, TensorData, network_attributes
from tensorwright.rewriting.networks.read import Choice, Form, Forms, Network
from tensorwright.rewriting.operators import Step, follow

_FEW = 1 << 14  # elements


@dataclass(frozen=True, slots=True, eq=False)
class Outline:
    """A network without its numbers.

    classes   the leader of the class that each tensor is, where it has one
    """

    graph: Graph
    classes: Mapping[str, Id]


def write_network(network: Network, choice: Choice) -> Graph:
    """The graph of the chosen terms, with the inputs and outputs of the network.

    Raises:  InternalError where a class has no choice, or needs itself.
    """
    return _Writer(network, choice, has_values=True).graph()


def write_outline(network: Network, choice: Choice) -> Outline:
    """As `write_network`, with meaningless numbers for all constants: enough to price the graph."""
    writer = _Writer(network, choice, has_values=False)
    graph = writer.graph()
    return Outline(graph, MappingProxyType(writer.classes))


class _Writer:
    """The tensors that were written so far, by class; mutable, for one graph."""

    def __init__(self, network: Network, choice: Choice, *, has_values: bool) -> None:
        self._has_values = has_values
        self._network = network
        self._terms = network.terms
        self._forms = Forms(network, choice)
        self._form_of: dict[Id, Form] = {}
        self._source = network.graph
        self._builder = GraphBuilder(network.graph.name)
        self._tensors: dict[Id, str] = {}
        self._calls: dict[tuple[str, tuple[str, ...]], tuple[str, ...]] = {}
        self._wishes: dict[Id, str] = {}
        self._count = 0

    @property
    def classes(self) -> dict[str, Id]:
        """The class of each tensor."""
        return {name: leader for leader, name in self._tensors.items()}

    def graph(self) -> Graph:
        """Write all of it."""
        graph = self._source
        for name in graph.inputs:
            type_ = graph.types[name]
            self._builder.input(name, type_.shape, type_.dtype)
        for name in (*graph.outputs, *graph.producers()):
            self._wishes.setdefault(self._leader(self._network.nodes[name]), name)
        for leader in self._in_order():
            self._tensors[leader] = self._write(leader)
        return self._builder.finish([self._output(name) for name in graph.outputs])

    def _output(self, name: str) -> str:
        """The tensor of an output, under its name."""
        if name in self._source.inputs:
            return name
        if name in self._source.constants:
            return self._constant(name)
        written = self._tensors[self._leader(self._network.nodes[name])]
        return written if written == name else self._builder.add("identity", written, output=name)

    def _in_order(self) -> Iterator[Id]:
        """The classes that the outputs need, arguments first."""

        def below(leader: Id) -> tuple[Id, ...]:
            return tuple(map(self._leader, self._form(leader).reads))

        try:
            yield from arguments_first(map(self._leader, self._network.outputs), below)
        except NeedsItselfError as loop:
            where = f"class {loop.name}"
            raise InternalError(stage="rewrite", where=where, reason="it needs itself") from None

    def _form(self, leader: Id) -> Form:
        """The form of a class; remembered."""
        if leader not in self._form_of:
            node = self._forms.chosen(leader)
            is_outlined = self._is_outlined(node)
            self._form_of[leader] = Form((), ()) if is_outlined else self._forms.of(node)
        return self._form_of[leader]

    def _write(self, leader: Id) -> str:
        """Append the operators that compute a class; return the name of its tensor."""
        node, form = self._forms.chosen(leader), self._form(leader)
        operator, params = self._forms.parts(node)
        args = tuple(self._tensors[self._leader(each)] for each in form.reads)
        wish = self._wish(leader)
        if self._is_outlined(node):
            return self._builder.constant(_numbers(self._terms.data(node), node))
        if operator == INPUT:
            name = str(params[0])
            return self._constant(name) if name in self._source.constants else name
        if operator == CALL:
            return self._call(node, args)

        def apply(step: Step, args: tuple[str, ...]) -> str:
            named = wish if step is form.steps[-1] else self._new_name()
            attributes = network_attributes(step)
            return self._builder.apply(step.operator, args, named, **attributes)[0]

        return follow(form.steps, args, apply)[0]

    def _is_outlined(self, node: Id) -> bool:
        return not self._has_values and self._terms.data(node).is_constant

    def _wish(self, name: Id) -> tuple[str]:
        """The name of a class in the network that was read, else one that is new."""
        wish = self._wishes.get(name, "")
        if not wish or wish in self._builder:
            return self._new_name()
        return (wish,)

    def _new_name(self) -> tuple[str]:
        """A name that the network that was read does not have."""
        while True:
            self._count += 1
            name = f"rewritten_{self._count}"
            if name not in self._source.types:
                return (name,)

    def _constant(self, name: str) -> str:
        if name not in self._builder:
            self._builder.constant(self._source.constants[name], name)
        return name

    def _call(self, node: Id, args: tuple[str, ...]) -> str:
        """The outputs of one call are written together."""
        _, (word, output) = self._forms.parts(node)
        assert isinstance(output, int), "an output is a number"
        key = (str(word), args)
        if key not in self._calls:
            operator, attributes = self._network.opaque.kind(str(word))
            children = self._terms.children(node)
            types = tuple(self._builder.type_of(arg) for arg in args)
            results = self._network.opaque.infer(str(word), types)
            outputs: list[str] = []
            for number in range(len(results or ())):
                twin = self._terms.put(self._terms.head(CALL, (word, number)), children)
                assert twin is not None, "an operator has all of its outputs"
                outputs += self._wish(self._leader(twin))
            if self._network.opaque.is_row_selector(str(word)):
                values = np.array([0, 1], np.float32)
                args = (*args, self._builder.constant(values, *self._new_name()))
            self._calls[key] = self._builder.apply(operator, args, outputs, **dict(attributes))
        return self._calls[key][output]

    def _leader(self, name: Id) -> Id:
        return self._terms.find(name)


def _numbers(data: TensorData, mark: int) -> Array:
    """A constant instead of another, unlike all others: equal ones would be merged."""
    if data.elements > _FEW or not data.dtype.is_float:
        array = np.zeros(data.extents, data.dtype.numpy)  # unwritten pages take no memory
    else:
        array = np.full(data.extents, 0.5, data.dtype.numpy)
    if data.dtype.is_float and data.elements:
        array.reshape(-1)[0] = 2.0 + mark
    return array
