"""Traces: a schedule as data.

A trace is a tuple of primitives.  It prints one step a line, parses back, replays on a fresh state,
and is what the record store keeps.  Its decisions (tile sizes, unroll depths) may be unbound names;
`bind` gives them values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from operator import index
from typing import Any, TypeAlias

from tensorwright.expr import Decision, Index, IndexExpr, substitute
from tensorwright.schedule.primitive import Primitive, applied
from tensorwright.schedule.primitives import PRIMITIVES
from tensorwright.schedule.state import ScheduleState
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
    mapping: dict[Any, Index] = {Decision(name): index(value) for name, value in values.items()}
    return tuple(_bind_step(step, mapping) for step in trace)


def _bind_step(step: Primitive, mapping: Mapping[Any, Index]) -> Primitive:
    changes: dict[str, object] = {}
    for field in fields(step):  # type: ignore[arg-type]
        value = getattr(step, field.name)
        if isinstance(value, IndexExpr):
            changes[field.name] = substitute(value, mapping)
        elif isinstance(value, tuple) and any(isinstance(item, IndexExpr) for item in value):
            changes[field.name] = tuple(substitute(item, mapping) for item in value)
    return replace(step, **changes) if changes else step  # type: ignore[type-var]
