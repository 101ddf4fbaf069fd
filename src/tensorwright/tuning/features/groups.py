"""Groups of features by kind of machine: their columns, and what computes them.

Those of processors are 173 for each statement, whatever the operator: Ansor's 164, and what comes
from beyond registers and caches, and from other cores.  Those of graphics processors are Ansor's,
and what launches, threads and warps do.

Source:   Zheng et al., Ansor, OSDI 2020, section 5.2 and appendix B.

Features of a statement that are curves over its loops, from the fields of each level.

A table (5, levels, statements, n) holds the fields of `Level`, all loops first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tensorwright import base
from tensorwright.schedule import ForKind
from tensorwright.tuning.features import launches, operations
from tensorwright.tuning.features.access import ANNOTATIONS, annotation_features, gpu_features
from tensorwright.tuning.features.columns import (
    Cell,
    choose,
    divided,
    either,
    larger,
    product_of,
    same,
    total_of,
)
from tensorwright.tuning.features.formulas import Nest, ScalarFormula, Touching
from tensorwright.tuning.features.lanes import LANE_COLUMNS, LaneGroup


def intensity_curves(table: NDArray[np.float32]) -> NDArray[np.float32]:
    """log2 of operations per byte; at point k the inner loops run k tenths of the operations.

    Tenths are of the logarithm of all operations; between loops it is interpolated.

    Shapes:  table (5, levels, statements, n) -> (statements, 10, n)
    """
    logs = np.log2(table[:2, ::-1])
    at, height = logs[0], logs[0] - logs[1]
    steps = np.diff(at, axis=0)
    rises = np.diff(height, axis=0)
    flat = steps <= 0
    steps[flat] = 1
    rises[flat] = 0
    slopes = rises / steps
    shares = np.arange(1, operations.CURVE_POINTS + 1, dtype=np.float32) / operations.CURVE_POINTS
    wanted = at[-1][:, None] * shares[:, None]
    curves = np.repeat(height[0][:, None], operations.CURVE_POINTS, axis=1)
    inside = np.empty_like(curves)
    for start, step, slope in zip(at[:-1], steps, slopes, strict=True):
        np.subtract(wanted, start[:, None], out=inside)
        np.minimum(inside, step[:, None], out=inside)
        np.maximum(inside, 0, out=inside)
        inside *= slope[:, None]
        curves += inside
    return curves


def moved_beyond(table: NDArray[np.float32]) -> NDArray[np.float32]:
    """log2 of the loads and lines (plus one) from beyond registers, and from beyond each cache
    size.

    Data that inner loops touch stays from one of their runs to the next if there is room for it;
    then it moves once in each run of the loop around them.  So a strided access hits its line again
    if the loop beside it continues in that line before the line is evicted.

    Shapes:  table (5, levels, statements, n) -> (statements, 8, n)
    """
    _, nbytes, lines, loads, moved = table
    parts = [
        _moved(nbytes, loads, operations.REGISTER_BYTES),
        _moved(lines * base.LINE_BYTES, moved, operations.CACHE_BYTES),
    ]
    amounts = np.concatenate(parts, axis=1)
    return np.log2(amounts + 1, out=amounts)


def _moved(
    needed: NDArray[np.float32], moved: NDArray[np.float32], sizes: tuple[int, ...]
) -> NDArray[np.float32]:
    """The amounts that move (statements, sizes, n).

    needed   by the loops inside (levels, statements, n)
    moved    if there is no room for that
    """
    rooms = np.array(sizes, np.float32)[:, None]
    amounts = np.zeros((needed.shape[1], len(sizes), needed.shape[2]), np.float32)
    for own, own_moved in zip(needed, moved, strict=True):
        np.copyto(amounts, own_moved[:, None], where=own[:, None] > rooms)
    return amounts


@dataclass(frozen=True, slots=True)
class ScalarGroup:
    """Columns of one number each, log2(x + 1) of what a formula gives them by name."""

    columns: tuple[str, ...]
    of: ScalarFormula


@dataclass(frozen=True, slots=True)
class BufferGroup:
    """The fields of `buffers` buffers: the stored one first, then those with most bytes."""

    buffers: int

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of one buffer after the other."""
        return tuple(
            f"buffer{n}_{field}" for n in range(self.buffers) for field in operations.BUFFER_FIELDS
        )


@dataclass(frozen=True, slots=True)
class CurveGroup:
    """Columns that are a curve over the loops of a statement.

    of   Shapes:  table of levels (5, levels, statements, n) -> (statements, columns, n)
    """

    columns: tuple[str, ...]
    of: Callable[[NDArray[np.float32]], NDArray[np.float32]]


FeatureGroup: TypeAlias = ScalarGroup | BufferGroup | CurveGroup | LaneGroup


@dataclass(frozen=True, slots=True)
class TargetGroup:
    """Columns that depend on the target, too: `on` gives their group for one."""

    columns: tuple[str, ...]
    on: Callable[[Any], FeatureGroup]


def operation_features(nest: Nest, touching: Touching) -> dict[str, Cell]:
    """Operations of all executions, including those that compute addresses.

    Every loop that moves an access adds a multiple to its address. A loop that moves several
    dimensions has been fused and takes a division for each beyond the first, once for all
    iterations of the loops inside it.
    """
    counts = dict(nest.operations.counts)
    steps = [flag for use in nest.uses for flag in use.moves]
    digits = [
        divided(larger(moved - 1, 0), inside)
        for use in nest.uses
        for moved, inside in zip(use.dimensions_moved, nest.loops.inside[1:], strict=True)
        if not isinstance(moved, int) or moved > 1
    ]
    counts["int_mad"] = counts.get("int_mad", 0) + total_of(steps)
    counts["int_divmod"] = counts.get("int_divmod", 0) + total_of(digits)
    runs = nest.loops.inside[0]
    return {name: count * runs for name, count in counts.items()}


def _annotations(nest: Nest, touching: Touching) -> Mapping[str, Cell]:
    """The annotations of the loops; the graph caches them for statements in equal loops."""
    remembered = nest.variables.graph.uses
    key = nest.kinds.kinds, nest.kinds.extents, nest.kinds.spatial, nest.kinds.folds
    if key not in remembered:
        remembered[key] = annotation_features(nest.kinds)
    cells: Mapping[str, Cell] = remembered[key]
    return cells


def _allocation(nest: Nest, touching: Touching) -> dict[str, Cell]:
    buffer, depth = nest.statement.store.buffer, nest.depth
    size = buffer.dtype.size_bytes * product_of(nest.shape_of(buffer))
    outside = product_of(nest.loops.extents[:depth])
    return {
        "alloc_size": size,
        "alloc_prod": size * outside,
        "alloc_outer_prod": outside,
        "alloc_inner_prod": nest.loops.inside[depth],
    }


def _loops(nest: Nest, touching: Touching) -> dict[str, Cell]:
    return {
        "outer_prod": nest.loops.inside[0],
        "num_loops": total_of(nest.kinds.present),
        "auto_unroll_max_step": _straight_line(nest),
    }


def _straight_line(nest: Nest) -> Cell:
    """The copies of the statement in the body of the innermost loop that is not unrolled."""
    length: Cell = 1
    for kind, extent, present in zip(
        nest.kinds.kinds, nest.loops.extents, nest.kinds.present, strict=True
    ):
        if kind is ForKind.UNROLLED:
            length = length * extent
        elif kind is not ForKind.VECTOR:
            length = choose(present, 1, length)
    return length


_SHARED = frozenset((ForKind.PARALLEL,))  # loops whose iterations threads share out


def _lines_of_other_threads(nest: Nest, touching: Touching) -> dict[str, Cell]:
    """Lines that another statement touches, too, with its iterations divided in another way."""
    lines: Cell = 0
    for use in nest.uses:
        is_moved: Cell = 0
        outermost = len(nest.loops)
        for other in touching[use.buffer]:
            shared = nest.statement.shared_loops(other.statement)
            if other is not nest and ForKind.PARALLEL not in nest.kinds.kinds[:shared]:
                is_same = same(nest.iterations(_SHARED), other.iterations(_SHARED))
                is_moved = either(is_moved, 1 - is_same)
                outermost = min(outermost, shared)
        runs = product_of(nest.loops.extents[:outermost])
        lines = lines + is_moved * runs * use.lines_of(outermost)
    return {"lines_of_other_threads": lines}


def _with(prefixes: tuple[str, ...], names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{prefix}_{name}" for prefix in prefixes for name in names)


_EVERYWHERE: tuple[FeatureGroup, ...] = (
    ScalarGroup(
        (*_with(("float", "int"), operations.OPERATION_CLASSES), "bool_op", "select_op"),
        operation_features,
    ),
    ScalarGroup(_with(tuple(ANNOTATIONS), operations.ANNOTATION_FIELDS), _annotations),
    ScalarGroup(
        ("is_gpu", *(f"{kind}_len" for kind in operations.GPU_KINDS)),
        lambda nest, touching: gpu_features(nest.kinds),
    ),
    BufferGroup(operations.BUFFERS),
    CurveGroup(tuple(f"intensity_{n}" for n in range(operations.CURVE_POINTS)), intensity_curves),
    ScalarGroup(("alloc_size", "alloc_prod", "alloc_outer_prod", "alloc_inner_prod"), _allocation),
    ScalarGroup(("outer_prod", "num_loops", "auto_unroll_max_step"), _loops),
)


def _of_launches(
    columns: tuple[str, ...], features: Callable[..., Mapping[str, Cell]]
) -> TargetGroup:
    return TargetGroup(columns, lambda target: ScalarGroup(columns, partial(features, target)))


FEATURE_GROUPS: base.ByKind[FeatureGroup | TargetGroup] = {
    base.TargetKind.CPU: (
        *_EVERYWHERE,
        ScalarGroup(("lines_of_other_threads",), _lines_of_other_threads),
        CurveGroup(
            (
                *(f"loads_beyond_{nbytes}" for nbytes in operations.REGISTER_BYTES),
                *(f"lines_beyond_{nbytes}" for nbytes in operations.CACHE_BYTES),
            ),
            moved_beyond,
        ),
    ),
    base.TargetKind.GPU: (
        *_EVERYWHERE,
        _of_launches(launches.LAUNCH_COLUMNS, launches.launch_features),
        _of_launches(launches.THREAD_COLUMNS, launches.thread_features),
        TargetGroup(LANE_COLUMNS, LaneGroup),
    ),
}
"""The groups of a statement's columns, in order.  Counts are log2(x + 1), flags 0 or 1, the
intensities log2 of operations per byte."""


def names_of(kind: base.TargetKind) -> tuple[str, ...]:
    """The columns of a kind of machine, in order."""
    return tuple(name for group in FEATURE_GROUPS[kind] for name in group.columns)


def groups_of(target: base.Target) -> tuple[FeatureGroup, ...]:
    """The groups of a target.  Raises: MachineError if its kind has none."""
    return _on(base.of_kind(FEATURE_GROUPS, target, "features"), target)


@lru_cache(maxsize=8)
def _on(
    groups: tuple[FeatureGroup | TargetGroup, ...], target: base.Target
) -> tuple[FeatureGroup, ...]:
    """The groups for one target: equal ones are the same objects."""
    return tuple(each.on(target) if isinstance(each, TargetGroup) else each for each in groups)


CPU_GROUPS = tuple(
    each for each in FEATURE_GROUPS[base.TargetKind.CPU] if not isinstance(each, TargetGroup)
)
FEATURE_NAMES = names_of(base.TargetKind.CPU)
"""Of processors."""
GPU_FEATURE_NAMES = names_of(base.TargetKind.GPU)
"""Of graphics processors."""


@lru_cache(maxsize=8)
def columns_of(groups: tuple[FeatureGroup, ...]) -> Mapping[str, int]:
    """The number of each column."""
    return {name: n for n, name in enumerate(name for each in groups for name in each.columns)}
