"""The request and the result of a search for graphs.

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

Count the places of a network, as it was read, where each rule can be applied.

relu(concat[_axis](?x, ?y)) == ...     at the relu of a concatenation, from left to right; and where
                                       relus are concatenated, from right to left: 2 places
matmul(?x, ?y), matmul(?x, ?z) == ...  a pair of products that share a tensor is a place
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from operator import ne

import numpy as np
from numpy.typing import NDArray

from tensorwright.rewriting.derivation import rule_set
from tensorwright.rewriting.egraph import (
    Id,
    Limits,
    Match,
    Rewrite,
    RootPattern,
    Runner,
    StopReason,
)
from tensorwright.rewriting.networks import (
    ANCHORS,
    Network,
    NetworkSaturation,
    OperatorCosts,
    Roofline,
    SaturationLimits,
    TensorData,
    TypedOperator,
)
from tensorwright.rewriting.operators import PAIRS
from tensorwright.rewriting.terms import Rule


class SearchKind(StrEnum):
    """Which search looks for graphs."""

    SATURATE = "saturate"
    BACKTRACK = "backtrack"
    BOTH = "both"


class CostKind(StrEnum):
    """The cost by which graphs are ranked: the sum of their operators, their programs, or their
    time in another runtime.
    """

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
    saturation: SaturationLimits = field(default_factory=SaturationLimits)


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A graph that computes the same.

    outputs       the node of each output of the network, see `networks/saturate.py`
    operators_s   the sum of its operators' costs, each alone
    programs_s    the sum of its kernels' costs; None where they were not or cannot be priced
    """

    outputs: tuple[Id, ...]
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
    saturation: NetworkSaturation
    stops: Mapping[SearchKind, StopReason]
    graphs: int = 0
    network_s: float | None = None


_Kind = tuple[str, tuple[int, ...]]
_Numbers = NDArray[np.float64]


@dataclass(slots=True)
class _Samples:
    """Operators of one kind: the logarithms of their extents, their other traits, and the
    logarithms of their cost over the roofline.
    """

    extents: list[tuple[float, ...]] = field(default_factory=list)
    traits: list[tuple[object, ...]] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    table: _Numbers | None = None


class ProjectedCosts:
    """Costs of operators by a roofline and by the operators of priced programs.

    Mutable: `learn` adds operators.
    """

    def __init__(self, roofline: OperatorCosts | None = None) -> None:
        self._roofline = roofline or Roofline()
        self._samples: dict[_Kind, _Samples] = {}
        self._seconds: dict[TypedOperator, float] = {}

    def learn(self, priced: Iterable[tuple[TypedOperator, float]]) -> None:
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

    def seconds(self, use: TypedOperator) -> float:
        """Seconds of an application of an operator; 0 where all of it is constant."""
        seconds = self._seconds.get(use)
        if seconds is None:
            usual = self._roofline.seconds(use)
            seconds = self._seconds[use] = usual * 2.0 ** self._error(use) if usual else 0.0
        return seconds

    def _error(self, use: TypedOperator) -> float:
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
        if use.operator not in ANCHORS:  # its cost depends on the kernel that it joins
            return float(alike.max()) if alike.size else 0.0
        if alike.size:
            return float(alike.mean())
        weights = (nearest / distances) ** 2
        return float((weights * errors).sum() / weights.sum())


def _kind(use: TypedOperator) -> _Kind:
    """Operators of one kind have extents that can be compared."""
    return use.operator, (len(use.params), *(len(each.shape) for each in (*_args(use), use.result)))


def _extents(use: TypedOperator) -> tuple[float, ...]:
    shapes = (each.extents for each in (*_args(use), use.result))
    return tuple(float(np.log2(max(1, extent))) for shape in shapes for extent in shape)


def _traits(use: TypedOperator) -> tuple[object, ...]:
    """The traits that tell two operators of a kind apart besides their extents."""
    return (*use.params, *(arg.is_constant for arg in _args(use)))


def _args(use: TypedOperator) -> tuple[TensorData, ...]:
    """The arguments; those of which the order costs nothing sorted."""
    if use.operator not in PAIRS:
        return use.args
    return tuple(sorted(use.args, key=lambda arg: (arg.is_constant, arg.extents)))


Bound = Mapping[str, int]


def places_of_rules(network: Network, rules: Iterable[Rule]) -> dict[str, int]:
    """The number of places of each rule, by its name; those of several roots that share no tensor
    have none, since no search tries them.
    """
    listed = tuple(rules)
    runner = Runner(network.terms, Limits())
    counts = dict.fromkeys((rule.name for rule in listed), 0)
    for rewrite in rule_set(listed).rewrites:
        counts[rewrite.name] = len(set(_places(runner, rewrite)))
    return counts


def _places(runner: Runner[TensorData], rewrite: Rewrite) -> Iterator[tuple[Id, ...]]:
    """The classes of the roots of each match where the rule can be applied."""
    for trigger in rewrite.triggers:
        matches = [list(_matches(runner, pattern)) for pattern in trigger.patterns]
        for roots, bound in _joined(matches, trigger.patterns):
            nodes = tuple(Id(bound[name]) for name in rewrite.variables.tensors)
            values = tuple(bound[name] for name in rewrite.variables.params)
            if runner.planned(rewrite, Match(nodes, values, ())) is not None:
                yield roots


def _matches(runner: Runner[TensorData], pattern: RootPattern) -> Iterator[tuple[Id, Bound]]:
    """The matches of a pattern at tensors that are not constant: their classes and variables."""
    graph, matcher, variables = runner.graph, runner.matcher, pattern.variables
    names = (*variables.tensors, *variables.params)
    for name in graph.with_operator(pattern.node.operator):
        if graph.data(name).is_constant:
            continue
        for match in matcher.at(pattern, name):
            if matcher.sizes_agree(variables, match):
                yield graph.find(name), dict(zip(names, (*match.nodes, *match.values), strict=True))


def _joined(
    matches: list[list[tuple[Id, Bound]]], patterns: tuple[RootPattern, ...]
) -> Iterator[tuple[tuple[Id, ...], Bound]]:
    """The matches of one root, or of two that share a tensor: in either order they are one."""
    if len(matches) == 1:
        yield from (((root,), bound) for root, bound in matches[0])
    if len(matches) != 2:
        return
    shared = set(patterns[0].variables.tensors) & set(patterns[1].variables.tensors)
    shared_params = set(patterns[0].variables.params) & set(patterns[1].variables.params)
    if not shared:
        return
    names = (*sorted(shared), *sorted(shared_params))
    table: dict[tuple[int, ...], list[tuple[Id, Bound]]] = {}
    for root, bound in matches[1]:
        table.setdefault(tuple(bound[name] for name in names), []).append((root, bound))
    for one, bound in matches[0]:
        for other, its in table.get(tuple(bound[name] for name in names), ()):
            if one != other:
                yield (min(one, other), max(one, other)), {**bound, **its}
