"""Graphs that may be faster than a network, by both searches, ranked by what their programs cost.

    saturate     the cheapest selections of the e-graph            by costs of operators
    backtrack    from the network on, and from the best selection  by costs of operators
    price        each of these as programs; the costs of kernels correct the costs of their
    operators. Then the e-graph is searched again, until it gives a graph that is priced

Both searches write to one e-graph, so that all their graphs can be certified.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from tensorwright.graph import Graph, simplify
from tensorwright.processes import never
from tensorwright.rewriting import networks
from tensorwright.rewriting.backtracking import BacktrackingLimits, backtrack_network
from tensorwright.rewriting.candidates import kinds
from tensorwright.rewriting.egraph import Id, StopReason
from tensorwright.rewriting.local_search import cheap_selections

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
    how: kinds.CandidateSearch,
    should_stop: Callable[[], bool] = never,
) -> kinds.Candidates:
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
        how: kinds.CandidateSearch,
        should_stop: Callable[[], bool],
    ) -> None:
        self._network = network
        self._rules = rules
        self._prices = prices
        self._how = how
        self._should_stop = should_stop
        self._start = time.monotonic()
        self._network_s: float | None = None
        self._stops: dict[kinds.SearchKind, StopReason] = {}
        self._graphs = 0
        self._projected = kinds.ProjectedCosts() if how.cost is kinds.CostKind.PROGRAMS else None
        self._costs: networks.OperatorCosts = self._projected or prices
        self._corrections = networks.Corrections(
            network, networks.Roofline() if self._projected else prices
        )
        self._saturation = networks.unsaturated(network)
        self._priced_alike: set[tuple[tuple[str, str], ...]] = set()
        self._candidates: dict[frozenset[tuple[int, ...]], kinds.Candidate] = {}

    def run(self) -> None:
        """Price the network, run one or both searches, then price their candidates.

        The price of the network is computed whenever it is compiled, so it does not count as
        search.  It corrects the costs of its operators and of similar ones.
        """
        if self._how.cost is not kinds.CostKind.OPERATORS:
            self._network_s = self._price_network()
        self._start = time.monotonic()
        kind = self._how.kind
        best: tuple[Id, ...] | None = None
        if kind is not kinds.SearchKind.BACKTRACK:
            best = self._saturate()
        if kind is not kinds.SearchKind.SATURATE:
            share = 0.5 if best else 1.0
            self._backtrack(None, share)
            if best is not None:
                self._backtrack(best, 1.0)
        if self._how.cost is not kinds.CostKind.OPERATORS:
            self._price()

    def candidates(self) -> kinds.Candidates:
        """The candidates, the cheapest first."""

        def cost(each: kinds.Candidate) -> float:
            if self._how.cost is kinds.CostKind.OPERATORS:
                return each.operators_s
            return float("inf") if each.programs_s is None else each.programs_s

        ranked = tuple(sorted(self._candidates.values(), key=cost))
        return kinds.Candidates(
            ranked, self._saturation, self._stops, self._graphs, self._network_s
        )

    def _saturate(self) -> tuple[Id, ...]:
        share = _SATURATED if self._how.kind is kinds.SearchKind.BOTH else _SEARCHED
        seconds = min(self._left(share), self._how.saturation.seconds)
        limits = replace(self._how.saturation, seconds=seconds)
        self._saturation = networks.saturate_network(
            self._network, self._rules, limits, self._should_stop
        )
        self._stops[kinds.SearchKind.SATURATE] = self._saturation.stop
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
        self._stops[kinds.SearchKind.BACKTRACK] = result.stop
        self._graphs += result.seen
        for outputs in result.outputs:
            choice = networks.choice_of(self._network, outputs)
            cost = networks.choice_seconds(self._network, choice, self._costs, self._corrections)
            self._enter(outputs, cost)

    def _price_network(self) -> float | None:
        """The price of the network itself, which is the first to correct the costs of its
        operators.
        """
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
        for _ in range(self._how.asked if self._how.kind is not kinds.SearchKind.BACKTRACK else 0):
            if self._is_over() or not self._price_another():
                return

    def _is_worthwhile(self, candidate: kinds.Candidate) -> bool:
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

    def _priced(self, candidate: kinds.Candidate) -> kinds.Candidate:
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
        self._candidates.setdefault(key, kinds.Candidate(outputs, operators_s))


def _operators(graph: Graph) -> tuple[tuple[str, str], ...]:
    """The operators of a graph with the types of what they give, in no order of the graph."""
    return tuple(sorted((node.operator, str(graph.types[node.outputs[0]])) for node in graph.nodes))
