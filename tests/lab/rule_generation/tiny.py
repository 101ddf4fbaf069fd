"""A preset small enough for brute force, and its enumeration."""

from __future__ import annotations

from pathlib import Path

from tensorwright.farm import Farm
from tensorwright_lab.rule_generation.answers import CALLER
from tensorwright_lab.rule_generation.enumerate.checkpoint import LevelUnits, WorkFolder
from tensorwright_lab.rule_generation.enumerate.enumerate import (
    Enumeration,
    enumerate_terms,
    run_of,
)
from tensorwright_lab.rule_generation.preset import parse_preset

TINY = parse_preset(
    "tiny",
    """
data (2, 3): x1 x2
weights (3, 3): w1
weights (): s0
try rank 2: matmul
try: ewadd; ewmul; scalar_mul
try rank 2: relu
try: transpose[1, 0]; concat[0]; split0[0]; split1[0]; eye[3]
""",
)


def enumerated(path: Path, max_operators: int, farm: Farm = CALLER, sample: int = 1) -> Enumeration:
    """The enumeration of the tiny preset, kept in a folder."""
    folder = WorkFolder(path, run_of(TINY, max_operators, 0, sample))
    return enumerate_terms(TINY, max_operators, folder, farm=farm, sample=sample)


def units_in(path: Path, farm: Farm = CALLER) -> LevelUnits:
    """Units whose answers are kept in a folder of their own."""
    return LevelUnits(WorkFolder(path, {}), farm, print, 3)


def facts(found: Enumeration) -> dict[str, bytes]:
    """All that was found, for comparing bit by bit."""
    arrays = {f"table_{name}": column for name, column in found.table.columns().items()}
    for name in ("code", "cut", "a", "b", "key"):
        arrays[f"equal_{name}"] = getattr(found.equal.batch, name)
    arrays["of"] = found.equal.of
    numbers = repr((found.graphs, found.two_outputs, found.applications)).encode()
    return {name: column.tobytes() for name, column in arrays.items()} | {"numbers": numbers}
