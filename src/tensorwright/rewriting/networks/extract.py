"""Choose terms of a network: the cheapest by the costs of single operators, and others near it.

Costs of single operators of a network: the roofline of their arithmetic and their bytes.

An e-graph has thousands of operators, so these costs must be quick to compute. They only tell which
terms are worth pricing as programs.  Element-wise operators join the kernel before or after them:
they cost the bytes of what the other kernels do not read or write anyway.

Source:  Williams, Waterman, Patterson, Roofline, CACM 2009.

Costs of networks and single operators as programs: layouts are chosen, the graph is cut into
workloads, and their times are summed.  Named sizes have typical values.

    network_seconds(prices, graph)                           all kernels of a network
    prices.seconds(TypedOperator("matmul", (), (x, w), y))   the kernels of one operator alone

Earlier searches over graphs, TASO and TENSAT, add up the times of operators, each measured alone,
and so miss the effects of fusion and layouts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum, prod
from typing import Protocol

import numpy as np

from tensorwright.graph import (
    AliasCall,
    ConcatInPlace,
    Graph,
    GraphBuilder,
    KernelCall,
    Node,
    Price,
    bind_workload,
    choose_layouts,
    operator_of,
    partition,
    representative,
    simplify,
    writes_of_step,
)
from tensorwright.machine import NOMINAL, Machine
from tensorwright.ops import Pattern
from tensorwright.rewriting.egraph import INPUT, Id
from tensorwright.rewriting.extraction import ExtractionProblem, Selection, contracted
from tensorwright.rewriting.networks.network_analysis import TypedOperator
from tensorwright.rewriting.networks.read import Choice, Network, read_network
from tensorwright.rewriting.networks.write import Outline
from tensorwright.rewriting.operators import FUNCTIONS, PAIRS, PARTS, follow, operator_named

_FREE = frozenset({INPUT, "reshape", "broadcast"})
_JOINED = frozenset({*(each.name for each in FUNCTIONS), "scalar_mul"})


class OperatorCosts(Protocol):
    """Says what single operators cost."""

    def seconds(self, use: TypedOperator) -> float:
        """Seconds of an application; 0 where all of it is constant."""
        ...


@dataclass(frozen=True, slots=True)
class Roofline:
    """A machine: operations and bytes a second of all threads, seconds for each kernel besides."""

    operations_per_s: float = NOMINAL.all_flops_per_s
    bytes_per_s: float = NOMINAL.all_bytes_per_s
    start_s: float = NOMINAL.call_s

    def seconds(self, use: TypedOperator) -> float:
        """The cost of an application; 0 where all of it is constant."""
        operator, args, result = use.operator, use.args, use.result
        if result.is_constant or operator in _FREE or all(arg.is_constant for arg in args):
            return 0.0
        if result.selects_rows:  # the product with it reads rows at its positions
            return 0.0
        if operator == "matmul" and args[0].selects_rows:
            return self.start_s + 2 * result.bytes / self.bytes_per_s
        if operator in _JOINED:
            return self.start_s / 10
        if (
            operator in PAIRS or operator == "select"
        ):  # the smaller operand, or a second activation, is read besides
            return self.start_s / 10 + min(arg.bytes for arg in args) / self.bytes_per_s
        if operator in PARTS:  # most are read where they lie
            return self.start_s / 10 + result.bytes / self.bytes_per_s / 4
        moved = sum(arg.bytes for arg in args) + result.bytes
        return self.start_s + max(
            _operations(use) / self.operations_per_s, moved / self.bytes_per_s
        )


def _operations(use: TypedOperator) -> int:
    """The operations of an application; a multiply-add is two."""
    params, args, result = use.params, use.args, use.result
    match use.operator:
        case "conv2d" | "conv3d":
            return 2 * result.elements * prod(args[1].extents[1:])
        case "matmul":
            return 2 * result.elements * args[0].extents[-1]
        case "max_pool" | "avg_pool" | "max_pool3d" | "avg_pool3d":
            kernel = [param for param in params[: len(params) // 2] if isinstance(param, int)]
            return result.elements * prod(kernel)
        case _:
            return max(result.elements, *(arg.elements for arg in args))


ANCHORS = frozenset(
    {"conv2d", "conv3d", "matmul", "max_pool", "avg_pool", "max_pool3d", "avg_pool3d"}
)
"""The operators around which kernels are made; others join them, or cost the bytes moved."""


@dataclass(frozen=True, slots=True)
class PricedKernel:
    """A step of a network: its seconds, and the tensors that it computes."""

    seconds: float
    tensors: tuple[str, ...]


class Prices(OperatorCosts, Protocol):
    """Says what single operators and whole networks cost."""

    def kernels_of(self, graph: Graph) -> tuple[PricedKernel, ...] | None:
        """The kernels of a simplified network; None where a part of it has no price."""
        ...


@dataclass(slots=True)
class ProgramPrices:
    """Prices by a model of times, each asked for once.

    machine       gives a lower bound of kernels' times where the caches cannot keep the weights of
    a network: every run reads each weight from memory again
    roofline      costs of operators that the model does not or cannot price
    has_layouts   whether layouts are chosen; else all tensors are plain
    """

    machine: Machine
    price: Price
    roofline: Roofline = field(default_factory=Roofline)
    has_layouts: bool = True
    _operators: dict[TypedOperator, float] = field(default_factory=dict)

    def kernels_of(self, graph: Graph) -> tuple[PricedKernel, ...] | None:
        """The kernels of a simplified network; None where a workload has no price."""
        laid_out = graph
        if self.has_layouts:
            laid_out = choose_layouts(graph, self.machine.target, self.price)
        steps = partition(laid_out, price=self.price).steps
        calls = [step for step in steps if isinstance(step, KernelCall)]
        least_s = iter(self._least_seconds(laid_out, calls))
        kernels: list[PricedKernel] = []
        for step in steps:
            if not isinstance(step, KernelCall | AliasCall | ConcatInPlace):
                kernels.append(PricedKernel(NOMINAL.call_s, writes_of_step(step)))
            elif isinstance(step, KernelCall):
                sizes = representative(step.workload.sizes)
                seconds = self.price(bind_workload(step.workload, sizes))
                if seconds is None:
                    return None
                names = tuple(name for node in step.nodes for name in node.outputs)
                kernels.append(PricedKernel(max(seconds, next(least_s) + NOMINAL.call_s), names))
            else:  # it says where tensors lie
                kernels.append(PricedKernel(0.0, (step.output,)))
        return tuple(kernels)

    def _least_seconds(self, graph: Graph, calls: Sequence[KernelCall]) -> list[float]:
        """The seconds for reading each kernel's weights first; 0 where all stay in the cache."""
        seen: set[str] = set()
        read: list[int] = []
        for call in calls:
            names = set(weights_of(graph, call.nodes)) - seen
            seen |= names
            read.append(sum(graph.types[name].size_bytes for name in names))
        if sum(read) <= self.machine.target.l3_bytes:
            return [0.0] * len(read)
        return [size_bytes / self.machine.memory_bytes_per_s for size_bytes in read]

    def seconds(self, use: TypedOperator) -> float:
        """Seconds of an application of an operator; 0 where all of it is constant."""
        quick = self.roofline.seconds(use)
        if use.operator not in ANCHORS or not quick:
            return quick
        if use not in self._operators:
            alone_s = network_seconds(self, network_of(use))
            self._operators[use] = quick if alone_s is None else alone_s
        return self._operators[use]


def network_seconds(prices: Prices, graph: Graph) -> float | None:
    """Seconds of a simplified network; None where a part of it has no price."""
    kernels = prices.kernels_of(graph)
    return None if kernels is None else math.fsum(each.seconds for each in kernels)


def weights_of(graph: Graph, nodes: Iterable[Node]) -> Iterator[str]:
    """The constants of which every element is read: those of products and convolutions."""
    for node in nodes:
        if operator_of(node).pattern is Pattern.ANCHOR:
            yield from (name for name in node.inputs if name in graph.constants)


def network_of(use: TypedOperator) -> Graph:
    """An operator as a simplified network of its own; its constants are zeros."""
    b, args = GraphBuilder(use.operator), use.args
    names = tuple(
        b.constant(np.zeros(arg.extents, arg.dtype.numpy), f"w{number}")
        if arg.is_constant
        else b.input(f"x{number}", arg.shape, arg.dtype)
        for number, arg in enumerate(args)
    )
    shapes = tuple(arg.shape for arg in args)
    steps = operator_named(use.operator).meaning(use.params, shapes)
    outputs = follow(
        steps, names, lambda step, args: b.apply(step.operator, args, **step.attributes)[0]
    )
    return simplify(b.finish(outputs))


class NetworkExtraction:
    """The e-graph of a network as a problem of extraction.

    problem   classes and nodes are numbered from 0
    """

    def __init__(
        self, network: Network, costs: OperatorCosts, corrections: Corrections | None = None
    ) -> None:
        terms = network.terms
        corrected = {} if corrections is None else corrections.by_key()
        self._ids = [  # without nodes that read their own class
            name
            for name in terms.nodes()
            if terms.find(name) not in map(terms.find, terms.children(name))
        ]
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
        """Correct the nodes of a choice by its kernels; the operators and the seconds of each."""
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


def operator_seconds(graph: Graph, costs: OperatorCosts) -> float:
    """The costs of a simplified network's operators, each alone: TASO minimises their sum."""
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
