"""What hardware instructions mean, as tensor expressions: `tensorize` compares loops with them.

A back end has code for some of them by name; elsewhere the nest that an instruction stands for runs
as it is.  Adding one is a function that builds its meaning and an entry in `INTRINSICS`.
Source: the idea that an instruction's body is its meaning is Exo's (Ikarashi et al., PLDI 2022).
"""

from __future__ import annotations

from tensorwright.base import DType
from tensorwright.expr import Compute, cast, compute, placeholder, reduce_axis, sum_over


def _dot4_u8i8_i32() -> Compute:
    """total[q] += sum over m of data[m] * weights[q, m]: four products of bytes to each lane."""
    data = placeholder("data", (4,), DType.U8)
    weights = placeholder("weights", (16, 4), DType.I8)
    m = reduce_axis("m", 4)
    return compute(
        "dot4_u8i8_i32",
        (16,),
        lambda q: sum_over(cast(data[m], DType.I32) * cast(weights[q, m], DType.I32), m),
    )


INTRINSICS: tuple[Compute, ...] = (_dot4_u8i8_i32(),)


def find_meaning(name: str) -> Compute | None:
    """The meaning of an intrinsic; None where there is none of that name."""
    return next((meaning for meaning in INTRINSICS if meaning.name == name), None)
