"""Cases of schedules as text: a name, an expression, and the steps that are taken on it.

    fuse_a_marked_loop: matmul() | unroll(c, j) | fuse(c, [i, j])

The expression is Python; a word in capitals is a trace of that name.  A line that is indented goes
on with the one before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tests.unit.schedule import expressions
from tests.unit.schedule.small_expressions import SMALL

from tensorwright.schedule import Trace, parse_trace


def steps(text: str, names: Mapping[str, Any] | None = None) -> Trace:
    """The trace of steps with `|` between them."""
    taken: Trace = ()
    for step in map(str.strip, text.split("|")):
        taken += (names or {})[step] if step.isupper() else parse_trace(step)
    return taken


def cases(table: str, names: Mapping[str, Any]) -> dict[str, tuple[expressions.Expression, Trace]]:
    """The expressions and traces of a table, by name."""
    known = {**vars(expressions), "SMALL": SMALL, **names}
    found = {}
    for row in re.split(r"\n(?=\S)", table.strip()):
        name, text = row.split(": ", 1)
        expression, taken = text.split("|", 1)
        found[name] = (eval(expression.strip(), known), steps(taken, known))
    return found
