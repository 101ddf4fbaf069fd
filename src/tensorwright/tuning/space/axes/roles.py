"""What the axes of a computation are to each other: who reads along which, with what stride.

The tile rule needs to know, for the stage that is stored last and the reduction that feeds it,
along which axis vectors should lie, which axis shares the vector operand, and which axis carries
the rows that reuse it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from tensorwright.expr import (
    Axis,
    Compute,
    FloorDiv,
    Index,
    Load,
    Mod,
    Range,
    Var,
    free_vars,
    loads_of,
    simplify,
    substitute,
    terms_of,
)
from tensorwright.schedule import ScheduleState, Stage


def extent_of(extent: Index) -> int:
    """The extent of an axis of an unscheduled tensor, which is an int."""
    assert isinstance(extent, int), "unscheduled tensors have plain extents"
    return extent


def points(tensor: Compute) -> int:
    """How often the body of a tensor is evaluated."""
    return prod(extent_of(axis.extent) for axis in (*tensor.axes, *tensor.reduce_axes))


def stride_along(load: Load, var: Var) -> int | None:
    """How many elements apart reads are that differ by one in `var`; None if not constant."""
    stride = 0
    step = 1
    for index, extent in zip(reversed(load.indices), reversed(load.source.shape), strict=True):
        for monomial, coefficient in terms_of(index):
            if monomial == (var,):
                stride += coefficient * step
            elif var in free_vars(*monomial):
                return None
        step *= extent_of(extent)
    return stride


def reads_along(load: Load, var: Var) -> bool:
    """Whether the place of a read depends on a variable."""
    return var in free_vars(*load.indices)


@dataclass(frozen=True, slots=True)
class Operand:
    """A read of the reduction with its indices over the axes of the stored stage and the
    reduction.
    """

    load: Load
    is_constant: bool


def operands(state: ScheduleState, anchor: Stage, stored: Stage) -> tuple[Operand, ...]:
    """The reads of `anchor`, seen from the element of `stored` that they contribute to."""
    mapping: dict[Var, Index] = {}
    bounds = {a.var: Range.of_extent(a.extent) for a in stored.tensor.axes}
    bounds |= {a.var: Range.of_extent(a.extent) for a in anchor.tensor.reduce_axes}
    if anchor.name != stored.name:
        link = next(x for x in loads_of(stored.tensor.body) if x.source.name == anchor.name)
        mapping = dict(zip((a.var for a in anchor.tensor.axes), link.indices, strict=True))
    found: list[Operand] = []
    for load in loads_of(anchor.tensor.body):
        indices = tuple(simplify(substitute(i, mapping), bounds) for i in load.indices)
        found.append(Operand(Load(load.source, indices), load.source.name in state.constants))
    return tuple(found)


def group_size(load: Load, var: Var) -> int:
    """How many neighbours along a variable read the same: k in x[.. v // k ..]; 0 if unlike that.

    The output channels of a group of a convolution read the same inputs.
    """
    found: set[int] = set()
    for index in load.indices:
        for monomial, _ in terms_of(index):
            for atom in monomial:
                if var not in free_vars(atom):
                    continue
                if not isinstance(atom, FloorDiv) or atom.dividend != var:
                    return 0
                found.add(atom.divisor if isinstance(atom.divisor, int) else 0)
    return found.pop() if len(found) == 1 else 0


def common_group(found: Iterable[Operand], var: Var) -> int:
    """The group size of all operands that read in groups along a variable; 0 if they differ or
    there are none.
    """
    sizes = {group_size(operand.load, var) for operand in found} - {0}
    return sizes.pop() if len(sizes) == 1 else 0


def block_along(tensor: Compute, axis: Axis) -> int:
    """The block of a blocked layout that an axis runs through: b in x[.. k // b .. k % b]; 0 if
    none.
    """
    for load in loads_of(tensor.body):
        for index in load.indices:
            for monomial, _ in terms_of(index):
                for atom in monomial:
                    if isinstance(atom, Mod) and axis.var in free_vars(atom):
                        return atom.divisor if isinstance(atom.divisor, int) else 0
    return 0


def vector_within(group: int, width: int) -> int:
    """The widest vectors that fill a group exactly; `width` where nothing is grouped (0)."""
    if not group:
        return width
    return max(n for n in range(1, min(group, width) + 1) if group % n == 0)


def has_reuse(tensor: Compute) -> bool:
    """Whether some two operands each miss a spatial axis, as in a product of matrices: then tiling
    pays.  Within the groups of a grouped convolution it does as well.
    """
    axes = [axis.var for axis in tensor.axes if axis.extent != 1]
    missing = [
        frozenset(v for v in axes if not reads_along(load, v) or group_size(load, v) > 1)
        for load in loads_of(tensor.body)
    ]
    lacking = [m for m in missing if m]
    return any(a - b and b - a for a in lacking for b in lacking)
