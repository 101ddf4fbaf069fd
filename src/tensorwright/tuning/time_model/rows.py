"""The rows of statements that the trees of the time model read, and the values they start from.

A row has the statement's features, the machine, the proportions of the roofline's parts, and the
statement's share of its program.  Caches and rates are only in the roofline's parts, which say how
much comes from beyond a cache, and not how large it is: trees that were trained on few machines
could not use the size.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import ByKind, TargetKind
from tensorwright.machine import NOMINAL, Machine
from tensorwright.tuning.features import FEATURE_NAMES
from tensorwright.tuning.models.protocol import Features
from tensorwright.tuning.models.roofline import LEVELS, Estimate, RooflineModel

Column = tuple[str, Callable[[Machine], float]]
"""A name, and the value of the column for a machine."""

MACHINE_COLUMNS: ByKind[Column] = {
    TargetKind.CPU: (
        ("vector_bytes", lambda machine: np.log2(machine.target.vector_bytes)),
        ("vector_registers", lambda machine: np.log2(machine.target.vector_registers)),
        ("has_masks", lambda machine: machine.target.has_masks),
        ("threads", lambda machine: np.log2(machine.threads)),
        ("is_cold", lambda machine: machine.is_cold),
    )
}
"""The columns of machines by kind: each kind has its own trees and rows."""
_OF_MACHINE = MACHINE_COLUMNS[TargetKind.CPU]

ROOFLINE_COLUMNS = ("roofline", "roofline_arithmetic", *(f"roofline_{level}" for level in LEVELS))
CONTEXT_COLUMNS = (
    "program_statements",
    "program_seconds",
    "program_flops",
    "most_flops",
    "share_seconds",
    "share_flops",
    "share_bytes",
    "statements_after",
)
ROW_NAMES: tuple[str, ...] = (
    *FEATURE_NAMES,
    *(name for name, _ in _OF_MACHINE),
    *ROOFLINE_COLUMNS,
    *CONTEXT_COLUMNS,
)
"""Logarithms to base 2, but flags; of the roofline's parts and of shares, at least -20."""

ROW_DIGEST = hashlib.sha256("\n".join(ROW_NAMES).encode()).hexdigest()[:16]
"""Of the names in order: trees that were trained on other rows are refused."""

_LEAST = np.float32(-20.0)
_SURE = np.float32(0.8)  # of the time at the peak: terms that are skipped may have been counted
_LOG2_CLOCK = np.float32(np.log2(NOMINAL.clock_hz))
_FLOPS = np.array([n for n, name in enumerate(FEATURE_NAMES) if name.startswith("float_")])
_BYTES = np.array([n for n, name in enumerate(FEATURE_NAMES) if name.endswith("_unique_bytes")])

_Matrix = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The statements of programs of equal numbers of statements.

    base    log2 of the seconds that the roofline gives each statement (programs, statements)
    floor   log2 of the seconds that it is never expected to fall short of (programs, statements)
    rows    what trees see (programs * statements, columns), the statements of a program in order
    """

    base: _Matrix
    floor: _Matrix
    rows: Features


def rows_of(features: Features, machine: Machine) -> Rows:
    """The rows of programs.  Shapes:  features (programs, statements, features)."""
    programs, statements, own = features.shape
    estimate = RooflineModel(machine).estimate(features)
    base = np.log2(estimate.cycles) - _LOG2_CLOCK
    rows = np.empty((programs, statements, len(ROW_NAMES)), np.float32)
    rows[..., :own] = features
    first = own + len(_OF_MACHINE)
    rows[..., own:first] = [of(machine) for _, of in _OF_MACHINE]
    for column, part in enumerate((*_roofline(base, estimate), *_context(base, features)), first):
        rows[..., column] = part
    with np.errstate(divide="ignore"):
        floor = np.log2(_SURE * estimate.peak) - _LOG2_CLOCK
    return Rows(base, floor, rows.reshape(programs * statements, -1))


def program_scores(base: _Matrix, tree_values: NDArray[np.floating], floor: _Matrix) -> _Scores:
    """log2 of the seconds of programs: the sums over their statements.

    Each statement takes at least the time of its multiply-adds at the machine's peak.

    Shapes:  base, floor (programs, statements), log2 of seconds; tree_values of as many ->
             (programs,)
    """
    return log2_sum(np.maximum(base + tree_values.reshape(base.shape), floor))


def log2_sum(terms: NDArray[np.floating]) -> _Scores:
    """log2 of the sums of 2^terms along the last axis."""
    exact = terms.astype(np.float64)
    total: _Scores = np.log2(np.exp2(exact).sum(axis=-1))
    return total


_Scores = NDArray[np.float64]


def _roofline(base: _Matrix, estimate: Estimate) -> tuple[_Matrix, ...]:
    """The statement's seconds, and its parts against them."""
    parts = (estimate.arithmetic, *estimate.memory)
    return (base, *(_log2_share(part, estimate.cycles) for part in parts))


def _context(base: _Matrix, features: Features) -> tuple[_Matrix, ...]:
    programs, statements = base.shape
    flops = _total(features, _FLOPS)
    nbytes = _total(features, _BYTES)
    seconds = log2_sum(base).astype(np.float32)[:, None]
    all_flops = flops.sum(axis=1, keepdims=True)
    after = np.log2(np.arange(statements, 0, -1, dtype=np.float32))
    return (
        np.full((programs, 1), np.log2(statements), np.float32),
        seconds,
        np.log2(all_flops + 1.0),
        np.log2(flops.max(axis=1, keepdims=True) + 1.0),
        np.maximum(base - seconds, _LEAST),
        _log2_share(flops, all_flops),
        _log2_share(nbytes, nbytes.sum(axis=1, keepdims=True)),
        after[None],
    )


def _total(features: Features, places: NDArray[np.int64]) -> _Matrix:
    """The sum of some features without their logarithms (programs, statements)."""
    plain = np.exp2(features[..., places])
    total: _Matrix = plain.sum(axis=-1) - np.float32(len(places))
    return np.maximum(total, 0.0)


def _log2_share(part: _Matrix, whole: _Matrix) -> _Matrix:
    least = np.float32(2.0) ** _LEAST
    shares: _Matrix = np.log2(np.maximum(part / np.maximum(whole, 1.0), least))
    return shares
