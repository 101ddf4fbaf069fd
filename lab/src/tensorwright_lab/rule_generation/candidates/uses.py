"""Uses of rules as units: a part of the equalities of a level each, on processes that share files.

unit        {"folder": ..., "level": 4, "low": 512, "high": 1024}: rows by position
answer      where uses lead, equality by equality, as two columns
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorwright.farm import Payload
from tensorwright_lab.rule_generation.candidates.application_index import ApplicationIndex
from tensorwright_lab.rule_generation.candidates.facts import restored
from tensorwright_lab.rule_generation.candidates.one_step import OneStep, uses_of_rows
from tensorwright_lab.rule_generation.enumerate.checkpoint import load_arrays
from tensorwright_lab.rule_generation.enumerate.classes import Places
from tensorwright_lab.rule_generation.enumerate.level_units import LevelUnits

_ROWS = 1024
_EFFORT = 500.0
"""Microseconds of an equality, about."""
_FEW = 2048
_FILE = "facts"
Uses = tuple[list[int], list[int]]


def uses_of_level(rules: OneStep, rows: Places, level: int, units: LevelUnits) -> Iterator[Uses]:
    """As `uses_of_rows`, on the processes that share files with this one."""
    if len(rows) < _FEW or not units.farm.shares_files:
        yield from uses_of_rows(rules, rows.tolist(), level)
        return
    folder = units.folder
    name = f"{_FILE}-{level}"
    if not folder.has(name):
        about = {"rows": rows, "rules": np.array(rules.rows, np.intp)}
        folder.save(name, {**rules.facts.arrays(), **about})
    step = "uses"
    shared = {"folder": str(folder.path.absolute()), "level": level}
    names = units.complete(
        step,
        lambda at: Payload({**shared, "low": at * _ROWS, "high": (at + 1) * _ROWS}),
        [_EFFORT * _ROWS] * -(-len(rows) // _ROWS),
        f"{step}-{level}",
    )
    for each in names:
        yield from _unpacked(folder.unit(each))


def listed_uses(payload: Payload) -> Payload:
    """Where uses of rules on some equalities lead: how many there are of each, and all of them."""
    level, own = payload.data["level"], slice(payload.data["low"], payload.data["high"])
    rules, rows = _rules_and_rows(payload.data["folder"], level)
    parts = [part for uses in uses_of_rows(rules, rows[own], level) for part in uses]
    counts = np.array([len(part) for part in parts], np.int32)
    reached = np.array([each for part in parts for each in part], np.int32)
    return Payload(blobs=(counts.tobytes(), reached.tobytes()))


def _unpacked(answer: Payload) -> Iterator[Uses]:
    columns: Sequence[NDArray[Any]] = [np.frombuffer(blob, np.int32) for blob in answer.blobs]
    counts, reached = columns
    ends = [0, *np.cumsum(counts).tolist()]
    parts = [reached[low:high].tolist() for low, high in pairwise(ends)]
    return zip(parts[::2], parts[1::2], strict=True)


@lru_cache(maxsize=1)
def _rules_and_rows(folder: str, level: int) -> tuple[OneStep, list[int]]:
    """What all units of a level share; a process reads it once."""
    arrays = load_arrays(Path(folder) / f"{_FILE}-{level}.npz")
    facts = restored(arrays)
    rules = OneStep(facts, ApplicationIndex(facts), same_shape=False)
    for row in arrays["rules"].tolist():
        rules.add_rule(row)
    return rules, arrays["rows"].tolist()
