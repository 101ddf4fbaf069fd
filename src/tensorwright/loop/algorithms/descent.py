"""Ways down decision trees: many pairs of a row and a tree at once, in lock step.

Each pair takes as many steps as the deepest leaf has above it: a leaf is its own child, and no
branch depends on data.  The steps of different pairs wait for different elements.
"""

from __future__ import annotations

from tensorwright.base import DType, TensorType
from tensorwright.expr import (
    Element,
    Fn,
    FromIndex,
    Index,
    apply,
    ceil_div,
    constant,
    maximum,
    minimum,
    select,
)
from tensorwright.loop.algorithms.writing import (
    allocate,
    at,
    local,
    loop,
    parallel,
    program,
    shape_of,
    vector,
)
from tensorwright.loop.ir import Buffer, LoopProgram, Stmt, Store, block

_LANES = 32  # pairs that go down together
_NUMBER = DType.I32
_DTYPES = frozenset((DType.F32, DType.F64))


def tree_leaves(types: tuple[TensorType, ...], *, depth: int) -> LoopProgram | None:
    """The program of `tree_leaves`; the number of rows may be open.

    None without elements, and for types that are not here.
    """
    x, _, _, _, roots = types
    (trees,), (rows, columns) = roots.extents, shape_of(x)
    if x.dtype not in _DTYPES or 0 in (rows, columns, trees):
        return None
    names = ("x", "features", "limits", "children", "roots")
    inputs = [
        Buffer(name, shape_of(kind), kind.dtype) for name, kind in zip(names, types, strict=True)
    ]
    source, features, limits, children, starts = inputs
    result = Buffer("leaves", (rows, trees), _NUMBER)
    node, row = local("node", _NUMBER, _LANES), local("row", _NUMBER, _LANES)
    pairs = rows * trees

    def of(buffer: Buffer, lane: Index, extent: Index) -> Index:
        return minimum(maximum(Element(buffer, (lane,)), 0), extent - 1)

    def descended(first: Index) -> Stmt:
        def pair(lane: Index) -> Index:
            return minimum(first * _LANES + lane, pairs - 1)

        def begun(lane: Index) -> Stmt:
            number = pair(lane)
            return block(
                Store(row, (lane,), FromIndex(number // trees, _NUMBER)),
                Store(node, (lane,), at(starts, number % trees)),
            )

        def step(lane: Index) -> Stmt:
            here = of(node, lane, features.shape[0])
            column = minimum(maximum(Element(features, (here,)), 0), columns - 1)
            read = at(source, Element(row, (lane,)), column)
            is_greater = apply(Fn.LT, at(limits, here), read)
            more = select(is_greater, constant(1, _NUMBER), constant(0, _NUMBER))
            return Store(node, (lane,), at(children, here) + more)

        def ended(lane: Index) -> Stmt:
            number = pair(lane)
            return Store(result, (number // trees, number % trees), at(node, lane))

        return allocate(
            (node, row),
            block(
                vector("s", _LANES, begun),
                loop("d", depth, lambda _: vector("l", _LANES, step)),
                vector("w", _LANES, ended),
            ),
        )

    body = parallel("p", ceil_div(pairs, _LANES), descended)
    return program("tree_leaves", inputs, (result,), body)
