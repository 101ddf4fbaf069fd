"""A task of tuning: a workload and its weight."""

from __future__ import annotations

from dataclasses import dataclass

from tensorwright.schedule import Workload


@dataclass(frozen=True, slots=True)
class Task:
    """A workload and its weight: how often it runs in the networks that are tuned.

    network   the network that runs it, where a session tunes several
    shares    for a workload of several networks, pairs (network, weight) that add up to `weight`
    alike     keys of workloads that are the same but for the sizes of their tensors: what is fast
              for them is tried first
    """

    workload: Workload
    weight: float = 1.0
    network: str = ""
    shares: tuple[tuple[str, float], ...] = ()
    alike: tuple[str, ...] = ()

    @property
    def uses(self) -> tuple[tuple[str, float], ...]:
        """How often each network runs it."""
        return self.shares or ((self.network, self.weight),)
