"""Searches for other graphs with costs that are drawn, and checks of their results.

    for found, outputs in by_saturation(graph, draw): check_searched(graph, cases, found, outputs)

Costs that are drawn lead a search where those of a machine would not.  Networks are compared in
f64; those with named sizes for some values of these.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tensorwright.base import DType
from tensorwright.drivers.graph_record import proved_beside
from tensorwright.graph import (
    Graph,
    GraphBuilder,
    are_alike,
    bind_sizes,
    interpret,
    random_inputs,
    simplify,
)
from tensorwright.ops import Array
from tensorwright.rewriting.backtracking import BacktrackingLimits, backtrack_network
from tensorwright.rewriting.egraph import Id
from tensorwright.rewriting.library import load_library
from tensorwright.rewriting.local_search import cheap_selections
from tensorwright.rewriting.networks import (
    Certificate,
    NetworkExtraction,
    NetworkSaturation,
    OperatorCosts,
    Roofline,
    SaturationLimits,
    TypedOperator,
    certify,
    choice_of,
    chosen_outputs,
    network_rules,
    parse_certificate,
    read_network,
    replay,
    saturate_network,
    unsaturated,
    write_network,
)

LISTED = {each.rule.name: each.rule for each in load_library()}
RULES = network_rules(LISTED.values())
IS_PROVED = proved_beside(LISTED.values())

_TOLERANCE = 1e-9

Searched: TypeAlias = tuple[NetworkSaturation, tuple[Id, ...]]
"""The saturation that a search wrote to, and the outputs of a graph that it returns."""


@dataclass(frozen=True, slots=True)
class DrawnCosts:
    """Costs of operators that lead a search where a machine's would not: drawn for each."""

    seed: int

    def seconds(self, operator: TypedOperator) -> float:
        """A roofline, times something between 0.01 and 100."""
        shapes = [arg.extents for arg in operator.args]
        word = f"{self.seed} {operator.operator} {operator.params} {shapes}"
        return Roofline(1e9, 1e9).seconds(operator) * 10 ** random.Random(word).uniform(-2, 2)


def _costs(draw: random.Random) -> OperatorCosts:
    choices: tuple[OperatorCosts, ...] = (Roofline(1e9, 1e9), *map(DrawnCosts, range(4)))
    return draw.choice(choices)


def by_saturation(graph: Graph, draw: random.Random) -> Iterator[Searched]:
    """The graphs of the cheapest selections of an e-graph."""
    limits = SaturationLimits(draw.randrange(3), draw.randrange(1, 4), draw.choice((300, 900)))
    saturation = saturate_network(read_network(graph, with_proofs=True), RULES, limits)
    extraction = NetworkExtraction(saturation.network, _costs(draw))
    selections = cheap_selections(extraction.problem, 2)
    chosen = [chosen_outputs(saturation.network, extraction.choice(each)) for each in selections]
    yield from ((saturation, outputs) for outputs in chosen)


def by_backtracking(graph: Graph, draw: random.Random) -> Iterator[Searched]:
    """The graphs that single moves from the network lead to."""
    saturation = unsaturated(read_network(graph, with_proofs=True))
    alpha, graphs = draw.choice((1.0, 1.05, 1.3)), draw.randrange(5, 300)
    limits = BacktrackingLimits(alpha, graphs, seconds=60, keep=2, open=draw.randrange(2, 40))
    for outputs in backtrack_network(saturation, RULES, _costs(draw), limits).outputs:
        yield saturation, outputs


def by_both(graph: Graph, draw: random.Random) -> Iterator[Searched]:
    """The graphs that single moves lead to from the cheapest selections."""
    for saturation, outputs in by_saturation(graph, draw):
        limits = BacktrackingLimits(graphs=draw.randrange(5, 100), seconds=60, keep=2)
        for each in backtrack_network(saturation, RULES, _costs(draw), limits, outputs).outputs:
            yield saturation, each
        yield saturation, outputs  # the selection itself stays right after further merges


SEARCHES: tuple[Callable[[Graph, random.Random], Iterator[Searched]], ...] = (
    by_saturation,
    by_backtracking,
    by_both,
)


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """Inputs of a network, in f64, and what it computes of them."""

    inputs: Mapping[str, Array]
    results: tuple[Array, ...]


def cases_of(graph: Graph, sizes: Sequence[Mapping[str, int]] = ({},)) -> list[Case]:
    """Random inputs of a network with its results in f64; a case for each choice of sizes.

    sizes   numbers for the named sizes of a case
    """
    cases: list[Case] = []
    for seed, given in enumerate(sizes):
        inputs = random_inputs(double_of(bind_sizes(graph, given)), seed)
        cases.append(Case(inputs, in_double(graph, inputs)))
    return cases


def in_double(graph: Graph, inputs: Mapping[str, Array] | None = None) -> tuple[Array, ...]:
    """The results of a network, its constants and its arithmetic in f64; of random inputs where
    none are given.
    """
    double = double_of(graph)
    with np.errstate(all="ignore"):
        given = random_inputs(double) if inputs is None else inputs
        return tuple(interpret(double, given).values())


def double_of(graph: Graph) -> Graph:
    """A network with f64 in the place of f32."""
    b = GraphBuilder(graph.name)
    for name in graph.inputs:
        type_ = graph.types[name]
        b.input(name, type_.shape, _double(type_.dtype))
    for name, array in graph.constants.items():
        b.constant(array.astype(_double(graph.types[name].dtype).numpy), name)
    for node in graph.nodes:
        attributes = {
            name: _double(value) if isinstance(value, DType) else value
            for name, value in node.attributes
        }
        b.apply(node.operator, node.inputs, node.outputs, **attributes)
    return b.finish(graph.outputs)


def _double(dtype: DType) -> DType:
    return DType.F64 if dtype is DType.F32 else dtype


@dataclass(frozen=True, slots=True, eq=False)
class Checked:
    """A graph that a search handed on and that computes the same, and its certificate."""

    graph: Graph
    certificate: Certificate


def check_searched(
    graph: Graph, cases: Sequence[Case], saturation: NetworkSaturation, outputs: tuple[Id, ...]
) -> Checked:
    """Check a result of a search.

    Raises:  AssertionError where it computes something else, or is not what its certificate says.
    """
    choice = choice_of(saturation.network, outputs)
    result = write_network(saturation.network, choice)
    assert result.outputs == graph.outputs
    check_cases(result, cases)
    certificate = certify(saturation, chosen_outputs(saturation.network, choice), LISTED)
    read = parse_certificate(certificate.to_json(), "the drill")
    assert read == certificate
    replayed = replay(read, read_network(graph), IS_PROVED)
    assert are_alike(simplify(replayed), simplify(result))
    return Checked(simplify(result), certificate)


def check_cases(graph: Graph, cases: Sequence[Case], tolerance: float = _TOLERANCE) -> None:
    """Check that a network computes what another did.

    tolerance   of differences, relative to the largest element
    Raises:  AssertionError.
    """
    for case in cases:
        for one, other in zip(in_double(graph, case.inputs), case.results, strict=True):
            zeros = np.zeros(other.shape)
            scale = np.abs(other, where=np.isfinite(other), out=zeros).max(initial=1.0)
            compared: tuple[Any, Any] = (one, other)
            np.testing.assert_allclose(*compared, rtol=tolerance, atol=tolerance * scale)
