"""Reading at positions that another tensor holds.

gather_elements takes indices of the rank of x, gather_nd (..., count); one_hot takes indices and
values (2), which are off and on.  A look-up of an embedding is axis 0 of the table.

Negative positions count from the end.
"""

from __future__ import annotations

from collections.abc import Sequence

from tensorwright import expr
from tensorwright.base import Attributes, DType, TensorType
from tensorwright.ops import named_sizes, operator
from tensorwright.ops.shapes import axis_in, axis_names


def _require_source(types: operator.Types, axis: int) -> None:
    x, indices = types
    operator.require_dtype("indices", indices, operator.POSITIONS)
    if _may_be_read(named_sizes.sizes_of(x)[axis], named_sizes.sizes_of(indices)):
        return
    if named_sizes.is_equal(named_sizes.sizes_of(x)[axis], 0) and not named_sizes.is_empty(
        named_sizes.sizes_of(indices)
    ):
        own = named_sizes.shape_text(named_sizes.sizes_of(x))
        raise operator.fault(f"dimension {axis} of input x {own} is empty: nothing can be read")


def _may_be_read(extent: expr.Index, wanted: Sequence[expr.Index]) -> bool:
    """Whether there are no indices where there is nothing to read: n of them into n rows."""
    return any(named_sizes.is_certain(each <= extent) for each in wanted)


def require_inside(x: TensorType, indices: TensorType, axis: int) -> None:
    """Refuse indices that have more elements than x along a dimension other than the axis."""
    shape, wanted = named_sizes.sizes_of(x), named_sizes.sizes_of(indices)
    for at, (own, asked) in enumerate(zip(shape, wanted, strict=True)):
        if at != axis and named_sizes.decided(asked > own):
            inside, outside = map(named_sizes.shape_text, (shape, wanted))
            raise operator.fault(f"input indices {outside} reaches outside x {inside}")


def _infer_gather(types: operator.Types, attributes: Attributes) -> operator.Types:
    x, indices = types
    axis = axis_in(operator.int_of(attributes, "axis"), len(x.shape))
    _require_source(types, axis)
    return (TensorType(x.dtype, (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])),)


def _gather(tensors: operator.Tensors, attributes: Attributes) -> operator.Computes:
    x, indices = tensors
    own = x.shape
    axis = axis_in(operator.int_of(attributes, "axis"), len(own))
    inner = len(indices.shape)

    def body(*at: expr.Index) -> expr.Value:
        chosen = expr.at_position(indices, at[axis : axis + inner], own[axis])
        return expr.Load(x, (*at[:axis], chosen, *at[axis + inner :]))

    shape = (*own[:axis], *indices.shape, *own[axis + 1 :])
    return (expr.compute("gather", shape, body, axis_names(len(shape))),)


def _infer_elements(types: operator.Types, attributes: Attributes) -> operator.Types:
    x, indices = types
    rank = len(x.shape)
    axis = axis_in(operator.int_of(attributes, "axis"), rank)
    operator.require_rank("indices", indices, rank, rank)
    _require_source(types, axis)
    require_inside(x, indices, axis)
    return (TensorType(x.dtype, indices.shape),)


def _elements(tensors: operator.Tensors, attributes: Attributes) -> operator.Computes:
    x, indices = tensors
    axis = axis_in(operator.int_of(attributes, "axis"), len(x.shape))

    def body(*at: expr.Index) -> expr.Value:
        chosen = expr.at_position(indices, at, x.shape[axis])
        return expr.Load(x, (*at[:axis], chosen, *at[axis + 1 :]))

    shape = indices.shape
    return (expr.compute("gather_elements", shape, body, axis_names(len(shape))),)


def _infer_nd(types: operator.Types, attributes: Attributes) -> operator.Types:
    x, indices = types
    operator.require_dtype("indices", indices, operator.POSITIONS)
    operator.require_rank("indices", indices, 1)
    shape, wanted = named_sizes.sizes_of(x), named_sizes.sizes_of(indices)
    batch, count = operator.int_of(attributes, "batch_dims"), named_sizes.number_of(wanted[-1])
    if not 0 <= batch < len(indices.shape) or batch + count > len(x.shape) or count < 1:
        own, asked = map(named_sizes.shape_text, (shape, wanted))
        raise operator.fault(f"indices {asked} with {batch} batch dimensions does not fit x {own}")
    if not named_sizes.are_equal(shape[:batch], wanted[:batch]):
        texts = f"x {named_sizes.shape_text(shape)} and indices {named_sizes.shape_text(wanted)}"
        raise operator.fault(f"batch dimensions of {texts} differ")
    read = [each for each in shape[batch : batch + count] if not _may_be_read(each, wanted[:-1])]
    if named_sizes.is_empty(read) and not named_sizes.is_empty(wanted):
        raise operator.fault(
            f"input x {named_sizes.shape_text(shape)} is empty: nothing can be read"
        )
    return (TensorType(x.dtype, (*indices.shape[:-1], *x.shape[batch + count :])),)


def _nd(tensors: operator.Tensors, attributes: Attributes) -> operator.Computes:
    x, indices = tensors
    own, asked = x.shape, indices.shape
    batch, count = operator.int_of(attributes, "batch_dims"), named_sizes.number_of(asked[-1])
    outer = len(asked) - 1

    def body(*at: expr.Index) -> expr.Value:
        chosen = tuple(
            expr.at_position(indices, (*at[:outer], k), own[batch + k]) for k in range(count)
        )
        return expr.Load(x, (*at[:batch], *chosen, *at[outer:]))

    shape = (*asked[:-1], *own[batch + count :])
    return (expr.compute("gather_nd", shape, body, axis_names(len(shape))),)


def _infer_reverse(types: operator.Types, attributes: Attributes) -> operator.Types:
    x, lengths = types
    operator.require_dtype("lengths", lengths, operator.POSITIONS)
    batch = axis_in(operator.int_of(attributes, "batch_axis"), len(x.shape), "batch_axis")
    time = axis_in(operator.int_of(attributes, "time_axis"), len(x.shape), "time_axis")
    if batch == time:
        raise operator.fault(f"attributes batch_axis and time_axis are both dimension {batch}")
    operator.require_shape("lengths", lengths, (named_sizes.sizes_of(x)[batch],))
    return (x,)


def _reverse(tensors: operator.Tensors, attributes: Attributes) -> operator.Computes:
    x, lengths = tensors
    shape = x.shape
    batch = operator.int_of(attributes, "batch_axis") % len(shape)
    time = operator.int_of(attributes, "time_axis") % len(shape)

    def body(*at: expr.Index) -> expr.Value:
        length = expr.Element(lengths, (at[batch],))
        mirrored = expr.mod(length - 1 - at[time], named_sizes.as_divisor(shape[time]))
        inside = expr.Load(x, (*at[:time], mirrored, *at[time + 1 :]))
        return expr.select(at[time] < length, inside, expr.Load(x, at))

    return (expr.compute("reverse_sequence", shape, body, axis_names(len(shape))),)


def _one_hot_axis(rank: int, attributes: Attributes) -> tuple[int, expr.Index]:
    depth = operator.size_in(attributes, "depth")
    if not named_sizes.decided(depth >= 0):
        raise operator.fault(f"attribute depth is {depth}, which is negative")
    return axis_in(operator.int_of(attributes, "axis"), rank + 1), depth


def _infer_one_hot(types: operator.Types, attributes: Attributes) -> operator.Types:
    indices, values = types
    operator.require_dtype("indices", indices, operator.NUMBERS)
    operator.require_shape("values", values, (2,))
    axis, depth = _one_hot_axis(len(indices.shape), attributes)
    return (TensorType(values.dtype, (*indices.shape[:axis], depth, *indices.shape[axis:])),)


def _one_hot(tensors: operator.Tensors, attributes: Attributes) -> operator.Computes:
    indices, values = tensors
    own = indices.shape
    axis, depth = _one_hot_axis(len(own), attributes)
    behind_last = named_sizes.number_or_value(depth, DType.I64)

    def body(*at: expr.Index) -> expr.Value:
        asked: expr.Value = expr.Load(indices, (*at[:axis], *at[axis + 1 :]))
        position = expr.FromIndex(at[axis], DType.I64)
        asked = expr.cast(asked, DType.I64)
        is_there = expr.apply(expr.Fn.EQ, asked, position)
        behind = expr.apply(expr.Fn.EQ, asked, position - behind_last)
        return expr.select(expr.apply(expr.Fn.OR, is_there, behind), values[1], values[0])

    shape = (*own[:axis], depth, *own[axis:])
    return (expr.compute("one_hot", shape, body, axis_names(len(shape))),)


_AXIS = operator.Attribute("axis", 0, "the dimension of x that is read at positions")
GATHERING_OPERATORS = (
    operator.tensor_operator(
        "gather",
        "slices of x along the axis, in the order of the indices",
        ("x", "indices"),
        (_AXIS,),
        _infer_gather,
        _gather,
    ),
    operator.tensor_operator(
        "gather_elements",
        "x with the index along the axis taken from indices",
        ("x", "indices"),
        (_AXIS,),
        _infer_elements,
        _elements,
    ),
    operator.tensor_operator(
        "gather_nd",
        "slices of x at positions given by the rows of indices",
        ("x", "indices"),
        (operator.Attribute("batch_dims", 0, "leading dimensions that x and indices share"),),
        _infer_nd,
        _nd,
    ),
    operator.tensor_operator(
        "reverse_sequence",
        "x with the first lengths[b] elements of each example b in reverse order",
        ("x", "lengths"),
        (
            operator.Attribute("batch_axis", 1, "the dimension of the examples"),
            operator.Attribute("time_axis", 0, "the dimension that is reversed"),
        ),
        _infer_reverse,
        _reverse,
    ),
    operator.tensor_operator(
        "one_hot",
        "values[1] where the position along the new axis is the index, else values[0]",
        ("indices", "values"),
        (
            operator.Attribute("depth", None, "extent of the new axis"),
            operator.Attribute("axis", -1, "where the new axis is in the output"),
        ),
        _infer_one_hot,
        _one_hot,
    ),
)
