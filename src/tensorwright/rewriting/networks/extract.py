"""Choose terms of a network: the cheapest by the costs of single operators, and others near it."""

from __future__ import annotations

from collections.abc import Mapping

from tensorwright.graph import Graph
from tensorwright.rewriting.egraph import Id
from tensorwright.rewriting.extraction import ExtractionProblem, Selection
from tensorwright.rewriting.networks.network_analysis import TypedOperator
from tensorwright.rewriting.networks.operator_costs import OperatorCosts
from tensorwright.rewriting.networks.read import Network, read_network


class NetworkExtraction:
    """The e-graph of a network as a problem of extraction.

    problem   classes and nodes are numbered from 0
    """

    def __init__(self, network: Network, costs: OperatorCosts) -> None:
        terms = network.terms
        self._ids = [name for name in terms.nodes() if _is_useful(network, name)]
        numbers: dict[Id, int] = {}
        nodes: list[tuple[int, float, tuple[int, ...]]] = []
        for name in self._ids:
            children = tuple(map(terms.find, terms.children(name)))
            below = tuple(numbers.setdefault(each, len(numbers)) for each in children)
            own = numbers.setdefault(terms.find(name), len(numbers))
            operator, params = terms.parts(terms.head_of(name))
            args = tuple(terms.data(each) for each in children)
            use = TypedOperator(operator, params, args, terms.data(name))
            nodes.append((own, costs.seconds(use), below))
        self._leaders = {number: leader for leader, number in numbers.items()}
        roots = [numbers[terms.find(root)] for root in network.outputs]
        self.problem = ExtractionProblem.of(nodes, roots)

    def choice(self, selection: Selection) -> Mapping[Id, Id]:
        """The node that is taken for each class, by its leader."""
        return {
            self._leaders[number]: self._ids[node]
            for number, node in selection.choice(self.problem).items()
        }


def _is_useful(network: Network, name: Id) -> bool:
    """Whether a node may be chosen: one that reads what it is to compute never is."""
    terms = network.terms
    return terms.find(name) not in map(terms.find, terms.children(name))


def operator_seconds(graph: Graph, costs: OperatorCosts) -> float:
    """What the operators of a simplified network cost, each alone: the sum that TASO lowers."""
    network = read_network(graph)
    terms, total = network.terms, 0.0
    stack, seen = list(network.outputs), set(network.outputs)
    while stack:
        name = stack.pop()
        operator, params = terms.parts(terms.head_of(name))
        children = terms.children(name)
        args = tuple(map(terms.data, children))
        total += costs.seconds(TypedOperator(operator, params, args, terms.data(name)))
        stack += dict.fromkeys(each for each in children if each not in seen)
        seen.update(children)
    return total
