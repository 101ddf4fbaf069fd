"""Updates at positions from the data: a copy of x, then the updates in row-major order.

Each thread has slices along a dimension that the positions do not index, so no two threads reach
one element. The updates of an element keep their order, whatever the number of threads.

Short ways to write loop nests.

Ways down decision trees: many pairs of a row and a tree at once, in lock step.

Each pair takes as many steps as the deepest leaf has above it: a leaf is its own child, and no
branch depends on data.  The steps of different pairs wait for different elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, cast

from tensorwright import expr
from tensorwright.base import DType, Role, TensorType
from tensorwright.loop import ir
from tensorwright.loop.passes import verify
from tensorwright.schedule import ForKind, Scope


def loop(
    name: str,
    extent: expr.Index,
    body: Callable[[expr.Index], ir.Stmt],
    kind: ForKind = ForKind.SERIAL,
) -> ir.Stmt:
    """The body for 0 .. extent - 1; names of loops that are nested differ."""
    var = expr.Var(name)
    return ir.For(var, extent, kind, body(var))


def vector(name: str, extent: expr.Index, body: Callable[[expr.Index], ir.Stmt]) -> ir.Stmt:
    """A loop in lock step."""
    return loop(name, extent, body, ForKind.VECTOR)


def parallel(name: str, extent: expr.Index, body: Callable[[expr.Index], ir.Stmt]) -> ir.Stmt:
    """A loop whose iterations may run at the same time."""
    return loop(name, extent, body, ForKind.PARALLEL)


def local(name: str, dtype: DType, *shape: int) -> ir.Buffer:
    """A buffer of one iteration of the loops around it."""
    return ir.Buffer(name, shape, dtype, Scope.LOCAL)


def allocate(buffers: Sequence[ir.Buffer], body: ir.Stmt) -> ir.Stmt:
    """The body with buffers of its own."""
    for buffer in reversed(buffers):
        body = ir.Allocate(buffer, body)
    return body


def at(buffer: ir.Buffer, *indices: expr.Index) -> expr.Load:
    """An element of a buffer."""
    return expr.Load(buffer, indices)


def program(
    name: str, inputs: Sequence[ir.Buffer], outputs: Sequence[ir.Buffer], body: ir.Stmt
) -> ir.LoopProgram:
    """A whole program, checked."""
    parameters = [ir.Parameter(buffer, Role.INPUT) for buffer in inputs]
    parameters += [ir.Parameter(buffer, Role.OUTPUT) for buffer in outputs]
    return verify(ir.LoopProgram(name, tuple(parameters), body))


def shape_of(kind: TensorType) -> tuple[expr.Index, ...]:
    """The shape of a tensor as indices of its loops."""
    return cast(tuple[expr.Index, ...], kind.shape)


_DESCENT_LANES = 32  # pairs that go down together
_NUMBER = DType.I32
_FLOATS = frozenset((DType.F32, DType.F64))


def tree_leaves(types: tuple[TensorType, ...], *, depth: int) -> ir.LoopProgram | None:
    """The program of `tree_leaves`; the number of rows may be open.

    None without elements, and for types that are not here.
    """
    x, _, _, _, roots = types
    (trees,), (rows, columns) = roots.extents, shape_of(x)
    if x.dtype not in _FLOATS or 0 in (rows, columns, trees):
        return None
    names = ("x", "features", "limits", "children", "roots")
    inputs = [
        ir.Buffer(name, shape_of(kind), kind.dtype) for name, kind in zip(names, types, strict=True)
    ]
    source, features, limits, children, starts = inputs
    result = ir.Buffer("leaves", (rows, trees), _NUMBER)
    node, row = local("node", _NUMBER, _DESCENT_LANES), local("row", _NUMBER, _DESCENT_LANES)
    pairs = rows * trees

    def of(buffer: ir.Buffer, lane: expr.Index, extent: expr.Index) -> expr.Index:
        return expr.minimum(expr.maximum(expr.Element(buffer, (lane,)), 0), extent - 1)

    def descended(first: expr.Index) -> ir.Stmt:
        def pair(lane: expr.Index) -> expr.Index:
            return expr.minimum(first * _DESCENT_LANES + lane, pairs - 1)

        def begun(lane: expr.Index) -> ir.Stmt:
            number = pair(lane)
            return ir.block(
                ir.Store(row, (lane,), expr.FromIndex(number // trees, _NUMBER)),
                ir.Store(node, (lane,), at(starts, number % trees)),
            )

        def step(lane: expr.Index) -> ir.Stmt:
            here = of(node, lane, features.shape[0])
            column = expr.minimum(expr.maximum(expr.Element(features, (here,)), 0), columns - 1)
            read = at(source, expr.Element(row, (lane,)), column)
            is_greater = expr.apply(expr.Fn.LT, at(limits, here), read)
            more = expr.select(is_greater, expr.constant(1, _NUMBER), expr.constant(0, _NUMBER))
            return ir.Store(node, (lane,), at(children, here) + more)

        def ended(lane: expr.Index) -> ir.Stmt:
            number = pair(lane)
            return ir.Store(result, (number // trees, number % trees), at(node, lane))

        return allocate(
            (node, row),
            ir.block(
                vector("s", _DESCENT_LANES, begun),
                loop("d", depth, lambda _: vector("l", _DESCENT_LANES, step)),
                vector("w", _DESCENT_LANES, ended),
            ),
        )

    body = parallel("p", expr.ceil_div(pairs, _DESCENT_LANES), descended)
    return program("tree_leaves", inputs, (result,), body)


_FOLDS = {"add": expr.Fn.ADD, "mul": expr.Fn.MUL, "max": expr.Fn.MAX, "min": expr.Fn.MIN}
_SHARED = "shared"  # the result is the memory of x
_LINE = 64  # elements of a row that a thread takes at least: more passes over rows take longer
_MOST_SLICES = 16  # that a dimension of a known extent is shared out in
_PIECE = 512  # elements that a thread copies at a time
_LANES = 8  # of the last piece of a row, where its extent is open


def scatter_elements(
    types: tuple[TensorType, ...], *, axis: int, reduction: str, line: int = _LINE
) -> ir.LoopProgram | None:
    """The program of `scatter_elements`, each tensor as one dimension; all extents may be open.

    line   how many elements of a row a thread takes at least
    None without elements, and for a type that does not have the reduction.
    """
    if not _is_here(types, reduction):
        return None
    shape, asked = shape_of(types[0]), shape_of(types[1])
    axis %= len(shape)
    dims = range(len(shape))
    shared = next((d for d in dims if d != axis and asked[d] != 1), axis)
    whole = 1 if shared == axis else asked[shared]
    width = _width(whole, line if shared > axis else 1)
    source, indices, updates, result = _flat(types)

    def update(position: Mapping[int, expr.Index]) -> ir.Stmt:
        read = _dot(position, asked)
        row = expr.mod(expr.Element(indices, (read,)), shape[axis])
        into = _dot({**position, axis: row}, shape)
        return _joined(reduction, result, into, at(updates, read))

    def nest(
        position: Mapping[int, expr.Index], rest: Sequence[int], slice_: expr.Index
    ) -> ir.Stmt:
        if not rest:
            return update(position)
        dim, *inner = rest
        if dim != shared or dim == axis:
            extent = asked[dim]
            return loop(f"i{dim}", extent, lambda i: nest({**position, dim: i}, inner, slice_))

        def part(i: expr.Index) -> ir.Stmt:
            here = slice_ * width + i
            body = nest({**position, dim: here}, inner, slice_)
            return body if isinstance(whole, int) else ir.If(here < whole, body)

        return loop(f"i{dim}", width, part)

    updated = parallel("s", expr.ceil_div(whole, width), lambda s: nest({}, dims, s))
    updated = _if_any(shape[axis : axis + 1], updated)
    body = ir.block(_copied(source, result, reduction), updated)
    return program("scatter_elements", (source, indices, updates), (result,), body)


def scatter_nd(
    types: tuple[TensorType, ...], *, reduction: str, line: int = _LINE
) -> ir.LoopProgram | None:
    """The program of `scatter_nd`, each tensor as one dimension; all extents may be open.

    line   how many elements of a row a thread takes at least
    None without elements, and for a type that does not have the reduction.
    """
    if not _is_here(types, reduction):
        return None
    shape, asked = shape_of(types[0]), shape_of(types[1])
    count = types[1].shape[-1]
    assert isinstance(count, int)
    rows, row = math.prod(asked[:-1]), math.prod(shape[count:])
    source, indices, updates, result = _flat(types)

    def update(number: expr.Index) -> _Body:
        position = {
            d: expr.mod(expr.Element(indices, (number * count + d,)), shape[d])
            for d in range(count)
        }
        into, read = _dot(position, shape[:count]) * row, number * row
        return lambda e: _joined(reduction, result, into + e, at(updates, read + e))

    updated = _shared_out(
        row, _width(row, line), lambda part: loop("r", rows, lambda r: part(update(r)))
    )
    body = ir.block(_copied(source, result, reduction), _if_any(shape[:count], updated))
    return program("scatter_nd", (source, indices, updates), (result,), body)


_Body: TypeAlias = Callable[[expr.Index], ir.Stmt]


def _is_here(types: tuple[TensorType, ...], reduction: str) -> bool:
    x, asked, _ = types
    fold = _FOLDS.get(reduction)
    return (fold is None or fold.takes(x.dtype)) and 0 not in (*x.shape, *asked.shape)


def _flat(types: tuple[TensorType, ...]) -> tuple[ir.Buffer, ir.Buffer, ir.Buffer, ir.Buffer]:
    """x, indices, updates and the result."""
    names = ("x", "indices", "updates", "result")
    kinds = (*types, types[0])
    x, indices, updates, result = (
        ir.Buffer(name, (math.prod(shape_of(kind)),), kind.dtype)
        for name, kind in zip(names, kinds, strict=True)
    )
    return x, indices, updates, result


def _width(extent: expr.Index, least: int) -> int:
    """The width of the slices into which a dimension is divided; a number has equal ones."""
    if not isinstance(extent, int):
        return least
    most = min(max(extent // least, 1), _MOST_SLICES)
    return extent // next(slices for slices in range(most, 0, -1) if extent % slices == 0)


def _shared_out(
    extent: expr.Index, width: int, run: Callable[[Callable[[_Body], ir.Stmt]], ir.Stmt]
) -> ir.Stmt:
    """A loop over elements in pieces, which run at the same time, and one for the rest of them.

    run   what is done with a piece, from a function that makes the loop over its elements
    """
    whole, rest = expr.floor_div(extent, width), expr.mod(extent, width)

    def piece(start: expr.Index, lanes: int, body: _Body) -> ir.Stmt:
        return vector("e", lanes, lambda e: body(start + e))

    def last(body: _Body) -> ir.Stmt:
        if isinstance(rest, int):
            return piece(extent - rest, rest, body)
        vectors, start = expr.floor_div(rest, _LANES), whole * width
        return ir.block(
            loop("v", vectors, lambda v: piece(start + v * _LANES, _LANES, body)),
            loop("n", expr.mod(rest, _LANES), lambda n: body(start + vectors * _LANES + n)),
        )

    parts = []
    if whole != 0:
        parts.append(
            parallel("p", whole, lambda p: run(lambda body: piece(p * width, width, body)))
        )
    if rest != 0:
        parts.append(run(last))
    return ir.block(*parts)


def _if_any(extents: Sequence[expr.Index], updated: ir.Stmt) -> ir.Stmt:
    """No update where an open extent, by which positions are divided, is 0."""
    for extent in extents:
        if not isinstance(extent, int):
            updated = ir.If(extent >= 1, updated)
    return updated


def _dot(position: Mapping[int, expr.Index], shape: Sequence[expr.Index]) -> expr.Index:
    """The row-major number of an element."""
    number: expr.Index = 0
    for dim, extent in enumerate(shape):
        number = number * extent + position[dim]
    return number


def _joined(reduction: str, result: ir.Buffer, position: expr.Index, update: expr.Value) -> ir.Stmt:
    """Store an update, or fold it into its element."""
    fold = _FOLDS.get(reduction)
    value = update if fold is None else expr.apply(fold, at(result, position), update)
    return ir.Store(result, (position,), value)


def _copied(source: ir.Buffer, result: ir.Buffer, reduction: str) -> ir.Stmt:
    """All of x, in pieces; nothing if the result is its memory."""
    if reduction == _SHARED:
        return ir.block()
    (size,) = source.shape
    return _shared_out(
        size, _PIECE, lambda part: part(lambda c: ir.Store(result, (c,), at(source, c)))
    )
