"""Tensors whose named sizes are replaced, by numbers or by sizes of other bounds.

Split axes into digits so that divisions and moduli of them become affine.

Rewrite:  t[c] = f(c//8, c%8) for c in 0..32    ->    t'[c_0, c_1] = f(c_0, c_1)
The finer tensor has the same elements in the same order, so that t is t' with another shape.

Join neighbouring open axes that are always used together, so that one tile may span both.

Rewrite:  y[b, i, j] = sum over k of x[b, i, k] * w[k, j]    for b in 0..batch, i in 0..sequence
    ->    y[bi, j] = sum over k of x[bi, k] * w[k, j]    for bi in 0..batch*sequence
The joined tensors have the same elements in the same order in memory.  A reader that uses the two
axes otherwise reads them at b*sequence + i.

Where the extents are numbers, a search makes tiles that fit each of them, and nothing is joined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import prod
from typing import Any

from tensorwright.expr.index.nodes import (
    Condition,
    Element,
    ExactDiv,
    FloorDiv,
    Index,
    Max,
    Min,
    Mod,
    Poly,
    Var,
)
from tensorwright.expr.index.ranges import Bounds, Range
from tensorwright.expr.index.simplify import simplify, simplify_condition
from tensorwright.expr.index.sizes import NamedSize, named_sizes_of
from tensorwright.expr.index.traversal import (
    free_vars,
    map_condition,
    map_elements,
    substitute,
    substitute_condition,
)
from tensorwright.expr.tensor import (
    Axis,
    Compute,
    Placeholder,
    Reduction,
    Tensor,
    topological_order,
)
from tensorwright.expr.value import (
    Load,
    Value,
    children,
    indices_of,
    loads_of,
    rebuild,
    substitute_value,
)


def bind_tensors(outputs: Sequence[Compute], values: Mapping[Any, Index]) -> tuple[Compute, ...]:
    """The outputs with index expressions for symbols; tensors keep their names.

    Raises:  ExpressionError and ValueError for numbers with which an exact division has a rest.
    """
    if all(symbol is value for symbol, value in values.items()):
        return tuple(outputs)
    return map_indices(outputs, lambda given: substitute(given, values))


def map_indices(
    outputs: Sequence[Compute], change: Callable[[Index], Index]
) -> tuple[Compute, ...]:
    """The outputs with other index expressions; tensors keep their names.

    change   of an index or an extent; it leaves tensors that are used as indices as they are
    """
    bound: dict[Tensor, Tensor] = {}

    def index(given: Index) -> Index:
        return map_elements(change(given), element)

    def element(given: Element) -> Index:
        return Element(bound.get(given.source, given.source), given.indices)

    def condition(given: Condition) -> Condition:
        return map_condition(given, index)

    def load(given: Load) -> Value:
        return Load(bound[given.source], given.indices)

    def axes(given: Sequence[Axis]) -> tuple[Axis, ...]:
        return tuple(Axis(axis.var, change(axis.extent)) for axis in given)

    for tensor in topological_order(*outputs):
        bound[tensor] = _bound(tensor, index, axes, lambda v: rebuild(v, load, index, condition))
    return tuple(each for output in outputs if isinstance(each := bound[output], Compute))


def sizes_of_tensors(outputs: Sequence[Tensor]) -> tuple[NamedSize, ...]:
    """The named sizes in the extents and indices of tensors and of what they are computed from,
    by name.
    """
    sizes = set(named_sizes_of(*extents_of_tensors(outputs), *indices_of_tensors(outputs)))
    return tuple(sorted(sizes, key=lambda size: size.name))


def extents_of_tensors(outputs: Sequence[Tensor]) -> tuple[Index, ...]:
    """The extents of all axes of tensors and of what they are computed from, each once."""
    extents: dict[Index, None] = {}
    for tensor in topological_order(*outputs):
        extents.update(dict.fromkeys(tensor.shape))
        if isinstance(tensor, Compute):
            extents.update((axis.extent, None) for axis in tensor.reduce_axes)
    return tuple(extents)


def indices_of_tensors(outputs: Sequence[Tensor]) -> tuple[Index, ...]:
    """The indices in the bodies of tensors and of what they are computed from, each once."""
    indices: dict[Index, None] = {}
    seen: set[int] = set()  # of values, which tensors may share
    for tensor in topological_order(*outputs):
        pending: list[Value] = [tensor.body] if isinstance(tensor, Compute) else []
        while pending:
            value = pending.pop()
            if id(value) not in seen:
                seen.add(id(value))
                indices.update(dict.fromkeys(indices_of(value)))
                pending += children(value)
    return tuple(indices)


def _bound(
    tensor: Tensor,
    index: Callable[[Index], Index],
    axes: Callable[[Sequence[Axis]], tuple[Axis, ...]],
    value: Callable[[Value], Value],
) -> Tensor:
    if isinstance(tensor, Placeholder):
        return Placeholder(tensor.name, tuple(map(index, tensor.shape)), tensor.dtype)
    fold = tensor.reduction
    reduction = None if fold is None else Reduction(fold.combiner, axes(fold.axes))
    return Compute(tensor.name, axes(tensor.axes), value(tensor.body), reduction)


def refine_axes(tensor: Compute) -> Compute:
    """The tensor with every axis split at the divisors by which its body divides it.

    An axis stays whole where the divisors do not divide each other and the extent, and where it
    gives the position of an argmax.
    """
    divisors: dict[Var, set[int]] = {}
    _find_divisors(tensor.body, divisors, set())
    if not divisors:
        return tensor
    mapping: dict[Var, Index] = {}
    axes = _split_all(tensor.axes, divisors, mapping)
    reduction = tensor.reduction
    if reduction is not None and not reduction.combiner.is_arg:
        reduction = Reduction(reduction.combiner, _split_all(reduction.axes, divisors, mapping))
    every = axes + (reduction.axes if reduction is not None else ())
    bounds: Bounds = {axis.var: Range.of_extent(axis.extent) for axis in every}

    def on_index(index: Index) -> Index:
        return simplify(substitute(index, mapping), bounds)

    def on_condition(condition: Condition) -> Condition:
        return simplify_condition(substitute_condition(condition, mapping), bounds)

    body = rebuild(tensor.body, lambda load: load, on_index, on_condition)
    return replace(tensor, axes=axes, body=body, reduction=reduction)


def _split_all(
    axes: tuple[Axis, ...], divisors: dict[Var, set[int]], mapping: dict[Var, Index]
) -> tuple[Axis, ...]:
    finer: list[Axis] = []
    for axis in axes:
        digits = _digits(axis, divisors.get(axis.var, set()))
        if len(digits) > 1:
            number: Index = 0
            for digit in digits:
                number = number * digit.extent + digit.var
            mapping[axis.var] = number
        finer += digits
    return tuple(finer)


def _digits(axis: Axis, divisors: set[int]) -> list[Axis]:
    """The axis as a mixed-radix number, its highest digit first; or itself."""
    if not isinstance(axis.extent, int) or axis.extent == 0:
        return [axis]
    radices = [axis.extent, *sorted((d for d in divisors if d < axis.extent), reverse=True), 1]
    extents = []
    for large, small in pairwise(radices):
        if large % small:
            return [axis]
        extents.append(large // small)
    if len(extents) == 1:
        return [axis]
    return [Axis(Var(f"{axis.name}_{n}"), extent) for n, extent in enumerate(extents)]


def _find_divisors(value: Value, divisors: dict[Var, set[int]], seen: set[int]) -> None:
    if id(value) in seen:
        return
    seen.add(id(value))
    for index in indices_of(value):
        _index_divisors(index, divisors)
    for child in children(value):
        _find_divisors(child, divisors, seen)


def _index_divisors(index: Index, divisors: dict[Var, set[int]]) -> None:
    match index:
        case Poly(terms):
            for monomial, _ in terms:
                for atom in monomial:
                    _index_divisors(atom, divisors)
        case FloorDiv(Var() as var, int() as divisor) | Mod(Var() as var, int() as divisor):
            divisors.setdefault(var, set()).add(divisor)
        case Mod(FloorDiv(Var() as var, int() as low), int() as divisor):
            divisors.setdefault(var, set()).update((low, low * divisor))
        case FloorDiv(a, b) | Mod(a, b) | ExactDiv(a, b) | Min(a, b) | Max(a, b):
            _index_divisors(a, divisors)
            _index_divisors(b, divisors)
        case Element(_, indices):
            for part in indices:
                _index_divisors(part, divisors)
        case _:
            pass


_Pairs = dict[Tensor, frozenset[int]]  # n stands for the dimensions n and n + 1
_Read = tuple[Compute, tuple[Index, ...]]  # a reader, and the indices that it reads


def join_open_axes(outputs: Sequence[Compute]) -> tuple[Compute, ...]:
    """The outputs with joined axes; tensors keep their names and their memory."""
    order = topological_order(*outputs)
    pairs = _joinable(order)
    if not any(pairs.values()):
        return tuple(outputs)
    joined: dict[Tensor, Tensor] = {}
    for tensor in order:
        joined[tensor] = _joined(tensor, pairs, joined)
    return tuple(each for output in outputs if isinstance(each := joined[output], Compute))


def is_joined_shape(joined: Sequence[Index], shape: Sequence[Index]) -> bool:
    """Whether some extents are those of a shape, neighbours of which may be joined."""
    rest = list(shape)
    for extent in joined:
        while rest and rest[0] != extent and len(rest) > 1:
            rest[:2] = [rest[0] * rest[1]]
        if not rest or rest.pop(0) != extent:
            return False
    return not rest


def is_one_position(body: Value, outer: Axis, inner: Axis) -> bool:
    """Whether a value depends on two variables only by outer*extent + inner."""
    position = {inner.var: Var("position") - outer.var * inner.extent}
    return not _depends_on(substitute_value(body, position), outer.var)


def _joinable(order: Sequence[Tensor]) -> _Pairs:
    """The neighbouring open dimensions of each tensor that are joined: the most that can be."""
    reads: dict[Tensor, list[_Read]] = {tensor: [] for tensor in order}
    for reader in (tensor for tensor in order if isinstance(tensor, Compute)):
        for load in loads_of(reader.body):
            reads[load.source].append((reader, load.indices))
    pairs: _Pairs = {tensor: frozenset(_open_pairs(tensor)) for tensor in order}
    is_stable = not any(pairs.values())
    while not is_stable:
        is_stable = True
        for tensor in order:
            kept = frozenset(
                n for n in pairs[tensor] if _is_joinable(tensor, n, pairs, reads[tensor])
            )
            is_stable = is_stable and kept == pairs[tensor]
            pairs[tensor] = kept
    return pairs


def _open_pairs(tensor: Tensor) -> Iterator[int]:
    is_open = [bool(named_sizes_of(extent)) for extent in tensor.shape]
    return (n for n in range(len(is_open) - 1) if is_open[n] and is_open[n + 1])


def _is_joinable(tensor: Tensor, n: int, pairs: _Pairs, reads: Iterable[_Read]) -> bool:
    """Whether dimensions n and n + 1 can be joined, if others are as `pairs` says.

    Readers take them at two axes of their own.  A computed tensor does not tell them apart; and an
    input has a reader at least in which they are joined.
    """
    taken = [(reader, indices[n : n + 2]) for reader, indices in reads]
    if not all(set(_variables(reader)).issuperset(indices) for reader, indices in taken):
        return False
    if isinstance(tensor, Placeholder):
        return any(
            any(_variables(reader)[n : n + 2] == indices for n in pairs[reader])
            for reader, indices in taken
        )
    return is_one_position(_joined_body(tensor.body, pairs, {}), *tensor.axes[n : n + 2])


def _variables(tensor: Compute) -> tuple[Var, ...]:
    return tuple(axis.var for axis in tensor.axes)


def _depends_on(body: Value, variable: Var) -> bool:
    pending, seen = [body], {id(body)}
    while pending:
        value = pending.pop()
        if any(variable in free_vars(index) for index in indices_of(value)):
            return True
        unseen = [child for child in children(value) if id(child) not in seen]
        seen.update(map(id, unseen))
        pending += unseen
    return False


def _joined(tensor: Tensor, pairs: _Pairs, joined: Mapping[Tensor, Tensor]) -> Tensor:
    """The tensor with its dimensions, and its reads of others, joined."""
    runs = _runs(tensor, pairs)
    if isinstance(tensor, Placeholder):
        shape = tuple(prod(tensor.shape[run.start : run.stop], start=1) for run in runs)
        return replace(tensor, shape=shape)
    axes: list[Axis] = []
    position: dict[Var, Index] = {}
    for run in runs:
        parts = tensor.axes[run.start : run.stop]
        if len(parts) == 1:
            axes.append(parts[0])
            continue
        name = "".join(part.name for part in parts)
        whole = Axis(Var(name), prod((part.extent for part in parts), start=1))
        outer = _position([*(part.var for part in parts[:-1]), 0], [part.extent for part in parts])
        position[parts[-1].var] = whole.var - outer
        axes.append(whole)
    body = _joined_body(tensor.body, pairs, position, joined)
    return replace(tensor, axes=tuple(axes), body=body)


def _joined_body(
    body: Value,
    pairs: _Pairs,
    position: Mapping[Var, Index],
    joined: Mapping[Tensor, Tensor] | None = None,
) -> Value:
    """A body whose reads are joined, with `position` for variables.

    joined   what stands for each source; itself where None
    """

    def joined_load(source: Tensor, indices: Sequence[Index]) -> tuple[Tensor, tuple[Index, ...]]:
        positions = (
            _position(indices[run.start : run.stop], source.shape[run.start : run.stop])
            for run in _runs(source, pairs)
        )
        return source if joined is None else joined[source], tuple(positions)

    def on_index(index: Index) -> Index:
        return map_elements(substitute(index, position), on_element)

    def on_element(element: Element) -> Index:
        return Element(*joined_load(element.source, element.indices))

    def on_load(load: Load) -> Value:
        return Load(*joined_load(load.source, load.indices))

    def on_condition(condition: Condition) -> Condition:
        return map_condition(condition, on_index)

    return rebuild(body, on_load, on_index, on_condition)


def _runs(tensor: Tensor, pairs: _Pairs) -> list[range]:
    """The dimensions of a tensor, those together that are joined."""
    runs: list[range] = []
    for n in range(len(tensor.shape)):
        if n - 1 in pairs[tensor]:
            runs[-1] = range(runs[-1].start, n + 1)
        else:
            runs.append(range(n, n + 1))
    return runs


def _position(indices: Sequence[Index], extents: Sequence[Index]) -> Index:
    """Where an element lies among those of a box, in row-major order."""
    position: Index = 0
    for index, extent in zip(indices, extents, strict=True):
        position = position * extent + index
    return position
