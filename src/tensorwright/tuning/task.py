"""A task of tuning: a workload, its weight, and the number of its calls."""

from __future__ import annotations

from dataclasses import dataclass

from tensorwright.schedule import Workload


@dataclass(frozen=True, slots=True)
class Task:
    """A workload and its weight in the objective: usually the number of its calls.

    network   the network that runs it, if a session tunes several
    shares    for a workload of several networks, pairs (network, weight) that add up to `weight`
    alike     keys of workloads that differ only in the sizes of their tensors: schedules that are
              fast for them are tried first
    calls     pairs (network, calls in one run of it), if the weights are not these numbers
    """

    workload: Workload
    weight: float = 1.0
    network: str = ""
    shares: tuple[tuple[str, float], ...] = ()
    alike: tuple[str, ...] = ()
    calls: tuple[tuple[str, float], ...] = ()

    @property
    def uses(self) -> tuple[tuple[str, float], ...]:
        """The weight in each network."""
        return self.shares or ((self.network, self.weight),)

    @property
    def calls_by_network(self) -> tuple[tuple[str, float], ...]:
        """The number of calls in one run of each network."""
        return self.calls or self.uses

    @property
    def call_count(self) -> float:
        """The number of calls in one run of each network together."""
        return sum(count for _, count in self.calls_by_network)
