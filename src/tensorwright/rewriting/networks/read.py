"""Read a network as terms: a class of an e-graph for each of its tensors.

    network = read_network(graph)
    network.terms.term(network.outputs["y"])          relu(conv2d[1, 1, same, none](?x, ?w))

Every graph can be read: an operator is called as it is if it has no counterpart in the language of
rules, or tensors that rules do not cover.  A tensor that several operators read is one node: shared
parts stay shared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tensorwright.base import UndecidedError
from tensorwright.graph import Graph
from tensorwright.ops import sizes_of
from tensorwright.rewriting.egraph import EGraph, Id
from tensorwright.rewriting.networks.counterparts import (
    COUNTERPARTS,
    MIXED,
    Application,
    Counterpart,
    Terms,
)
from tensorwright.rewriting.networks.network_analysis import NetworkAnalysis, TensorData, has_rules
from tensorwright.rewriting.networks.opaque import OpaqueOperators
from tensorwright.rewriting.networks.term_builder import NoTermError, TermBuilder


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """A network as terms.

    graph     what was read
    terms     its e-graph, where rewrites make more terms equal
    opaque    the operators that it calls
    nodes     of each tensor
    """

    graph: Graph
    terms: EGraph[TensorData]
    opaque: OpaqueOperators
    nodes: Mapping[str, Id]

    @property
    def outputs(self) -> tuple[Id, ...]:
        """The node of each output, in order."""
        return tuple(self.nodes[name] for name in self.graph.outputs)


def read_network(graph: Graph, *, with_proofs: bool = False) -> Network:
    """Read a graph, which should be simplified, so that equal nodes are one.

    with_proofs   whether the e-graph can tell why terms are equal
    """
    opaque = OpaqueOperators()
    inputs = {
        name: TensorData(
            sizes_of(graph.types[name]), graph.types[name].dtype, name in graph.constants
        )
        for name in (*graph.inputs, *graph.constants)
    }
    terms = EGraph(NetworkAnalysis(inputs, opaque), with_proofs=with_proofs)
    builder = TermBuilder(terms, opaque)
    nodes = {name: builder.input(name) for name in inputs}
    for node in graph.nodes:
        args = tuple(nodes[name] for name in node.inputs)
        application = Application(node, args, tuple(graph.types[name] for name in node.outputs))
        nodes.update(zip(node.outputs, _terms_of(builder, application), strict=True))
    return Network(graph, terms, opaque, nodes)


def _in_rules(counterpart: Counterpart, builder: TermBuilder, application: Application) -> Terms:
    """The counterpart of an operator; None where there is none, or sizes leave open whether it
    fits.
    """
    try:
        return counterpart(builder, application)
    except (UndecidedError, NoTermError):
        if any(builder.terms.data(arg).type.is_open for arg in application.args):
            return None
        raise


def _terms_of(builder: TermBuilder, application: Application) -> tuple[Id, ...]:
    operator = application.node.operator
    counterpart = COUNTERPARTS.get(operator)
    data = [builder.terms.data(arg) for arg in application.args]
    if operator in MIXED:
        data = [each for each in data if each.dtype.is_float]
    data += [TensorData(sizes_of(type_), type_.dtype) for type_ in application.types]
    if counterpart is not None and all(map(has_rules, data)):
        terms = _in_rules(counterpart, builder, application)
        if terms is not None:
            return terms
    word = builder.opaque.word(operator, application.node.attributes)
    return tuple(
        builder.call(word, number, application.args) for number in range(len(application.types))
    )
