"""One program for all values of a workload's sizes, of variants that are fast for some of them.

A trace that was chosen for typical sizes has tiles that fit them.  Its variants have smaller tiles
of open loops.  The program computes, from the sizes, what each variant that has whole tiles would
take, and runs the cheapest.

Source:  Zheng et al.: DietCode, MLSys 2022 (one schedule, tiles chosen at run time).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from tensorwright.base import ScheduleError, Target, cpu_target
from tensorwright.expr import (
    Compute,
    Condition,
    Index,
    NamedSize,
    Relation,
    all_of,
    any_of,
    bind_tensors,
    ceil_div,
    compare,
    exact_div,
    named_size,
    named_sizes_of,
    negate,
    sizes_of_tensors,
    substitute,
    terms_of,
    topological_order,
    with_sizes,
)
from tensorwright.loop import (
    If,
    LoopProgram,
    Namer,
    block,
    freshen,
    lower,
    run_passes,
    run_target_passes,
    with_symbols,
)
from tensorwright.schedule import (
    OpenTrace,
    PackConstant,
    Prefetch,
    PrefetchNext,
    Schedulable,
    ScheduleState,
    Trace,
    initial_state,
    open_trace,
    reads_again,
)

_HEIGHTS = (None, 8, 4, 1)
"""The greatest tiles of open loops: those of the trace, and smaller ones."""

_LONG = 8  # tiles of a loop: the rest of it is less than an eighth

_TILE_START = 2  # what a tile costs beside its rows, in rows: each reads the same operands again


@dataclass(frozen=True, slots=True)
class _Variant:
    """A program, when it may run, and what it takes: a number in units of one row."""

    program: LoopProgram
    holds: Condition
    cost: Index


def open_program(workload: Schedulable, trace: Trace, target: Target, name: str) -> LoopProgram:
    """The program of a workload with named sizes, by a trace of one of its instances.

    Raises:  ScheduleError where no variant of the trace holds for all sizes.
    """
    variants = _variants(workload, trace, target, name)
    conditions = [_is_cheapest(number, variants) for number in range(len(variants))]
    if True in conditions:
        return variants[conditions.index(True)].program
    first = variants[0].program
    namer = Namer(first)
    chosen = (
        If(condition, freshen(variant.program.body, namer))
        for condition, variant in zip(conditions, variants, strict=True)
        if condition is not False
    )
    return LoopProgram(name, first.parameters, block(*chosen))


def _variants(
    workload: Schedulable, trace: Trace, target: Target, name: str
) -> tuple[_Variant, ...]:
    """Variants, the last of which holds for all sizes; all have the same parameters."""
    rows = _Rows.of(workload)
    state = initial_state(rows.outputs, workload.constants)
    trace = _with_closed_packing(state, trace, target)
    variants: list[_Variant] = []
    seen: set[Trace] = set()
    for opened, narrowed in _opened(rows, state, trace, target):
        if opened.trace in seen:
            continue
        seen.add(opened.trace)
        variant = _variant(narrowed, rows, opened, target, name)
        if not variants or variant.program.parameters == variants[0].program.parameters:
            variants.append(variant)
        if variant.holds is True and _is_single(opened, state):
            break
    if not any(variant.holds is True for variant in variants):
        opened = open_trace(state, trace, _vector_bytes(target))
        variants = [_variant(state, rows, opened, target, name)]
    return tuple(variants)


@dataclass(frozen=True, slots=True)
class _Rows:
    """A workload whose joined rows are a size of their own, so that tiles of them can be whole.

    Rewrite:  for bi in 0..batch*sequence   ->   for bi in 0..rows, and batch is rows/sequence

    values   the atom of each size, in terms of the caller's sizes
    """

    outputs: tuple[Compute, ...]
    constants: frozenset[str]
    values: Mapping[str, Index]

    @classmethod
    def of(cls, workload: Schedulable) -> _Rows:
        """The first product of two sizes or more that is an extent becomes a size."""
        sizes = sizes_of_tensors(workload.outputs)
        values: dict[str, Index] = {size.name: size for size in sizes}
        factors = next(_products_of_sizes(workload.outputs), ())
        if not factors:
            return cls(workload.outputs, workload.constants, values)
        name = "_by_".join(factor.name for factor in factors)
        bounds = [factor.most for factor in factors]
        most = None if None in bounds else prod(bound or 0 for bound in bounds)
        rows = named_size(name, prod(factor.least for factor in factors), most)
        first, *others = factors
        values[name] = prod(factors, start=1)
        outputs = bind_tensors(workload.outputs, {first: exact_div(rows, prod(others, start=1))})
        return cls(outputs, workload.constants, values)


def _products_of_sizes(outputs: Sequence[Compute]) -> Iterator[tuple[NamedSize, ...]]:
    for tensor in topological_order(*outputs):
        for extent in tensor.shape:
            for monomial, _ in terms_of(extent):
                sizes = tuple(atom for atom in monomial if isinstance(atom, NamedSize))
                if len(set(sizes)) == len(sizes) > 1 and all(size.least for size in sizes):
                    yield sizes


def _with_closed_packing(state: ScheduleState, trace: Trace, target: Target) -> Trace:
    """The trace without packing of constants whose packed form would depend on sizes: one around
    whose reader loops of other stages are open.
    """
    if not any(isinstance(step, PackConstant) for step in trace):
        return trace
    program = lower(open_trace(state, trace, _vector_bytes(target)).state)
    is_open = {
        parameter.name
        for parameter in program.parameters
        if parameter.packing is not None and named_sizes_of(*parameter.buffer.shape)
    }
    packing = (PackConstant, Prefetch, PrefetchNext)
    return tuple(
        step for step in trace if not (isinstance(step, packing) and step.tensor in is_open)
    )


def _opened(
    workload: Schedulable, state: ScheduleState, trace: Trace, target: Target
) -> Iterator[tuple[OpenTrace, ScheduleState]]:
    """The trace with tiles of several heights, each for the sizes for which tiles are whole."""
    if not any(reads_again(stage.tensor) for stage in state.stages):
        yield open_trace(state, trace, _vector_bytes(target)), state
        return
    needs = open_trace(state, trace, _vector_bytes(target)).needs
    for height in _HEIGHTS:
        least = {size.name: min(height or number, number) for size, number in needs.items()}
        narrowed = _narrowed(workload, least)
        try:
            opened = open_trace(narrowed, trace, _vector_bytes(target), height)
        except ScheduleError:
            if height is None:
                raise
            continue
        yield opened, narrowed


def _narrowed(workload: Schedulable, least: Mapping[str, int]) -> ScheduleState:
    """The workload for sizes whose quotients are not less than some numbers."""
    atoms: dict[Any, Index] = {}
    for size in sizes_of_tensors(workload.outputs):
        if size.name in least:
            most = None if size.most is None else size.most * size.divisor
            narrow = named_size(size.name, least[size.name] * size.divisor, most, size.divisor)
            (atoms[size],) = named_sizes_of(narrow)
    return initial_state(bind_tensors(workload.outputs, atoms), workload.constants)


def _variant(
    state: ScheduleState, rows: _Rows, opened: OpenTrace, target: Target, name: str
) -> _Variant:
    """The variant of an opened trace; `state` is for the sizes for which the trace holds."""
    program = run_target_passes(run_passes(lower(opened.state, name)), target)
    least = {size.name: size.least for size in sizes_of_tensors(rows.outputs)}
    narrow = {size: rows.values[size.name] for size in _sizes(state)}
    limits = [
        compare(Relation.LE, size.least, value)
        for size, value in narrow.items()
        if size.least > least[size.name]
    ]
    tiles = [tile for tile in opened.tiles if tile.stage in state.outputs]
    cost = prod(
        (ceil_div(tile.extent, tile.tile) * (tile.tile + _TILE_START) for tile in tiles), start=1
    )
    return _Variant(with_symbols(program, narrow), all_of(*limits), substitute(cost, narrow))


def _sizes(state: ScheduleState) -> tuple[NamedSize, ...]:
    return sizes_of_tensors(tuple(stage.tensor for stage in state.stages))


def _is_single(opened: OpenTrace, state: ScheduleState) -> bool:
    """Whether no smaller tiles than those of the trace can be made, or none that matter: those of
    long loops waste little.
    """
    least = {size.name: size.least * size.divisor for size in _sizes(state)}
    tiles = [each for each in opened.tiles if each.stage in state.outputs]
    extents = [with_sizes(each.extent, least) for each in tiles]
    return all(
        each.tile == 1 or (isinstance(extent, int) and each.tile * _LONG <= extent)
        for each, extent in zip(tiles, extents, strict=True)
    )


def _is_cheapest(number: int, variants: Sequence[_Variant]) -> Condition:
    """When a variant holds and takes less than those before it, and no more than those after."""
    own = variants[number]
    parts = [own.holds]
    for position, other in enumerate(variants):
        if position != number:
            relation = Relation.LT if position < number else Relation.LE
            parts.append(any_of(negate(other.holds), compare(relation, own.cost, other.cost)))
    return all_of(*parts)


def _vector_bytes(target: Target) -> int:
    return cpu_target(target).vector_bytes
