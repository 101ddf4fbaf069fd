"""The request and the result of a search for graphs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tensorwright.rewriting.egraph import Id, StopReason
from tensorwright.rewriting.networks import NetworkSaturation, SaturationLimits


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

    outputs       the node of each output of the network, see `networks/steps.py`
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
