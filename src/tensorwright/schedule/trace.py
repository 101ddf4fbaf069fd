"""Traces: a schedule as data.

A trace is a tuple of primitives.  It prints one step a line, parses back, replays on a fresh state,
and is what the record store keeps.  Its decisions (tile sizes, unroll depths) may be unbound names;
`bind` gives them values.

The subject of a schedule: a program with a name, and which of its inputs are constants.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from operator import index
from typing import Any, Protocol, TypeAlias

from tensorwright import expr
from tensorwright.schedule.primitive import Primitive, applied
from tensorwright.schedule.primitives import PRIMITIVES
from tensorwright.schedule.state import ScheduleState, initial_state
from tensorwright.schedule.text import parse_step, snake_case

Trace: TypeAlias = tuple[Primitive, ...]

_KINDS: dict[str, type] = {snake_case(kind.__name__): kind for kind in PRIMITIVES}


def format_trace(trace: Trace) -> str:
    """One step a line."""
    return "\n".join(map(str, trace))


def parse_trace(text: str) -> Trace:
    """The inverse of `format_trace`; blank lines and lines that start with # are passed over.

    Raises: UsageError naming the line that does not parse.
    """
    lines = (line.strip() for line in text.splitlines())
    return tuple(parse_step(line, _KINDS) for line in lines if line and not line.startswith("#"))


def replay(state: ScheduleState, trace: Trace) -> ScheduleState:
    """Apply every step in order.

    Raises: ScheduleError from the first step that is illegal.
    """
    for step in trace:
        step.check(state)
        state = applied(step, state)
    return state


def bind(trace: Trace, values: Mapping[str, int]) -> Trace:
    """The trace with decisions replaced by numbers; decisions without a value stay.

    The numbers may be NumPy's.
    """
    mapping: dict[Any, expr.Index] = {
        expr.Decision(name): index(value) for name, value in values.items()
    }
    return tuple(_bind_step(step, mapping) for step in trace)


def _bind_step(step: Primitive, mapping: Mapping[Any, expr.Index]) -> Primitive:
    changes: dict[str, object] = {}
    for field in fields(step):  # type: ignore[arg-type]
        value = getattr(step, field.name)
        if isinstance(value, expr.IndexExpr):
            changes[field.name] = expr.substitute(value, mapping)
        elif isinstance(value, tuple) and any(isinstance(item, expr.IndexExpr) for item in value):
            changes[field.name] = tuple(expr.substitute(item, mapping) for item in value)
    return replace(step, **changes) if changes else step  # type: ignore[type-var]


class Schedulable(Protocol):
    """Anything that can be scheduled: tensors to compute, and which inputs are constant."""

    @property
    def constants(self) -> frozenset[str]:
        """The names of the inputs that are known when the program is built."""

    @property
    def outputs(self) -> tuple[expr.Compute, ...]:
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
    def inputs(self) -> tuple[expr.Placeholder, ...]:
        """The tensors that the caller passes, in order."""


def state_of(workload: Schedulable) -> ScheduleState:
    """The state before the first step of a schedule."""
    return initial_state(workload.outputs, workload.constants)
