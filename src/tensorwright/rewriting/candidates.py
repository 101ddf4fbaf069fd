"""Graphs that may be faster than a network, by both searches, ranked by what their programs cost.

    saturate     the cheapest selections of the e-graph            by costs of operators
    backtrack    from the network on, and from the best selection  by costs of operators
    price        each of these as programs; the costs of kernels correct the costs of their
                 operators.  Then the e-graph is searched again, until it gives a priced graph

Both searches write to one e-graph, so that all their graphs can be certified.

Costs of operators that occur in no priced program: the roofline, corrected by similar operators.

    priced    matmul (64, 1024) (1024, 1024)     roofline 10 us, in its kernel 14 us
    asked     matmul (64, 1024) (1024, 3072)     roofline 30 us, so about 42 us

An e-graph has hundreds of products and convolutions that differ by an extent; choosing schedules
for each of them costs more than the search.  The error of a roofline is projected from the
operators with the nearest extents in programs that were priced anyway.  An operator that joins
kernels, such as a sum, is projected to cost as much as the costliest similar one: else every sum
would be replaced, since some lie in cheap kernels.  A graph that is chosen by projected costs is
priced as a program.

Source:  Shepard, A two-dimensional interpolation function for irregularly-spaced data, ACM 1968:
         means weighted by the inverse of squared distances.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from operator import ne

import numpy as np
from numpy.typing import NDArray

from tensorwright.graph import Graph, simplify
from tensorwright.processes import never
from tensorwright.rewriting import egraph, networks
from tensorwright.rewriting.backtracking import BacktrackingLimits, backtrack_network
from tensorwright.rewriting.egraph import Id, StopReason
from tensorwright.rewriting.local_search import cheap_selections
from tensorwright.rewriting.operators import PAIRS


class SearchKind(StrEnum):
    """Which search looks for graphs."""

    SATURATE = "saturate"
    BACKTRACK = "backtrack"
    BOTH = "both"


class CostKind(StrEnum):
    """What ranks graphs: costs of operators, of programs, or times in another runtime."""

    OPERATORS = "ops"
    PROGRAMS = "programs"
    ONNXRUNTIME = "onnxruntime"


@dataclass(frozen=True, slots=True)
class CandidateSearch:
    """The settings of a search for graphs.

    seconds   of both searches; the prices of programs come after
    count     of graphs that each search hands on           alpha   of backtracking
    priced    how many of these are priced as programs, the cheapest by operators first
    asked     how often the e-graph is asked for a graph that is not priced yet
    """

    kind: SearchKind = SearchKind.BOTH
    cost: CostKind = CostKind.PROGRAMS
    seconds: float = 10.0
    count: int = 3
    alpha: float = 1.05
    priced: int = 4
    asked: int = 2
    saturation: networks.SaturationLimits = field(default_factory=networks.SaturationLimits)


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A graph that computes the same.

    outputs       the node of each output of the network, see `networks/saturate.py`
    operators_s   the sum of its operators' costs, each alone
    programs_s    the sum of its kernels' costs; None where they were not or cannot be priced
    """

    outputs: tuple[egraph.Id, ...]
    operators_s: float
    programs_s: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """The candidates of a search, the cheapest first.

    saturation   the e-graph that the nodes are of
    stops        why each search ended, by its name          graphs   that backtracking made
    network_s    the sum of the network's kernels' costs; None where they were not priced
    """

    ranked: tuple[Candidate, ...]
    saturation: networks.NetworkSaturation
    stops: Mapping[SearchKind, egraph.StopReason]
    graphs: int = 0
    network_s: float | None = None


_Kind = tuple[str, tuple[int, ...]]
_Numbers = NDArray[np.float64]


@dataclass(slots=True)
class _Samples:
    """Operators of one kind: logarithms of extents, other traits, logarithms of errors."""

    extents: list[tuple[float, ...]] = field(default_factory=list)
    traits: list[tuple[object, ...]] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    table: _Numbers | None = None


class ProjectedCosts:
    """Costs of operators by a roofline and by the operators of priced programs.

    Mutable: `learn` adds operators.
    """

    def __init__(self, roofline: networks.OperatorCosts | None = None) -> None:
        self._roofline = roofline or networks.Roofline()
        self._samples: dict[_Kind, _Samples] = {}
        self._seconds: dict[networks.TypedOperator, float] = {}

    def learn(self, priced: Iterable[tuple[networks.TypedOperator, float]]) -> None:
        """Operators, and the seconds of each as part of a program."""
        self._seconds.clear()
        for use, seconds in priced:
            usual = self._roofline.seconds(use)
            if usual > 0.0 and seconds > 0.0:
                samples = self._samples.setdefault(_kind(use), _Samples())
                samples.extents.append(_extents(use))
                samples.traits.append(_traits(use))
                samples.errors.append(float(np.log2(seconds / usual)))
                samples.table = None

    def seconds(self, use: networks.TypedOperator) -> float:
        """Seconds of an application of an operator; 0 where all of it is constant."""
        seconds = self._seconds.get(use)
        if seconds is None:
            usual = self._roofline.seconds(use)
            seconds = self._seconds[use] = usual * 2.0 ** self._error(use) if usual else 0.0
        return seconds

    def _error(self, use: networks.TypedOperator) -> float:
        """The logarithm of the operator's projected cost over the roofline."""
        samples = self._samples.get(_kind(use))
        if samples is None:
            return 0.0
        if samples.table is None:
            samples.table = np.array(samples.extents, np.float64)
        own = _traits(use)
        unlike = [sum(map(ne, own, its)) for its in samples.traits]
        distances = np.abs(samples.table - np.array(_extents(use))).sum(axis=1) + unlike
        nearest = distances.min()
        errors = np.array(samples.errors)
        alike = errors[distances == 0.0]
        if use.operator not in networks.ANCHORS:  # its cost depends on the kernel that it joins
            return float(alike.max()) if alike.size else 0.0
        if alike.size:
            return float(alike.mean())
        weights = (nearest / distances) ** 2
        return float((weights * errors).sum() / weights.sum())


def _kind(use: networks.TypedOperator) -> _Kind:
    """Operators of one kind have extents that can be compared."""
    return use.operator, (len(use.params), *(len(each.shape) for each in (*_args(use), use.result)))


def _extents(use: networks.TypedOperator) -> tuple[float, ...]:
    shapes = (each.extents for each in (*_args(use), use.result))
    return tuple(float(np.log2(max(1, extent))) for shape in shapes for extent in shape)


def _traits(use: networks.TypedOperator) -> tuple[object, ...]:
    """The traits that tell two operators of a kind apart besides their extents."""
    return (*use.params, *(arg.is_constant for arg in _args(use)))


def _args(use: networks.TypedOperator) -> tuple[networks.TensorData, ...]:
    """The arguments; those of which the order costs nothing sorted."""
    if use.operator not in PAIRS:
        return use.args
    return tuple(sorted(use.args, key=lambda arg: (arg.is_constant, arg.extents)))


_SATURATED = 0.5
"""The share of the time for saturation where backtracking comes after it."""
_SEARCHED = 0.75
"""The share of the time for both searches; the rest is for prices."""

_LEAST_GAIN = 1.01
"""The projected speed-up from which on a graph is priced."""


def find_candidates(
    network: networks.Network,
    rules: networks.NetworkRules,
    prices: networks.Prices,
    how: CandidateSearch,
    should_stop: Callable[[], bool] = never,
) -> Candidates:
    """Look for graphs that are cheaper than a network; it is not among them.

    should_stop   ends the search early; the candidates so far are returned
    """
    search = _Search(network, rules, prices, how, should_stop)
    search.run()
    return search.candidates()


class _Search:
    """The state of a search for one network: candidates, costs and limits; mutable."""

    def __init__(
        self,
        network: networks.Network,
        rules: networks.NetworkRules,
        prices: networks.Prices,
        how: CandidateSearch,
        should_stop: Callable[[], bool],
    ) -> None:
        self._network = network
        self._rules = rules
        self._prices = prices
        self._how = how
        self._should_stop = should_stop
        self._start = time.monotonic()
        self._network_s: float | None = None
        self._stops: dict[SearchKind, StopReason] = {}
        self._graphs = 0
        self._projected = ProjectedCosts() if how.cost is CostKind.PROGRAMS else None
        self._costs: networks.OperatorCosts = self._projected or prices
        self._corrections = networks.Corrections(
            network, networks.Roofline() if self._projected else prices
        )
        self._saturation = networks.unsaturated(network)
        self._priced_alike: set[tuple[tuple[str, str], ...]] = set()
        self._candidates: dict[frozenset[tuple[int, ...]], Candidate] = {}

    def run(self) -> None:
        """Price the network, run one or both searches, then price their candidates.

        The price of the network is computed whenever it is compiled, so it does not count as
        search.  It corrects the costs of its operators and of similar ones.
        """
        if self._how.cost is not CostKind.OPERATORS:
            self._network_s = self._price_network()
        self._start = time.monotonic()
        kind = self._how.kind
        best: tuple[Id, ...] | None = None
        if kind is not SearchKind.BACKTRACK:
            best = self._saturate()
        if kind is not SearchKind.SATURATE:
            share = 0.5 if best else 1.0
            self._backtrack(None, share)
            if best is not None:
                self._backtrack(best, 1.0)
        if self._how.cost is not CostKind.OPERATORS:
            self._price()

    def candidates(self) -> Candidates:
        """The candidates, the cheapest first."""

        def cost(each: Candidate) -> float:
            if self._how.cost is CostKind.OPERATORS:
                return each.operators_s
            return float("inf") if each.programs_s is None else each.programs_s

        ranked = tuple(sorted(self._candidates.values(), key=cost))
        return Candidates(ranked, self._saturation, self._stops, self._graphs, self._network_s)

    def _saturate(self) -> tuple[Id, ...]:
        share = _SATURATED if self._how.kind is SearchKind.BOTH else _SEARCHED
        seconds = min(self._left(share), self._how.saturation.seconds)
        limits = replace(self._how.saturation, seconds=seconds)
        self._saturation = networks.saturate_network(
            self._network, self._rules, limits, self._should_stop
        )
        self._stops[SearchKind.SATURATE] = self._saturation.stop
        return self._cheapest(self._how.count)[0]

    def _cheapest(self, count: int) -> list[tuple[Id, ...]]:
        """The outputs of the cheapest selections of the e-graph, by the costs that are known."""
        extraction = networks.NetworkExtraction(self._network, self._costs, self._corrections)
        selections = list(cheap_selections(extraction.problem, count))
        choices = [extraction.choice(each) for each in selections]
        chosen = [networks.chosen_outputs(self._network, choice) for choice in choices]
        for outputs, selection in zip(chosen, selections, strict=True):
            self._enter(outputs, selection.cost)
        return chosen

    def _backtrack(self, start: tuple[Id, ...] | None, share: float) -> None:
        """Search for a share of the time that is left, from some outputs on."""
        limits = BacktrackingLimits(
            self._how.alpha,
            seconds=share * self._left(_SEARCHED),
            keep=self._how.count,
        )
        result = backtrack_network(
            self._saturation, self._rules, self._costs, limits, start, self._should_stop
        )
        self._stops[SearchKind.BACKTRACK] = result.stop
        self._graphs += result.seen
        for outputs in result.outputs:
            choice = networks.choice_of(self._network, outputs)
            cost = networks.choice_seconds(self._network, choice, self._costs, self._corrections)
            self._enter(outputs, cost)

    def _price_network(self) -> float | None:
        """The price of the network itself, the first to correct the costs of its operators."""
        network = self._network
        kernels = self._prices.kernels_of(network.graph)
        if kernels is None:
            return None
        leaders = {name: network.terms.find(node) for name, node in network.nodes.items()}
        outline = networks.Outline(network.graph, leaders)
        self._correct(networks.choice_of(network, network.outputs), outline, kernels)
        self._priced_alike.add(_operators(network.graph))
        return math.fsum(each.seconds for each in kernels)

    def _correct(
        self,
        choice: networks.Choice,
        outline: networks.Outline,
        kernels: Iterable[networks.PricedKernel],
    ) -> None:
        costs = self._corrections.add(choice, outline, kernels)
        if self._projected is not None:
            self._projected.learn(costs)

    def _left(self, share: float) -> float:
        """The seconds until a share of all is over, from the start of the search."""
        return max(0.0, self._start + share * self._how.seconds - time.monotonic())

    def _is_over(self) -> bool:
        return self._should_stop() or not self._left(1.0)

    def _price(self) -> None:
        """Price the candidates, the cheapest first, then the graphs that become the cheapest."""
        left = self._how.priced
        for key, candidate in sorted(
            self._candidates.items(), key=lambda each: each[1].operators_s
        ):
            is_late = left < self._how.priced and self._is_over()
            if not left or is_late or not self._is_worthwhile(candidate):
                break
            self._candidates[key] = self._priced(candidate)
            left -= self._candidates[key].programs_s is not None
        for _ in range(self._how.asked if self._how.kind is not SearchKind.BACKTRACK else 0):
            if self._is_over() or not self._price_another():
                return

    def _is_worthwhile(self, candidate: Candidate) -> bool:
        """Whether it may gain: the projected costs differ by more than their error."""
        if self._projected is None or self._network_s is None:
            return True
        return candidate.operators_s * _LEAST_GAIN <= self._network_s

    def _price_another(self) -> bool:
        """Price the cheapest graph of the e-graph; whether it had no price before."""
        count = len(self._candidates)
        self._cheapest(1)
        if len(self._candidates) == count or self._is_over():
            return False
        key, candidate = list(self._candidates.items())[-1]
        if not self._is_worthwhile(candidate):
            return False
        self._candidates[key] = self._priced(candidate)
        return True

    def _priced(self, candidate: Candidate) -> Candidate:
        """The candidate with the price of its program, which corrects the costs of its operators.
        It stays unpriced where a graph of the same operators was priced: that one is equal but for
        the order.
        """
        choice = networks.choice_of(self._network, candidate.outputs)
        written = networks.write_outline(self._network, choice)
        graph = simplify(written.graph)
        alike = _operators(graph)
        if alike in self._priced_alike:
            return candidate
        self._priced_alike.add(alike)
        kernels = self._prices.kernels_of(graph)
        if kernels is None:
            return candidate
        self._correct(choice, written, kernels)
        return replace(candidate, programs_s=math.fsum(each.seconds for each in kernels))

    def _enter(self, outputs: tuple[Id, ...], operators_s: float) -> None:
        terms = self._network.terms
        key = frozenset(
            (terms.head_of(node), *map(terms.find, terms.children(node)))
            for node in networks.choice_of(self._network, outputs).values()
        )
        self._candidates.setdefault(key, Candidate(outputs, operators_s))


def _operators(graph: Graph) -> tuple[tuple[str, str], ...]:
    """The operators of a graph with the types of what they give, in no order of the graph."""
    return tuple(sorted((node.operator, str(graph.types[node.outputs[0]])) for node in graph.nodes))
