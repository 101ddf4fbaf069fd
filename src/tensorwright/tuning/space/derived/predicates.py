"""The questions of the sketch generators about a stage, by name.

Source:  the conditions of Ansor's rules (Zheng et al., OSDI 2020, table 1).
"""

from __future__ import annotations

from collections.abc import Iterable

from tensorwright.expr import (
    Axis,
    Compute,
    Index,
    Load,
    Select,
    Value,
    Var,
    children,
    free_vars,
    loads_of,
)
from tensorwright.schedule import AtRoot, ComputeInline, ScheduleState, Stage, is_legal
from tensorwright.tuning.space.axes.accesses import count_of, is_contiguous, loads_from
from tensorwright.tuning.space.steps import is_cheap
from tensorwright.tuning.space.tile_limits import CPU_LIMITS

_LEAST_TERMS = 32  # a shorter reduction is not worth a stage of partial results


def is_strict_inlinable(state: ScheduleState, name: str) -> bool:
    """Whether a stage is always inlined into its readers.

    It is cheap, has no branch, and reads each operand at plain positions unless no reader folds; or
    it is read once, by a stage that folds nothing.
    """
    stage = state.stage(name)
    if not can_inline(state, name):
        return False
    readers = state.readers(name)
    folding = any(reader.tensor.reduction is not None for reader in readers)
    reads = [load for reader in readers for load in loads_from(reader.tensor, name)]
    if len(reads) == 1 and not folding:
        return True
    if not is_cheap(stage.tensor.body) or _has_branch(stage.tensor.body):
        return False
    return not folding or all(_is_plain(load) for load in loads_of(stage.tensor.body))


def can_inline(state: ScheduleState, name: str) -> bool:
    """Whether a stage may be inlined: it has readers, folds nothing, is not an output or index."""
    return bool(state.readers(name)) and is_legal(ComputeInline(name), state)


def _has_branch(value: Value) -> bool:
    return isinstance(value, Select) or any(_has_branch(child) for child in children(value))


def _is_plain(load: Load) -> bool:
    """Whether every index is a number or a variable, none twice."""
    variables = [index for index in load.indices if isinstance(index, Var)]
    plain = all(isinstance(index, (int, Var)) for index in load.indices)
    return plain and len(set(variables)) == len(variables)


def has_data_reuse(state: ScheduleState, name: str) -> bool:
    """Whether a fold reads some operand again for other elements: then tiles pay.

    Some operand does not depend on an axis of the stage.
    """
    tensor = state.stage(name).tensor
    axes = {axis.var for axis in tensor.axes if axis.extent != 1}
    return tensor.reduction is not None and any(
        axes - free_vars(*load.indices) for load in loads_of(tensor.body)
    )


def fusable_consumer(state: ScheduleState, name: str) -> Stage | None:
    """The only reader of a stage, if it folds nothing and its elements are the stage's, one to one.

    The axes may be in another order.
    """
    readers = state.readers(name)
    if name in state.outputs or len(readers) != 1:
        return None
    (reader,) = readers
    loads = {*loads_from(reader.tensor, name)}
    if reader.tensor.reduction is not None or len(loads) != 1:
        return None
    used: list[Index] = []
    (link,) = loads
    for index, axis in zip(link.indices, state.stage(name).tensor.axes, strict=True):
        if isinstance(index, Var):
            used.append(index)
        elif index != 0 or axis.extent != 1:
            return None
    wanted = [axis.var for axis in reader.tensor.axes if axis.extent != 1]
    extents = {axis.var: axis.extent for axis in reader.tensor.axes}
    own = dict(zip(link.indices, state.stage(name).tensor.axes, strict=True))
    is_same = all(own[v].extent == extents[v] for v in used if isinstance(v, Var))
    is_whole = len(set(used)) == len(used) and set(wanted) <= set(used)
    return reader if is_same and is_whole else None


def has_fusable_consumer(state: ScheduleState, name: str) -> bool:
    """Whether a stage can be computed in the tiles of its consumer."""
    return fusable_consumer(state, name) is not None


def has_more_reduction_parallelism(
    state: ScheduleState, name: str, iterations: int = CPU_LIMITS.iterations
) -> bool:
    """Whether a fold has few elements and many terms: then partial results pay.

    iterations   the number that keeps all threads busy
    """
    tensor = state.stage(name).tensor
    if tensor.reduction is None:
        return False
    elements = count_of(tensor.axes)
    terms = count_of(tensor.reduce_axes)
    return elements <= min(terms, iterations) and terms >= _LEAST_TERMS


def contiguous_axis(tensor: Compute, axes: Iterable[Axis]) -> Axis | None:
    """The last of some axes along which every read is contiguous or the same; or None."""
    return next((axis for axis in reversed(tuple(axes)) if is_contiguous(tensor, axis)), None)


def is_untouched(state: ScheduleState, stage: Stage) -> bool:
    """Whether no generator has scheduled a stage."""
    own = tuple(axis.name for axis in (*stage.tensor.axes, *stage.tensor.reduce_axes))
    is_host = any(
        not isinstance(each.placement, AtRoot) and each.placement.stage == stage.name
        for each in state.stages
    )
    return not (
        stage.relations
        or stage.marks
        or not isinstance(stage.placement, AtRoot)
        or is_host
        or stage.loops != own
    )
