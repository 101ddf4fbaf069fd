"""The objective of a session over several workloads: a function of the times of networks.

An objective is any function of `NetworkTimes`, smaller being better; the ones here are those of
Ansor.  A scheduler asks `gradient` how much the objective gains for each second that a workload
loses.

Source:  Zheng et al., Ansor, OSDI 2020, table 2 (f1 to f3; f4, the early stopping of a workload,
         is `GradientScheduler.patience`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

_STEP = 1e-4  # of a workload's time, for derivatives


@dataclass(frozen=True, slots=True)
class NetworkTimes:
    """One network: how often it runs each of its workloads, and their best times in seconds."""

    name: str
    weights: tuple[float, ...]
    times_s: tuple[float, ...]

    @property
    def latency_s(self) -> float:
        """Its time as far as kernels go: the weighted sum."""
        return math.fsum(w * t for w, t in zip(self.weights, self.times_s, strict=True))


Objective: TypeAlias = Callable[[Sequence[NetworkTimes]], float]


@dataclass(frozen=True, slots=True)
class TotalLatency:
    """f1: the sum of the latencies; `weights` are sorted pairs (network, weight), 1 if missing."""

    weights: tuple[tuple[str, float], ...] = ()

    def __call__(self, networks: Sequence[NetworkTimes]) -> float:
        """The value; smaller is better."""
        weights = dict(self.weights)
        return math.fsum(weights.get(each.name, 1.0) * each.latency_s for each in networks)


@dataclass(frozen=True, slots=True)
class LatencyRequirement:
    """f2: as f1, but a network gains nothing by being faster than it must be.

    limits_s   pairs (network, seconds); a network without one gains without end
    """

    limits_s: tuple[tuple[str, float], ...]

    def __call__(self, networks: Sequence[NetworkTimes]) -> float:
        """The value; smaller is better."""
        limits_s = dict(self.limits_s)
        return math.fsum(max(each.latency_s, limits_s.get(each.name, 0.0)) for each in networks)


@dataclass(frozen=True, slots=True)
class MeanSpeedUp:
    """f3: minus the geometric mean of the speed-ups against a reference.

    reference_s   pairs (network, seconds); networks without one do not count
    """

    reference_s: tuple[tuple[str, float], ...]

    def __call__(self, networks: Sequence[NetworkTimes]) -> float:
        """The value; smaller is better."""
        references_s = dict(self.reference_s)
        logs = [
            math.log(references_s[each.name] / each.latency_s)
            for each in networks
            if each.name in references_s and each.latency_s > 0
        ]
        return -math.exp(math.fsum(logs) / len(logs)) if logs else 0.0


def networks_of(
    uses: Sequence[Sequence[tuple[str, float]]], times_s: Sequence[float]
) -> tuple[tuple[NetworkTimes, ...], tuple[Mapping[int, int], ...]]:
    """Group workloads by network.

    uses      for each workload, pairs (network, weight)       times_s   its best time
    Returns:  the networks by name, and for each the positions of workloads in it. Workloads without
              a finite time are left out.
    """
    by_network: dict[str, dict[int, float]] = {}
    for number, own in enumerate(uses):
        for network, weight in own:
            members = by_network.setdefault(network, {})
            if math.isfinite(times_s[number]):
                members[number] = members.get(number, 0.0) + weight
    networks = tuple(
        NetworkTimes(name, tuple(members.values()), tuple(times_s[n] for n in members))
        for name, members in sorted(by_network.items())
    )
    maps = tuple(
        {number: position for position, number in enumerate(members)}
        for _, members in sorted(by_network.items())
    )
    return networks, maps


def gradient(
    objective: Objective, uses: Sequence[Sequence[tuple[str, float]]], times_s: Sequence[float]
) -> tuple[float, ...]:
    """The derivative of the objective by the time of each workload, numerically, from below.

    From below, because times only fall: at the edge of a requirement nothing is gained. Zero for
    a workload without a finite time.
    """
    networks, maps = networks_of(uses, times_s)
    now = objective(networks)
    slopes = []
    for number, time_s in enumerate(times_s):
        if not math.isfinite(time_s) or time_s <= 0:
            slopes.append(0.0)
            continue
        step_s = _STEP * time_s
        moved = [
            _faster(network, places[number], step_s) if number in places else network
            for network, places in zip(networks, maps, strict=True)
        ]
        slopes.append((now - objective(moved)) / step_s)
    return tuple(slopes)


def _faster(network: NetworkTimes, position: int, step_s: float) -> NetworkTimes:
    times_s = list(network.times_s)
    times_s[position] -= step_s
    return replace(network, times_s=tuple(times_s))
