"""What hardware instructions mean, as tensor expressions: `tensorize` compares loops with them.

A back end has code for some of them by name; elsewhere the nest that an instruction stands for runs
as it is.  Adding one is a function that builds its meaning and an entry in `INTRINSICS`.

An operand whose stride along an axis is a named size has its elements anywhere along that axis:
each lies in a window of its own.
Source: the idea that an instruction's body is its meaning is Exo's (Ikarashi et al., PLDI 2022).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from tensorwright import base, expr
from tensorwright.schedule.analysis import Nest, analyse
from tensorwright.schedule.state import At, ScheduleState, Stage


@lru_cache(maxsize=1 << 10)
def _meaning_of(product: base.ShortProduct) -> expr.Compute:
    """sums[r, c] += sum over g, m of data[r, g, m] * weights[c, g, m], without r and g of one."""
    if product.is_matrix:
        return _meaning_of_matrices(product)
    terms, wide = product.terms, product.sums
    rows = (product.rows,) * (product.rows > 1)
    groups = (product.groups,) * (product.groups > 1)
    row, group = expr.named_size("row", product.groups), expr.named_size("group", terms)
    data = expr.placeholder("data", (*rows, row, group) if rows else (terms,), product.data)
    weights = expr.placeholder("weights", (product.columns, *groups, terms), product.weights)
    folded = [expr.reduce_axis("g", extent) for extent in groups] + [expr.reduce_axis("m", terms)]
    return expr.compute(
        product.intrinsic,
        (*rows, product.columns),
        lambda *at: expr.sum_over(
            expr.cast(data[(*at[:-1], *folded)], wide)
            * expr.cast(weights[(at[-1], *folded)], wide),
            *folded,
        ),
        names=("r",) * len(rows) + ("c",),
    )


def _meaning_of_matrices(product: base.ShortProduct) -> expr.Compute:
    """sums[r, c] += sum over g, m of data[r, g * terms + m] * weights[g, c, m]."""
    terms, wide = product.terms, product.sums
    data = expr.placeholder(
        "data", (product.rows, expr.named_size("row", product.run)), product.data
    )
    weights = expr.placeholder("weights", (product.groups, product.columns, terms), product.weights)
    g, m = expr.reduce_axis("g", product.groups), expr.reduce_axis("m", terms)
    return expr.compute(
        product.intrinsic,
        (product.rows, product.columns),
        lambda r, c: expr.sum_over(
            expr.cast(data[r, g * terms + m], wide) * expr.cast(weights[g, c, m], wide), g, m
        ),
        names=("r", "c"),
    )


INTRINSICS: tuple[expr.Compute, ...] = tuple(map(_meaning_of, base.SHORT_PRODUCTS))


def find_meaning(name: str) -> expr.Compute | None:
    """The meaning of an intrinsic; None where there is none of that name."""
    product = base.short_product(name)
    return None if product is None else _meaning_of(product)


def loops_of(meaning: expr.Compute) -> tuple[expr.Axis, ...]:
    """The axes of a meaning in the order of its loops: that of its weights is the innermost."""
    axes = (*meaning.axes, *meaning.reduce_axes)
    *_, weights = expr.loads_of(meaning.body)
    inner = [axis for index in weights.indices for axis in axes if axis.var is index]
    return (*(axis for axis in axes if axis not in inner), *inner)


def stride_along(
    load: expr.Load, indices: tuple[expr.Index, ...], var: expr.Var
) -> expr.Index | None:
    """The distance of two reads that differ by one in `var`; None where it is not constant."""
    stride: expr.Index = 0
    step: expr.Index = 1
    for index, extent in zip(reversed(indices), reversed(load.source.shape), strict=True):
        for monomial, coefficient in expr.terms_of(index):
            if monomial == (var,):
                stride = stride + step * coefficient
            elif var in expr.free_vars(*monomial):
                return None
        step = step * extent
    return stride


def windows_apart(meaning: expr.Compute) -> tuple[tuple[expr.Axis, ...], ...]:
    """For the result and each operand, the axes along which each element has its own window."""
    axes = (*meaning.axes, *meaning.reduce_axes)
    result: tuple[expr.Axis, ...] = ()
    return (
        result,
        *(
            tuple(
                axis
                for axis in axes
                if not isinstance(stride_along(load, load.indices, axis.var), int)
            )
            for load in expr.loads_of(meaning.body)
        ),
    )


def difference_of_loops(
    meaning: expr.Compute, state: ScheduleState, stage: Stage, loop: str
) -> str:
    """Why the loops of a stage from one inwards are not those of a meaning; "" where they are."""
    nest = analyse(state).nests[stage.name]
    inner = stage.loops[stage.loops.index(loop) :]
    wanted = loops_of(meaning)
    extents = tuple(nest.extents[each] for each in inner)
    if extents != tuple(axis.extent for axis in wanted):
        shape = " x ".join(str(axis.extent) for axis in wanted)
        return f"the loops run {' x '.join(map(str, extents))} times, the intrinsic {shape}"
    reducing = [each in stage.reduce_loops for each in inner]
    if reducing != [axis in meaning.reduce_axes for axis in wanted]:
        return "other loops carry the reduction than in the intrinsic"
    return ""


def difference_of_operands(
    meaning: expr.Compute, state: ScheduleState, stage: Stage, loop: str
) -> str:
    """Why a stage whose loops are those of a meaning is another fold; "" where it is the same."""
    nest = analyse(state).nests[stage.name]
    inner = stage.loops[stage.loops.index(loop) :]
    axes = (axis.var for axis in loops_of(meaning))
    loops = dict(zip(axes, (nest.variables[each] for each in inner), strict=True))
    return _Match(state, stage, nest, loops).difference(meaning)


@dataclass(frozen=True, slots=True)
class _Match:
    """A comparison of a stage with a meaning; `loops` maps the meaning's axes to loop variables."""

    state: ScheduleState
    stage: Stage
    nest: Nest
    loops: dict[expr.Var, expr.Var]

    def difference(self, meaning: expr.Compute) -> str:
        """As `difference_of_operands`."""
        tensor = self.stage.tensor
        if tensor.reduction is None or meaning.reduction is None:
            return f"{tensor.name} folds nothing"
        if tensor.reduction.combiner is not meaning.reduction.combiner:
            return f"{tensor.name} folds with {tensor.reduction.combiner.value}"
        result = expr.Load(tensor, tuple(axis.var for axis in tensor.axes))
        wanted = expr.Load(meaning, tuple(axis.var for axis in meaning.axes))
        stored = self._load(result, wanted) if len(meaning.axes) == 1 else self._tile(meaning)
        return stored or self._value(tensor.body, meaning.body)

    def _tile(self, meaning: expr.Compute) -> str:
        """Why the stage's own buffer does not consist of results of the meaning; "" if it does."""
        tensor = self.stage.tensor
        if not isinstance(self.stage.placement, At):
            return f"{tensor.name} is not computed inside another stage"
        inside = {self.loops[axis.var] for axis in meaning.axes}
        for condition in expr.conjuncts(self.nest.overhang):
            sides = (*expr.condition_sides(condition),)
            if expr.named_sizes_of(*sides) and inside & expr.free_vars(*sides):
                return f"a part of a tile is computed where {condition}"
        bounds = analyse(self.state).bounds
        local = [
            dict(expr.terms_of(expr.simplify(self.nest.axis_values[axis.var] - low, bounds)))
            for axis, low in zip(tensor.axes, self.nest.region.low, strict=True)
        ]
        for axis in meaning.axes:
            loop = self.loops[axis.var]
            along = [terms for terms in local if loop in expr.free_vars(*chain(*terms))]
            if len(along) != 1 or along[0].pop((loop,), 0) != 1:
                return f"{loop} is not the innermost loop along one axis of {tensor.name}"
            if any(step % axis.length for step in along[0].values()):
                return f"tiles along {loop} do not begin at multiples of {axis.length}"
        return ""

    def _value(self, mine: expr.Value, theirs: expr.Value) -> str:
        if isinstance(mine, expr.Load) and isinstance(theirs, expr.Load):
            return self._load(mine, theirs)
        same_kind = type(mine) is type(theirs) and mine.dtype is theirs.dtype
        same_function = getattr(mine, "fn", None) is getattr(theirs, "fn", None)
        if not same_kind or not same_function or not expr.children(mine):
            return f"{mine} is not {theirs}"
        pairs = zip(expr.children(mine), expr.children(theirs), strict=True)
        return next((text for a, b in pairs if (text := self._value(a, b))), "")

    def _load(self, mine: expr.Load, theirs: expr.Load) -> str:
        if mine.dtype is not theirs.dtype:
            return f"{mine.source.name} is {mine.dtype}, the intrinsic wants {theirs.dtype}"
        if (mine.source.name, self.stage.name) in self.state.packed:
            return ""
        values = self.nest.axis_values
        bounds = analyse(self.state).bounds
        indices = tuple(expr.simplify(expr.substitute(i, values), bounds) for i in mine.indices)
        for axis, loop in self.loops.items():
            stride, wanted = (
                stride_along(mine, indices, loop),
                stride_along(theirs, theirs.indices, axis),
            )
            is_free = stride is not None and not isinstance(wanted, int)
            if stride != wanted and not is_free:
                return f"{mine.source.name} has stride {stride} along {loop}, not {wanted}"
        return ""
