"""How the operands of a computation move along its axes: strides, groups, blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from math import lcm, prod

from tensorwright import expr
from tensorwright.base import CpuTarget, DType
from tensorwright.schedule import Stage


def extent_of(extent: expr.Index) -> int:
    """The extent of an axis of an unscheduled tensor, which is an int."""
    assert isinstance(extent, int), "unscheduled tensors have plain extents"
    return extent


def count_of(axes: Iterable[expr.Axis]) -> int:
    """The number of elements of some axes together."""
    return prod(axis.length for axis in axes)


def points(tensor: expr.Compute) -> int:
    """How often the body of a tensor is evaluated."""
    return count_of((*tensor.axes, *tensor.reduce_axes))


def has_numbers(tensor: expr.Compute) -> bool:
    """Whether all extents of a tensor, and of what it folds, are numbers other than 0."""
    axes = (*tensor.axes, *tensor.reduce_axes)
    return all(isinstance(axis.extent, int) and axis.extent for axis in axes)


def loads_from(tensor: expr.Compute, source: str) -> list[expr.Load]:
    """The reads of one tensor in another."""
    return [load for load in expr.loads_of(tensor.body) if load.source.name == source]


def elements_of(tensor: expr.Tensor) -> int:
    """The number of elements of a tensor."""
    return prod(extent_of(extent) for extent in tensor.shape)


def bytes_of(tensor: expr.Tensor) -> int:
    """The size of a tensor in memory."""
    return elements_of(tensor) * tensor.dtype.size_bytes


def lanes_for(target: CpuTarget, stage: Stage) -> int:
    """The number of elements of the stage's widest operand in a vector."""
    sizes = [stage.tensor.dtype.size_bytes]
    sizes += [load.dtype.size_bytes for load in expr.loads_of(stage.tensor.body)]
    return max(1, target.vector_bytes // max(*sizes, 1)) if sizes else target.lanes(DType.F32)


@lru_cache(maxsize=1 << 12)
def stride_along(load: expr.Load, var: expr.Var, block: int = 0) -> int | None:
    """The distance in elements of reads that differ by one in `var`; None if not constant.

    block   if given: only neighbours inside a block of that many count, with the same var // block
    """
    same = (expr.FloorDiv(var, block),) if block else ()
    moving = ((var,), (expr.Mod(var, block),)) if block else ((var,),)
    stride = 0
    step = 1
    for index, extent in zip(reversed(load.indices), reversed(load.source.shape), strict=True):
        for monomial, coefficient in expr.terms_of(index):
            if monomial in moving:
                stride += coefficient * step
            elif var in expr.free_vars(*monomial) and monomial != same:
                return None
        step *= extent_of(extent)
    return stride


def dimension_last(rank: int, dimension: int) -> tuple[int, ...]:
    """The order of some dimensions with one of them last."""
    return (*(n for n in range(rank) if n != dimension), dimension)


def bytes_along(load: expr.Load, var: expr.Var) -> int:
    """The distance in memory of neighbours along a variable; 0 if it is not constant."""
    return abs(stride_along(load, var) or 0) * load.dtype.size_bytes


@lru_cache(maxsize=1 << 12)
def stride_of_run(load: expr.Load, axes: tuple[expr.Axis, ...]) -> int | None:
    """The distance in elements of successive reads along adjacent axes; None if not constant.

    The last axis is the innermost. One step in the tensor that is read may be a step of quotients
    and remainders of an axis: a row of pixels that was an image, x[.. i // 64, i % 64].
    """
    run = expr.Var("run")
    inside = 1
    digits: dict[expr.Var, expr.Index] = {}
    for number, axis in reversed(tuple(enumerate(axes))):
        digit = expr.floor_div(run, inside)
        digits[axis.var] = expr.mod(digit, axis.length) if number else digit
        inside *= axis.length
    flat: expr.Index = 0
    for index, size in zip(load.indices, load.source.shape, strict=True):
        flat = flat * size + expr.substitute(index, digits)
    bounds = {run: expr.Range.of_extent(inside)}
    moving = [
        each
        for each in expr.terms_of(expr.simplify(flat, bounds))
        if run in expr.free_vars(*each[0])
    ]
    if all(monomial == (run,) for monomial, _ in moving):
        return sum(coefficient for _, coefficient in moving)
    return None


def stride_in_vector(load: expr.Load, axis: expr.Axis, width: int) -> int | None:
    """As `stride_along`, for neighbours in a vector inside a block of axis // block."""
    block = period_along([load], axis)
    return stride_along(load, axis.var, block if block % width == 0 else 0)


def reads_along(load: expr.Load, var: expr.Var) -> bool:
    """Whether the position of a read depends on a variable."""
    return var in expr.free_vars(*load.indices)


def reads_once(tensor: expr.Compute) -> bool:
    """Whether every element is read once: a fold along whole axes, not of windows."""
    axes = [a.var for a in (*tensor.axes, *tensor.reduce_axes) if a.extent != 1]
    return all(
        all(len(expr.free_vars(index)) <= 1 for index in load.indices)
        and all(reads_along(load, var) for var in axes)
        for load in expr.loads_of(tensor.body)
    )


def folds_in_order(tensor: expr.Compute, width: int) -> bool:
    """Whether a fold reads every element once, each vector adjacent to the last one."""
    loads = tuple(expr.loads_of(tensor.body))
    axes = [axis.var for axis in tensor.reduce_axes if axis.extent != 1]
    apart = [[stride_along(load, var) for load in loads] for var in axes]
    beside = any(all(s is not None and abs(s) <= width for s in strides) for strides in apart)
    return reads_once(tensor) and beside


def slides_along(loads: Iterable[expr.Load], tensor: expr.Compute, var: expr.Var) -> bool:
    """Whether some reads of a fold move a window of several taps along a variable."""
    taps = {axis.var for axis in tensor.reduce_axes if axis.extent != 1}
    indices = (index for load in loads for index in load.indices)
    return any(var in expr.free_vars(index) and taps & expr.free_vars(index) for index in indices)


@lru_cache(maxsize=1 << 12)
def group_size(load: expr.Load, var: expr.Var) -> int:
    """How many neighbours along a variable read the same: k in x[.. v // k ..]; 0 for others.

    The output channels of a group of a convolution read the same inputs.
    """
    atoms = [atom for atom in atoms_of(load.indices) if var in expr.free_vars(atom)]
    if not all(isinstance(atom, expr.FloorDiv) and atom.dividend == var for atom in atoms):
        return 0
    sizes = {_divisor(atom) for atom in atoms}
    return sizes.pop() if len(sizes) == 1 else 0


def period_along(loads: Iterable[expr.Load], axis: expr.Axis) -> int:
    """The period of an axis: b in x[.. axis // b ..] or x[.. axis % b ..]; 0 if none."""
    for atom in (atom for load in loads for atom in atoms_of(load.indices)):
        if isinstance(atom, expr.FloorDiv | expr.Mod) and atom.dividend == axis.var:
            period = _divisor(atom)
            if period and axis.length % period == 0:
                return period
    return 0


def atoms_of(indices: Iterable[expr.Index]) -> Iterator[expr.IndexExpr]:
    """The factors of the terms of some indices."""
    for index in indices:
        for monomial, _ in expr.terms_of(index):
            yield from monomial


def _divisor(atom: expr.IndexExpr) -> int:
    """The divisor of a quotient or a remainder, if it is a number; else 0."""
    divisor = atom.divisor if isinstance(atom, expr.FloorDiv | expr.Mod) else 0
    return divisor if isinstance(divisor, int) else 0


def repetition_along(loads: Iterable[expr.Load], var: expr.Var) -> int:
    """The neighbours after which the quotients and remainders of an axis repeat; 1 without any.

    This is the least common multiple of the divisors, also those inside minima and maxima.
    """
    divisors = (each for load in loads for i in load.indices for each in _divisors_along(i, var))
    return lcm(*divisors)


def _divisors_along(index: expr.Index, var: expr.Var) -> Iterator[int]:
    """The numbers by which an index divides a variable."""
    for atom in (atom for monomial, _ in expr.terms_of(index) for atom in monomial):
        match atom:
            case expr.FloorDiv(dividend, int(divisor)) | expr.Mod(dividend, int(divisor)):
                if var in expr.free_vars(dividend):
                    yield divisor
                    yield from _divisors_along(dividend, var)
            case expr.Min(left, right) | expr.Max(left, right):
                yield from _divisors_along(left, var)
                yield from _divisors_along(right, var)


def is_contiguous(tensor: expr.Compute, axis: expr.Axis) -> bool:
    """Whether every read along an axis is contiguous or the same, and one is contiguous."""
    if axis.extent in (0, 1):
        return False
    strides = [stride_along(load, axis.var) for load in expr.loads_of(tensor.body)]
    if None in strides:  # a run of several dimensions, x[.. i // 14, i % 14]
        strides = [stride_of_run(load, (axis,)) for load in expr.loads_of(tensor.body)]
    return 1 in strides and all(stride in (0, 1) for stride in strides)


def vector_within(group: int, width: int) -> int:
    """The widest vectors that fill a group exactly; `width` without groups (0)."""
    if not group:
        return width
    return max(n for n in range(1, min(group, width) + 1) if group % n == 0)


def has_reuse(tensor: expr.Compute) -> bool:
    """Whether two operands each miss a spatial axis, also within groups: then tiling pays."""
    axes = [axis.var for axis in tensor.axes if axis.extent != 1]
    missing = [
        frozenset(v for v in axes if not reads_along(load, v) or group_size(load, v) > 1)
        for load in expr.loads_of(tensor.body)
    ]
    lacking = [m for m in missing if m]
    return any(a - b and b - a for a in lacking for b in lacking)
