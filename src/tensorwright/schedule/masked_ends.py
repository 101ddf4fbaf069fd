"""Where loops over the positions of a mask may end, because none of the later ones counts.

    for rows i_o: for positions j in 0..n: C[i] += w[i, j]*v[j], where w[i, j] = 0 if j > i + past
        ->  for rows i_o: for positions j in 0..min(n, past + the last row of i_o + 1): ...

A stage *ends* at a bound if its elements and terms from there on do not count: terms of a sum that
are zero, terms of a maximum that are minus infinity, elements that only such terms read. What says
so is a condition `select(j <= i + past, x, -inf)` in the expressions of the stages.

Theorem:  exp(-inf - m) = 0 for a finite m, and 0*v = 0 for a finite v.  Masked positions count only
          if all positions of a row are masked, or if a value is not finite: then NaN is not seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, prod

from tensorwright import expr
from tensorwright.schedule.analysis import Analysis, enclosing_variables, highest_value
from tensorwright.schedule.memory_layout import ForKind
from tensorwright.schedule.primitive import is_inside
from tensorwright.schedule.state import ScheduleState, SplitRelation, Stage

_ZERO: expr.Index = 0
_NOTHING = {expr.Combiner.SUM: 0.0, expr.Combiner.MAX: -inf}


@dataclass(frozen=True, slots=True)
class _End:
    """Positions of a stage count up to `last`; both are expressions over its axes.

    var, scale   the axis along which an iteration covers so many positions
    """

    var: expr.Var
    scale: int
    position: expr.Index
    last: expr.Index


def ends_at_mask(
    state: ScheduleState, analysis: Analysis, host: str, loop: str
) -> dict[tuple[str, str], expr.Index]:
    """The extents of loops of stages inside a loop, as far as positions count; none if none ends.

    All loops end at the same position, a multiple of what an iteration of each covers: so each
    stage computes what its readers read.
    """
    inside = [s for s in reversed(state.stages) if is_inside(state, s.name, host, loop)]
    around = state.stage(host).loops[: state.stage(host).loops.index(loop) + 1]
    fixed = enclosing_variables(state, analysis.nests, host, loop)
    by_stage: dict[str, _End] = {}
    covered: dict[tuple[str, str], expr.Index] = {}
    bounds: set[expr.Index] = set()
    for stage in inside:
        end = _own_end(state, stage) or _end_of_readers(state, stage, by_stage)
        outermost = _outermost(stage, end.var) if end is not None else None
        if end is None or outermost is None or (stage.name == host and outermost[0] in around):
            continue
        last = expr.substitute(end.last, analysis.nests[stage.name].axis_values)
        highest = highest_value(state, analysis, last, fixed)
        if highest is None or not expr.is_nonnegative(highest, analysis.bounds):
            continue
        name, tile = outermost
        by_stage[stage.name] = end
        covered[stage.name, name] = end.scale * tile
        bounds.add(analysis.realise(highest))
    if len(bounds) != 1:
        return {}
    (highest,) = bounds
    unit = _common_multiple([*covered.values()])
    units = expr.floor_div(highest, unit) + 1
    return {at: units * expr.exact_div(unit, each) for at, each in covered.items()}


def _common_multiple(tiles: Sequence[expr.Index]) -> expr.Index:
    for tile in tiles:
        if all(expr.simplify(expr.mod(tile, other), {}) == 0 for other in tiles):
            return tile
    return prod(dict.fromkeys(tiles), start=1)


def _outermost(stage: Stage, axis: expr.Var) -> tuple[str, expr.Index] | None:
    """The serial loop whose iterations are tiles along an axis, and their length; None if none."""
    loop = axis.name
    tile: expr.Index = 1
    for relation in stage.relations:
        if isinstance(relation, SplitRelation) and relation.parent == loop:
            loop, tile = relation.children[0], tile * relation.tile
    is_plain = loop in stage.loops and stage.kind(loop) is ForKind.SERIAL
    return (loop, tile) if is_plain and loop not in stage.replaced_loops else None


def _own_end(state: ScheduleState, stage: Stage) -> _End | None:
    """The end of a reduction, by what its terms are."""
    reduction = stage.tensor.reduction
    if reduction is None or reduction.combiner not in _NOTHING:
        return None
    axes = (*stage.tensor.axes, *reduction.axes)
    extents = {axis.var: expr.Range.of_extent(axis.extent) for axis in axes}
    nothing = _NOTHING[reduction.combiner]
    for condition in _counts(state, stage.tensor.body, nothing):
        gap = expr.gap_of(condition) if isinstance(condition, expr.Compare) else None
        if gap is None:
            continue
        before = {
            m[0]: -c for m, c in expr.terms_of(gap) if len(m) == 1 and m[0] in extents and c < 0
        }
        position = sum((c * var for var, c in before.items()), start=_ZERO)
        for axis in reduction.axes:
            scale = before.get(axis.var, 0)
            rest = expr.substitute(position, {axis.var: 0})
            reach = expr.interval(rest, extents)
            last = expr.substitute(gap, dict.fromkeys(before, 0))
            is_covered = reach is not None and expr.is_nonnegative(scale - 1 - reach.high, {})
            if scale and is_covered and expr.free_vars(last):
                return _End(axis.var, scale, position, last)
    return None


def _counts(state: ScheduleState, value: expr.Value, nothing: float) -> Iterator[expr.Condition]:
    """Conditions without which a value is nothing: 0, or minus infinity."""
    match value:
        case expr.Select(condition, then, expr.Const(number)) if number == nothing:
            if not isinstance(condition, expr.ValueExpr):
                yield from expr.conjuncts(condition)
            yield from _counts(state, then, nothing)
        case expr.Select(_, then, otherwise):
            other = set(_counts(state, otherwise, nothing))
            yield from (each for each in _counts(state, then, nothing) if each in other)
        case expr.Load(source, indices) if state.has_stage(source.name):
            tensor = state.stage(source.name).tensor
            if tensor.reduction is None:
                places = dict(zip((a.var for a in tensor.axes), indices, strict=True))
                for condition in _counts(state, tensor.body, nothing):
                    yield expr.substitute_condition(condition, places)
        case expr.Apply(expr.Fn.MUL, (left, right)):
            parts = (left, right)
            if nothing and not any(_is_positive(part) for part in parts):
                return
            for part in parts:
                yield from _counts(state, part, nothing)
        case expr.Apply(expr.Fn.EXP, (power,)) if nothing == 0:
            yield from _counts(state, power, -inf)
        case expr.Apply(expr.Fn.ADD, (left, right)) if nothing:
            yield from _counts(state, left, nothing)
            yield from _counts(state, right, nothing)
        case expr.Apply(expr.Fn.SUB, (left, _)) if nothing:
            yield from _counts(state, left, nothing)
        case expr.Cast(operand, _) if value.dtype.is_float:
            yield from _counts(state, operand, nothing)


def _is_positive(value: expr.Value) -> bool:
    return isinstance(value, expr.Const) and value.value > 0


def _end_of_readers(
    state: ScheduleState, stage: Stage, by_stage: Mapping[str, _End]
) -> _End | None:
    """The end of a stage of which all readers read up to their own end."""
    if stage.name in state.outputs:
        return None
    ends: set[_End] = set()
    for reader in state.readers(stage.name):
        end = by_stage.get(reader.name)
        if end is None:
            return None
        for load in expr.loads_of(reader.tensor.body):
            if load.source.name == stage.name:
                read = _end_of_load(stage, end, load)
                if read is None:
                    return None
                ends.add(read)
    return ends.pop() if len(ends) == 1 else None


def _end_of_load(stage: Stage, end: _End, load: expr.Load) -> _End | None:
    """The end of a stage by a load of a reader that has one."""
    pairs = [*zip(load.indices, stage.tensor.axes, strict=True)]
    along = [axis.var for index, axis in pairs if index == end.position]
    rows = {index: axis.var for index, axis in pairs if isinstance(index, expr.Var)}
    if len(along) != 1 or not expr.free_vars(end.last) <= rows.keys():
        return None
    return _End(along[0], 1, along[0], expr.substitute(end.last, rows))
