"""Choose terms of a network: the cheapest by the costs of single operators, and others near it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import fsum

from tensorwright.graph import Graph
from tensorwright.rewriting.egraph import Id
from tensorwright.rewriting.extraction import ExtractionProblem, Selection, contracted
from tensorwright.rewriting.networks.forms import Choice
from tensorwright.rewriting.networks.network_analysis import TypedOperator
from tensorwright.rewriting.networks.operator_costs import OperatorCosts
from tensorwright.rewriting.networks.program_prices import PricedKernel
from tensorwright.rewriting.networks.read import Network, read_network
from tensorwright.rewriting.networks.write import Outline


class NetworkExtraction:
    """The e-graph of a network as a problem of extraction.

    problem   classes and nodes are numbered from 0
    """

    def __init__(
        self, network: Network, costs: OperatorCosts, corrections: Corrections | None = None
    ) -> None:
        terms = network.terms
        corrected = {} if corrections is None else corrections.by_key()
        self._ids = [name for name in terms.nodes() if _is_useful(network, name)]
        numbers: dict[Id, int] = {}
        nodes: list[tuple[int, float, tuple[int, ...]]] = []
        for name in self._ids:
            children = tuple(map(terms.find, terms.children(name)))
            below = tuple(numbers.setdefault(each, len(numbers)) for each in children)
            own = numbers.setdefault(terms.find(name), len(numbers))
            nodes.append((own, _seconds(network, name, costs, corrected), below))
        self._leaders = {number: leader for leader, number in numbers.items()}
        roots = [numbers[terms.find(root)] for root in network.outputs]
        self._contraction = contracted(ExtractionProblem.of(nodes, roots))
        self.problem = self._contraction.problem
        self._terms = terms

    @property
    def operators(self) -> tuple[str, ...]:
        """The operator of each node with its parameters, as text."""
        names = (self._ids[node] for node in self._contraction.nodes)
        heads = (self._terms.parts(self._terms.head_of(name)) for name in names)
        return tuple(" ".join(map(str, (operator, *params))) for operator, params in heads)

    def choice(self, selection: Selection) -> Mapping[Id, Id]:
        """The node that is taken for each class, by its leader."""
        contraction = self._contraction
        chosen = contraction.expanded(selection).choice(contraction.whole)
        return {self._leaders[number]: self._ids[node] for number, node in chosen.items()}


class Corrections:
    """Costs of nodes as parts of programs: the time of a kernel, divided among its nodes in
    proportion to their own costs.

    Mutable: each program that is priced corrects the nodes that it was made of.
    """

    def __init__(self, network: Network, costs: OperatorCosts) -> None:
        self._seconds: dict[Id, float] = {}
        self._network = network
        self._costs = costs

    def by_key(self) -> dict[tuple[int, ...], float]:
        """The seconds of nodes, by head and the classes that the arguments have now."""
        return {_key(self._network, node): seconds for node, seconds in self._seconds.items()}

    def add(
        self, choice: Choice, outline: Outline, kernels: Iterable[PricedKernel]
    ) -> tuple[tuple[TypedOperator, float], ...]:
        """Correct the nodes of a choice by the kernels of its outline; return their operators and
        the seconds of each.
        """
        priced: list[tuple[TypedOperator, float]] = []
        listed = list(kernels)
        for kernel, leaders in zip(listed, self._within(choice, outline, listed), strict=True):
            nodes = [choice[leader] for leader in leaders]
            uses = [_use(self._network, node) for node in nodes]
            own = [self._costs.seconds(use) for use in uses]
            total = sum(own)
            for node, use, seconds in zip(nodes, uses, own, strict=True) if total else ():
                share = kernel.seconds * seconds / total
                self._seconds.pop(node, None)  # of congruent nodes the last to be priced counts
                self._seconds[node] = share
                priced.append((use, share))
        return tuple(priced)

    def _within(
        self, choice: Choice, outline: Outline, kernels: Sequence[PricedKernel]
    ) -> list[list[Id]]:
        """The classes that each kernel computes: those of its tensors, and those without a tensor
        that became part of an operator, such as a product below a sum with its bias.
        """
        terms = self._network.terms
        kernels_of: list[list[Id]] = []
        for kernel in kernels:
            named = (outline.classes[name] for name in kernel.tensors if name in outline.classes)
            kernels_of.append([leader for leader in dict.fromkeys(named) if leader in choice])
        owned = {leader for leaders in kernels_of for leader in leaders}
        for leaders in kernels_of:
            for leader in leaders:  # the list grows
                for child in map(terms.find, terms.children(choice[leader])):
                    if child in choice and child not in owned and not terms.data(child).is_constant:
                        owned.add(child)
                        leaders.append(child)
        return kernels_of


def choice_seconds(
    network: Network, choice: Choice, costs: OperatorCosts, corrections: Corrections
) -> float:
    """The cost of all nodes of a choice."""
    corrected = corrections.by_key()
    return fsum(_seconds(network, node, costs, corrected) for node in choice.values())


def _seconds(
    network: Network, node: Id, costs: OperatorCosts, corrected: Mapping[tuple[int, ...], float]
) -> float:
    """The cost of a node: the corrected cost of congruent nodes, or that of its operator."""
    seconds = corrected.get(_key(network, node)) if corrected else None
    return costs.seconds(_use(network, node)) if seconds is None else seconds


def _use(network: Network, node: Id) -> TypedOperator:
    terms = network.terms
    operator, params = terms.parts(terms.head_of(node))
    args = tuple(map(terms.data, terms.children(node)))
    return TypedOperator(operator, params, args, terms.data(node))


def _key(network: Network, node: Id) -> tuple[int, ...]:
    """The key that congruent nodes share."""
    terms = network.terms
    return (terms.head_of(node), *map(terms.find, terms.children(node)))


def _is_useful(network: Network, name: Id) -> bool:
    """Whether a node may be chosen: never one that reads its own class."""
    terms = network.terms
    return terms.find(name) not in map(terms.find, terms.children(name))


def operator_seconds(graph: Graph, costs: OperatorCosts) -> float:
    """The sum of the costs of a simplified network's operators, each alone, which TASO
    minimises.
    """
    network = read_network(graph)
    terms, total = network.terms, 0.0
    stack, seen = list(network.outputs), set(network.outputs)
    while stack:
        name = stack.pop()
        children = terms.children(name)
        total += costs.seconds(_use(network, name))
        stack += dict.fromkeys(each for each in children if each not in seen)
        seen.update(children)
    return total
