"""Names of axes, and loads that several families share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tensorwright.expr import (
    Axis,
    Compute,
    Index,
    Load,
    Reduce,
    Tensor,
    Value,
    all_of,
    compute,
    constant,
    is_same,
    select,
)
from tensorwright.ops.named_sizes import is_certain

_BY_RANK = ("", "i", "ij", "bij", "nchw", "ncdhw")
SPATIAL = ((), ("w",), ("h", "w"), ("d", "h", "w"))


def axis_names(rank: int) -> tuple[str, ...]:
    """Names for the dimensions: i | i, j | b, i, j | n, c, h, w | n, c, d, h, w, by rank."""
    if rank < len(_BY_RANK):
        return tuple(_BY_RANK[rank])
    return tuple(f"i{n}" for n in range(rank))


def spatial_names(count: int) -> tuple[str, ...]:
    """Names for `count` spatial dimensions: w | h, w | d, h, w."""
    return SPATIAL[count] if count < len(SPATIAL) else tuple(f"s{n}" for n in range(count))


def stretched_indices(
    own: Sequence[Index], indices: Sequence[Index], shape: Sequence[Index]
) -> tuple[Index, ...]:
    """The indices into a shape that broadcasts to another: 0 where an extent of 1 stretches."""
    skip = len(shape) - len(own)
    return tuple(
        0 if is_same(extent, 1) and not is_same(wanted, 1) else index
        for extent, wanted, index in zip(own, shape[skip:], indices[skip:], strict=True)
    )


def stretched(tensor: Tensor, indices: Sequence[Index], shape: Sequence[Index]) -> Load:
    """Read a tensor that broadcasts to `shape`."""
    return Load(tensor, stretched_indices(tensor.shape, indices, shape))


def pointwise(
    name: str,
    tensors: Sequence[Tensor],
    shape: tuple[Index, ...],
    rule: Callable[..., Value],
) -> Compute:
    """Apply a rule to the elements of tensors that broadcast to `shape`."""

    def body(*indices: Index) -> Value:
        return rule(*(stretched(tensor, indices, shape) for tensor in tensors))

    return compute(name, shape, body, axis_names(len(shape)))


def position_along(axis: Axis) -> Index:
    """The position along a reduced axis; 0 where its extent is 1, over which nothing is folded."""
    return 0 if is_same(axis.extent, 1) else axis.var


def fold_over(fold: Callable[..., Reduce], value: Value, axes: Sequence[Axis]) -> Value | Reduce:
    """Fold over those axes whose extent is not 1."""
    folded = tuple(axis for axis in axes if not is_same(axis.extent, 1))
    return fold(value, *folded) if folded else value


def padded(
    name: str,
    tensor: Tensor,
    begins: Sequence[Index],
    shape: Sequence[Index],
    names: Sequence[str],
    fill: float | int | bool = 0,
) -> Tensor:
    """The tensor inside a larger box of `shape`, moved by `begins`, with `fill` around it.

    Gives the tensor itself where nothing changes; negative begins crop.
    """
    own = tensor.shape
    if tuple(shape) == own and all(begin == 0 for begin in begins):
        return tensor

    def body(*indices: Index) -> Value:
        moved = tuple(index - begin for index, begin in zip(indices, begins, strict=True))
        inside = all_of(
            *(
                part
                for at, begin, extent, large in zip(indices, begins, own, shape, strict=True)
                for part in (
                    is_certain(begin <= 0) or at >= begin,
                    is_certain(begin + extent >= large) or at < begin + extent,
                )
            )
        )
        value: Value = Load(tensor, moved)
        return select(inside, value, constant(fill, tensor.dtype))

    return compute(name, tuple(shape), body, tuple(names))
