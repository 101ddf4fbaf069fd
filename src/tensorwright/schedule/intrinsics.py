"""What hardware instructions mean, as tensor expressions: `tensorize` compares loops with them.

A back end has code for some of them by name; elsewhere the nest that an instruction stands for runs
as it is.  Adding one is a function that builds its meaning and an entry in `INTRINSICS`.

An operand whose stride along an axis is a named size has its elements anywhere along that axis:
each lies in a window of its own.
Source: the idea that an instruction's body is its meaning is Exo's (Ikarashi et al., PLDI 2022).
"""

from __future__ import annotations

from tensorwright.base import (
    BYTE_GROUPS,
    BYTE_PRODUCTS,
    BYTE_TERMS,
    BYTE_TILE,
    BYTE_TILES,
    ByteProduct,
    ByteTile,
    DType,
)
from tensorwright.expr import (
    Axis,
    Compute,
    Index,
    Load,
    Var,
    cast,
    compute,
    free_vars,
    loads_of,
    named_size,
    placeholder,
    reduce_axis,
    sum_over,
    terms_of,
)


def _dot4(product: ByteProduct) -> Compute:
    """total[q] += sum over m of data[m] * weights[q, m]: four products of bytes to each lane."""
    data = placeholder("data", (BYTE_TERMS,), product.data)
    weights = placeholder("weights", (product.lanes, BYTE_TERMS), DType.I8)
    m = reduce_axis("m", BYTE_TERMS)
    return compute(
        product.intrinsic,
        (product.lanes,),
        lambda q: sum_over(cast(data[m], DType.I32) * cast(weights[q, m], DType.I32), m),
    )


def _tile(product: ByteTile) -> Compute:
    """total[r, c] += sum over g, m of data[r, g, m] * weights[c, g, m]: two rows of two groups of
    four bytes, each group anywhere, by two columns.
    """
    row, group = named_size("row", BYTE_GROUPS), named_size("group", BYTE_TERMS)
    data = placeholder("data", (BYTE_TILE, row, group), product.data)
    weights = placeholder("weights", (BYTE_TILE, BYTE_GROUPS, BYTE_TERMS), DType.I8)
    g, m = reduce_axis("g", BYTE_GROUPS), reduce_axis("m", BYTE_TERMS)
    return compute(
        product.intrinsic,
        (BYTE_TILE, BYTE_TILE),
        lambda r, c: sum_over(
            cast(data[r, g, m], DType.I32) * cast(weights[c, g, m], DType.I32), g, m
        ),
    )


INTRINSICS: tuple[Compute, ...] = (*map(_dot4, BYTE_PRODUCTS), *map(_tile, BYTE_TILES))


def find_meaning(name: str) -> Compute | None:
    """The meaning of an intrinsic; None where there is none of that name."""
    return next((meaning for meaning in INTRINSICS if meaning.name == name), None)


def stride_along(load: Load, indices: tuple[Index, ...], var: Var) -> Index | None:
    """The distance of two reads that differ by one in `var`; None where it is not constant."""
    stride: Index = 0
    step: Index = 1
    for index, extent in zip(reversed(indices), reversed(load.source.shape), strict=True):
        for monomial, coefficient in terms_of(index):
            if monomial == (var,):
                stride = stride + step * coefficient
            elif var in free_vars(*monomial):
                return None
        step = step * extent
    return stride


def windows_apart(meaning: Compute) -> tuple[tuple[Axis, ...], ...]:
    """For the result and each operand, the axes along which each element has its own window."""
    axes = (*meaning.axes, *meaning.reduce_axes)
    result: tuple[Axis, ...] = ()
    return (
        result,
        *(
            tuple(
                axis
                for axis in axes
                if not isinstance(stride_along(load, load.indices, axis.var), int)
            )
            for load in loads_of(meaning.body)
        ),
    )
