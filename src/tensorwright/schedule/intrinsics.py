"""What hardware instructions mean, as tensor expressions: `tensorize` compares loops with them.

A back end has code for some of them by name; elsewhere the nest that an instruction stands for runs
as it is.  Adding one is a function that builds its meaning and an entry in `INTRINSICS`.
Source: the idea that an instruction's body is its meaning is Exo's (Ikarashi et al., PLDI 2022).
"""

from __future__ import annotations

from tensorwright.base import BYTE_PRODUCTS, BYTE_TERMS, ByteProduct, DType
from tensorwright.expr import Compute, cast, compute, placeholder, reduce_axis, sum_over


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


INTRINSICS: tuple[Compute, ...] = tuple(map(_dot4, BYTE_PRODUCTS))


def find_meaning(name: str) -> Compute | None:
    """The meaning of an intrinsic; None where there is none of that name."""
    return next((meaning for meaning in INTRINSICS if meaning.name == name), None)
