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

from tensorwright.rewriting import egraph, networks
from tensorwright.rewriting.derivation import rule_set
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


def places_of_rules(network: networks.Network, rules: Iterable[Rule]) -> dict[str, int]:
    """The number of places of each rule, by its name; those of several roots that share no tensor
    have none, since no search tries them.
    """
    listed = tuple(rules)
    runner = egraph.Runner(network.terms, egraph.Limits(), lambda data: not data.is_constant)
    counts = dict.fromkeys((rule.name for rule in listed), 0)
    for rewrite in rule_set(listed).rewrites:
        counts[rewrite.name] = len(set(_places(runner, rewrite)))
    return counts


def _places(
    runner: egraph.Runner[networks.TensorData], rewrite: egraph.Rewrite
) -> Iterator[frozenset[egraph.Id]]:
    """The classes of the roots of each match where the rule can be applied."""
    for trigger in rewrite.triggers:
        first, *others = (frozenset(each.variables.tensors) for each in trigger.patterns)
        if others and not first.intersection(*others):
            continue
        options = [runner.index.options(pattern) for pattern in trigger.patterns]
        for roots, bound in egraph.joined(options):
            classes = frozenset(roots)
            match = egraph.Match.of(rewrite.variables, bound)
            if len(classes) == len(roots) and runner.planned(rewrite, match) is not None:
                yield classes
