"""What is tuned: a workload, and how much it matters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tensorwright.expr import Compute, Placeholder


class Workload(Protocol):
    """A program to be scheduled; `str` of it is for people. `graph.Workload` is one."""

    @property
    def name(self) -> str:
        """For people."""

    @property
    def key(self) -> str:
        """The same for every program of this structure."""

    @property
    def inputs(self) -> tuple[Placeholder, ...]:
        """What the caller passes, in order."""

    @property
    def constants(self) -> frozenset[str]:
        """The names of the inputs that are known when the program is built."""

    @property
    def outputs(self) -> tuple[Compute, ...]:
        """What the caller gets, in order."""


@dataclass(frozen=True, slots=True)
class Task:
    """A workload and its weight: how often it runs in what shall be fast.

    network   the network that runs it, where a session tunes several
    shares    for a workload of several networks, pairs (network, weight) that add up to `weight`
    """

    workload: Workload
    weight: float = 1.0
    network: str = ""
    shares: tuple[tuple[str, float], ...] = ()

    @property
    def uses(self) -> tuple[tuple[str, float], ...]:
        """How often each network runs it."""
        return self.shares or ((self.network, self.weight),)
