"""What the compiler decides for a page of fixed workloads, as text.

    == network 25000001, x86-64-avx512
    partition ...                                    how nodes were grouped, with their layouts
    -- conv2d_relu 0123456789abcdef runs 3 times: 12.34 us by model
    split(...)                                       the schedule
    for ...                                          its loops, where the page shows them
    -- conv2d_relu 0123456789abcdef, NAME runs 3 times: 23.45 us by rule
    12 choices, 3 limits, 0123456789abcdef           a sketch of its space, on pages of cards

Decisions are those of an assumed machine: its rates are nominal, and NumPy and its products of
matrices use no instructions but those of AVX2, since with others they round differently.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from unittest.mock import patch

from tests.decisions.cases import THREADS, Part, pages
from tests.decisions.changes import PART, WORKLOAD

from tensorwright.artifacts import loop_program
from tensorwright.base import Target, override
from tensorwright.graph import Workload
from tensorwright.runtime.measuring import peak
from tensorwright.schedule import format_trace, state_of
from tensorwright.tuning.selection import Chosen, Predictor, open_predictor
from tensorwright.tuning.space import SpaceKind, space_of

ASSUMED = MappingProxyType(
    {
        "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
        "OPENBLAS_CORETYPE": "Haswell",
    }
)
"""Variables of the process that decides."""


def decide(name: str, home: Path) -> str:
    """The text of the page of that name; `home` is a folder of its own."""
    (page,) = (each for each in pages() if each.name == name)
    with (
        patch.object(peak, "measure_steps", return_value=(0, 0)),
        override(home=home, assume=""),
    ):
        return "\n".join(line for part in page.parts for line in _decide_part(part)) + "\n"


def _decide_part(part: Part) -> Iterator[str]:
    grouped = part.group(part.target)
    predictor = open_predictor(part.target, THREADS, is_cold=True)
    assert predictor is not None, "decisions are those of the time model that is shipped"
    yield f"{PART}{part.name}, {part.target}"
    if grouped.text:
        yield grouped.text
    for workload, count in grouped.workloads:
        chosen = predictor.best(workload)
        yield _head(workload, count, chosen)
        yield format_trace(chosen.trace)
        if part.shows_loops:
            yield str(loop_program(workload, chosen.trace, part.target))
        if part.shows_sketches:
            yield from _sketches(workload, count, part.target, predictor)


def _sketches(
    workload: Workload, count: int, target: Target, predictor: Predictor
) -> Iterator[str]:
    """Every sketch of a space with a digest of what is open; of each family, a time by rule."""
    families: set[str] = set()
    for sketch in space_of(state_of(workload), target, kind=SpaceKind.BOTH).sketches:
        is_first = sketch.family not in families
        families.add(sketch.family)
        trace = sketch.bound(sketch.defaults)
        estimate = predictor.estimate(workload, trace) if is_first else None
        time = "?" if estimate is None else f"{estimate.seconds * 1e6:.5g}"
        name = f"{workload.name} {workload.key}, {sketch.name}"
        yield f"{WORKLOAD}{name} runs {count} times: {time} us by rule"
        parts = (format_trace(sketch.trace), *map(str, (*sketch.choices, *sketch.limits)))
        digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
        yield f"{len(sketch.choices)} choices, {len(sketch.limits)} limits, {digest}"


def _head(workload: Workload, count: int, chosen: Chosen) -> str:
    time = "?" if chosen.estimate is None else f"{chosen.estimate.seconds * 1e6:.5g}"
    source = "heuristic" if chosen.is_by_rule else "model"
    return f"{WORKLOAD}{workload.name} {workload.key} runs {count} times: {time} us by {source}"
