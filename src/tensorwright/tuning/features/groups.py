"""Groups of features by kind of machine: their columns, and what computes them.

Those of processors are 173 for each statement, whatever the operator: Ansor's 164, and what comes
from beyond registers and caches, and from other cores.  Those of graphics processors are Ansor's,
and what launches, threads and warps do.

Source:   Zheng et al., Ansor, OSDI 2020, section 5.2 and appendix B.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import ByKind, GpuTarget, Target, TargetKind, of_kind
from tensorwright.schedule import ForKind
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
from tensorwright.tuning.features.grid import (
    LANE_COLUMNS,
    LAUNCH_COLUMNS,
    THREAD_COLUMNS,
    LaneGroup,
    launch_features,
    thread_features,
)
from tensorwright.tuning.features.levels import intensity_curves, moved_beyond
from tensorwright.tuning.features.loop_annotations import (
    ANNOTATIONS,
    annotation_features,
    gpu_features,
)
from tensorwright.tuning.features.names import (
    ANNOTATION_FIELDS,
    BUFFER_FIELDS,
    BUFFERS,
    CACHE_BYTES,
    CURVE_POINTS,
    GPU_KINDS,
    OPERATION_CLASSES,
    REGISTER_BYTES,
)


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
        return tuple(f"buffer{n}_{field}" for n in range(self.buffers) for field in BUFFER_FIELDS)


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


def _lines_of_other_threads(nest: Nest, touching: Touching) -> dict[str, Cell]:
    """Lines that another statement touches, too, with its iterations divided in another way."""
    lines: Cell = 0
    for use in nest.uses:
        is_moved: Cell = 0
        outermost = len(nest.loops)
        for other in touching[use.buffer]:
            shared = nest.statement.shared_loops(other.statement)
            if other is not nest and ForKind.PARALLEL not in nest.kinds.kinds[:shared]:
                is_moved = either(is_moved, 1 - same(nest.jobs, other.jobs))
                outermost = min(outermost, shared)
        runs = product_of(nest.loops.extents[:outermost])
        lines = lines + is_moved * runs * use.lines_of(outermost)
    return {"lines_of_other_threads": lines}


def _with(prefixes: tuple[str, ...], names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{prefix}_{name}" for prefix in prefixes for name in names)


_EVERYWHERE: tuple[FeatureGroup, ...] = (
    ScalarGroup(
        (*_with(("float", "int"), OPERATION_CLASSES), "bool_op", "select_op"),
        operation_features,
    ),
    ScalarGroup(_with(tuple(ANNOTATIONS), ANNOTATION_FIELDS), _annotations),
    ScalarGroup(
        ("is_gpu", *(f"{kind}_len" for kind in GPU_KINDS)),
        lambda nest, touching: gpu_features(nest.kinds),
    ),
    BufferGroup(BUFFERS),
    CurveGroup(tuple(f"intensity_{n}" for n in range(CURVE_POINTS)), intensity_curves),
    ScalarGroup(("alloc_size", "alloc_prod", "alloc_outer_prod", "alloc_inner_prod"), _allocation),
    ScalarGroup(("outer_prod", "num_loops", "auto_unroll_max_step"), _loops),
)


def _launch_group(target: GpuTarget) -> ScalarGroup:
    return ScalarGroup(LAUNCH_COLUMNS, partial(launch_features, target))


def _thread_group(target: GpuTarget) -> ScalarGroup:
    return ScalarGroup(THREAD_COLUMNS, partial(thread_features, target))


FEATURE_GROUPS: ByKind[FeatureGroup | TargetGroup] = {
    TargetKind.CPU: (
        *_EVERYWHERE,
        ScalarGroup(("lines_of_other_threads",), _lines_of_other_threads),
        CurveGroup(
            (
                *(f"loads_beyond_{nbytes}" for nbytes in REGISTER_BYTES),
                *(f"lines_beyond_{nbytes}" for nbytes in CACHE_BYTES),
            ),
            moved_beyond,
        ),
    ),
    TargetKind.GPU: (
        *_EVERYWHERE,
        TargetGroup(LAUNCH_COLUMNS, _launch_group),
        TargetGroup(THREAD_COLUMNS, _thread_group),
        TargetGroup(LANE_COLUMNS, LaneGroup),
    ),
}
"""The groups of a statement's columns, in order.  Counts are log2(x + 1), flags 0 or 1, the
intensities log2 of operations per byte."""


def names_of(kind: TargetKind) -> tuple[str, ...]:
    """The columns of a kind of machine, in order."""
    return tuple(name for group in FEATURE_GROUPS[kind] for name in group.columns)


def groups_of(target: Target) -> tuple[FeatureGroup, ...]:
    """The groups of a target.  Raises: MachineError if its kind has none."""
    return _on(of_kind(FEATURE_GROUPS, target, "features"), target)


@lru_cache(maxsize=8)
def _on(groups: tuple[FeatureGroup | TargetGroup, ...], target: Target) -> tuple[FeatureGroup, ...]:
    """The groups for one target: equal ones are the same objects."""
    return tuple(each.on(target) if isinstance(each, TargetGroup) else each for each in groups)


CPU_GROUPS = tuple(
    each for each in FEATURE_GROUPS[TargetKind.CPU] if not isinstance(each, TargetGroup)
)
FEATURE_NAMES = names_of(TargetKind.CPU)
"""Of processors."""
GPU_FEATURE_NAMES = names_of(TargetKind.GPU)
"""Of graphics processors."""


@lru_cache(maxsize=8)
def columns_of(groups: tuple[FeatureGroup, ...]) -> Mapping[str, int]:
    """The number of each column."""
    return {name: n for n, name in enumerate(name for each in groups for name in each.columns)}
