"""The subject of a schedule: a program with a name, and which of its inputs are constants."""

from __future__ import annotations

from typing import Protocol

from tensorwright.expr import Compute, Placeholder
from tensorwright.schedule.state import ScheduleState, initial_state


class Schedulable(Protocol):
    """Anything that can be scheduled: tensors to compute, and which inputs are constant."""

    @property
    def constants(self) -> frozenset[str]:
        """The names of the inputs that are known when the program is built."""

    @property
    def outputs(self) -> tuple[Compute, ...]:
        """The tensors that the caller gets, in order."""


class Workload(Schedulable, Protocol):
    """A program to be scheduled; `str` of it is for people. `graph.Workload` is one."""

    @property
    def name(self) -> str:
        """For people."""

    @property
    def key(self) -> str:
        """The same for every program of this structure."""

    @property
    def inputs(self) -> tuple[Placeholder, ...]:
        """The tensors that the caller passes, in order."""


def state_of(workload: Schedulable) -> ScheduleState:
    """The state before the first step of a schedule."""
    return initial_state(workload.outputs, workload.constants)
