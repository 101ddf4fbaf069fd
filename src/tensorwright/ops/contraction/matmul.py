"""Matrix products.

| operators | inputs | attributes |
|---|---|---|
| matmul | a (..., m, k), b (..., k, n), NumPy rules for any rank | |
| gemm | a (m, k), b (k, n), c? | alpha=1.0, beta=1.0, trans_a=False, trans_b=False |
| matmul_integer | a, b (i8 or u8), a_zero_point?, b_zero_point? -> i32 | |
"""

from __future__ import annotations

from functools import reduce
from operator import add

from tensorwright.base import Attributes, DType, TensorType
from tensorwright.expr import (
    Compute,
    Index,
    Load,
    Reduce,
    Tensor,
    Value,
    cast,
    compute,
    constant,
    reduce_axis,
    sum_over,
)
from tensorwright.ops.access import pointwise, stretched, stretched_indices
from tensorwright.ops.attributes import (
    NUMBERS,
    bool_of,
    fault,
    float_of,
    require_dtype,
    require_rank,
    require_same_dtype,
)
from tensorwright.ops.named_sizes import is_equal, shape_text, sizes_of
from tensorwright.ops.operator import Attribute, Fold, Numbers, Pattern, tensor_operator
from tensorwright.ops.shapes import broadcast_shapes, broadcasts_to

_BATCH = ("b0", "b1", "b2", "b3", "b4", "b5")


def require_same_inner(
    a: tuple[Index, ...], b: tuple[Index, ...], left: Index, right: Index
) -> None:
    """Refuse operands of a product whose inner extents differ."""
    if not is_equal(left, right):
        shapes = f"shapes {shape_text(a)} and {shape_text(b)}"
        raise fault(f"{shapes}: the inner extents {left} and {right} differ")


def product_shape(a: tuple[Index, ...], b: tuple[Index, ...]) -> tuple[Index, ...]:
    """The shape of NumPy's matmul.

    Raises:  ModelError for a scalar or extents that do not fit.
    """
    if not a or not b:
        raise fault("a matrix product of a scalar", "use mul")
    inner = b[-2] if len(b) > 1 else b[0]
    require_same_inner(a, b, a[-1], inner)
    return broadcast_shapes(a[:-2], b[:-2]) + a[-2:-1] + b[1:][-1:]


def matrix_product(name: str, a: Tensor, b: Tensor, wide: DType | None = None) -> Compute:
    """NumPy's matmul of two tensors, with the elements converted to `wide` first."""
    left, right = a.shape, b.shape
    shape = product_shape(left, right)
    has_row, has_column = len(left) > 1, len(right) > 1
    batch_rank = len(shape) - has_row - has_column
    batch = shape[:batch_rank]
    k = reduce_axis("k", left[-1])
    names = [*(_BATCH[:batch_rank] if batch_rank != 1 else ("b",))]
    names += ["i"] * has_row + ["j"] * has_column

    def body(*outer: Index) -> Reduce:
        at = outer[:batch_rank]
        row = outer[batch_rank : batch_rank + has_row]
        column = outer[batch_rank + has_row :]
        of_a = _batched(a, at, batch, (*row, k.var))
        of_b = _batched(b, at, batch, (k.var, *column))
        if wide is not None:
            of_a, of_b = cast(of_a, wide), cast(of_b, wide)
        return sum_over(of_a * of_b, k)

    return compute(name, shape, body, tuple(names))


def _batched(
    tensor: Tensor, at: tuple[Index, ...], batch: tuple[Index, ...], inner: tuple[Index, ...]
) -> Value:
    own = tensor.shape
    chosen = stretched_indices(own[: len(own) - len(inner)], at, batch)
    return Load(tensor, (*chosen, *inner))


def _times(value: Value, factor: float) -> Value:
    """A product; that of an integer and a fraction loses its fraction."""
    if factor == 1:
        return value
    if value.dtype.is_float:
        return value * factor
    if factor == int(factor):
        return value * constant(factor, value.dtype)
    return cast(cast(value, DType.F64) * factor, value.dtype)


def _infer_matmul(types: tuple[TensorType, ...], _: Attributes) -> tuple[TensorType, ...]:
    a, b = types
    require_dtype("a", a, NUMBERS)
    require_same_dtype(("a", "b"), types)
    return (TensorType(a.dtype, product_shape(sizes_of(a), sizes_of(b))),)


def _matmul(tensors: tuple[Tensor, ...], _: Attributes) -> tuple[Compute, ...]:
    return (matrix_product("matmul", tensors[0], tensors[1]),)


def _infer_gemm(types: tuple[TensorType, ...], attributes: Attributes) -> tuple[TensorType, ...]:
    for name, each in zip("ab", types, strict=False):
        require_dtype(name, each, NUMBERS)
        require_rank(name, each, 2, 2)
    require_same_dtype(("a", "b", "c")[: len(types)], types)
    a, b, *more = map(sizes_of, types)
    rows, left = reversed(a) if bool_of(attributes, "trans_a") else a
    right, columns = reversed(b) if bool_of(attributes, "trans_b") else b
    require_same_inner(a, b, left, right)
    shape = (rows, columns)
    if more and not broadcasts_to(more[0], shape):
        own = shape_text(more[0])
        raise fault(f"input c has shape {own}, which does not broadcast to {shape_text(shape)}")
    return (TensorType(types[0].dtype, shape),)


def _gemm(tensors: tuple[Tensor, ...], attributes: Attributes) -> tuple[Compute, ...]:
    a, b = tensors[:2]
    turned_a, turned_b = bool_of(attributes, "trans_a"), bool_of(attributes, "trans_b")
    rows, inner = reversed(a.shape) if turned_a else a.shape
    columns = b.shape[0 if turned_b else 1]
    alpha, beta = float_of(attributes, "alpha"), float_of(attributes, "beta")
    adds = len(tensors) == 3 and beta != 0
    plain = alpha == 1 and not adds
    k = reduce_axis("k", inner)

    def body(i: Index, j: Index) -> Reduce:
        of_a = a[k, i] if turned_a else a[i, k]
        of_b = b[j, k] if turned_b else b[k, j]
        return sum_over(of_a * of_b, k)

    product = compute("gemm" if plain else "gemm_product", (rows, columns), body)
    if plain:
        return (product,)

    def finish(*values: Value) -> Value:
        factors = (alpha, beta) if adds else (alpha,)
        return reduce(add, map(_times, values, factors))

    operands = (product, tensors[2]) if adds else (product,)
    return (pointwise("gemm", operands, (rows, columns), finish),)


def require_bytes(names: str, types: tuple[TensorType, ...]) -> None:
    """Refuse operands that are not bytes, and zero points of another type than theirs."""
    zero_points = tuple(f"{name}_zero_point" for name in names)
    for label, each in zip((*names, *zero_points), types, strict=False):
        require_dtype(label, each, frozenset({DType.I8, DType.U8}))
    for name, label, data, zero in zip(names, zero_points, types, types[2:], strict=False):
        require_same_dtype((name, label), (data, zero))


def _infer_matmul_integer(types: tuple[TensorType, ...], _: Attributes) -> tuple[TensorType, ...]:
    require_bytes("ab", types)
    a, b = types[:2]
    shape = product_shape(sizes_of(a), sizes_of(b))
    return (TensorType(DType.I32, shape),)


def _matmul_integer(tensors: tuple[Tensor, ...], _: Attributes) -> tuple[Compute, ...]:
    a, b = tensors[:2]
    if len(tensors) > 2:
        a = _without_zero_point("matmul_integer_a", a, tensors[2], by_row=True)
    if len(tensors) > 3:
        b = _without_zero_point("matmul_integer_b", b, tensors[3], by_row=False)
    return (matrix_product("matmul_integer", a, b, DType.I32),)


def _without_zero_point(name: str, tensor: Tensor, zero: Tensor, *, by_row: bool) -> Compute:
    """The tensor as i32 minus its zero point: one number, one per row of a or column of b."""
    shape = tensor.shape
    has_rows = by_row and zero.shape not in ((), (1,)) and len(zero.shape) == 1

    def body(*indices: Index) -> Value:
        if has_rows:
            point = Load(zero, (indices[-2],))
        else:
            point = stretched(zero, indices, shape)
        return cast(Load(tensor, indices), DType.I32) - cast(point, DType.I32)

    return compute(name, shape, body, tuple(f"i{n}" for n in range(len(shape))))


def _scaled_columns(weights: Numbers, factor: Numbers, attributes: Attributes) -> Numbers:
    is_turned = bool_of(attributes, "trans_b")
    return weights * (factor.reshape(-1, 1) if is_turned else factor.reshape(1, -1))


MATMUL_OPERATORS = (
    tensor_operator(
        "matmul",
        "matrix product as NumPy does it: leading dimensions broadcast",
        ("a", "b"),
        (),
        _infer_matmul,
        _matmul,
        Pattern.ANCHOR,
        fold=Fold.PRODUCT,
    ),
    tensor_operator(
        "gemm",
        "alpha * a b + beta * c",
        ("a", "b", "c?"),
        (
            Attribute("alpha", 1.0, "factor of the product"),
            Attribute("beta", 1.0, "factor of c"),
            Attribute("trans_a", default=False, doc="a is given as (k, m)"),
            Attribute("trans_b", default=False, doc="b is given as (n, k)"),
        ),
        _infer_gemm,
        _gemm,
        Pattern.ANCHOR,
        fold=Fold.PRODUCT,
        channel_scale=_scaled_columns,
    ),
    tensor_operator(
        "matmul_integer",
        "(a - a_zero_point) (b - b_zero_point) in i32",
        ("a", "b", "a_zero_point?", "b_zero_point?"),
        (),
        _infer_matmul_integer,
        _matmul_integer,
        Pattern.ANCHOR,
        fold=Fold.OTHER,
    ),
)
