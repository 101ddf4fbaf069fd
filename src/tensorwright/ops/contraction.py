"""Sums of products: matrix products, Einstein sums, attention.

Shapes:  a (..., m, k), b (..., k, n), of any rank by the rules of NumPy; of gemm (m, k), (k, n)

Equations: "bij,bjk->bik", "ii->i", "...ij->...ji"; the output may be implied.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add

from tensorwright import expr
from tensorwright.base import Attributes, DType, TensorType
from tensorwright.ops.named_sizes import is_equal, shape_text, sizes_of
from tensorwright.ops.operator import (
    NUMBERS,
    Attribute,
    Computes,
    Fold,
    Numbers,
    Pattern,
    Tensors,
    Types,
    bool_of,
    fault,
    float_of,
    require_dtype,
    require_rank,
    require_same_dtype,
    tensor_operator,
    text_of,
)
from tensorwright.ops.shapes import (
    broadcast_shapes,
    broadcasts_to,
    pointwise,
    stretched,
    stretched_indices,
)

_BATCH = ("b0", "b1", "b2", "b3", "b4", "b5")


def require_same_inner(
    a: tuple[expr.Index, ...], b: tuple[expr.Index, ...], left: expr.Index, right: expr.Index
) -> None:
    """Refuse operands of a product whose inner extents differ."""
    if not is_equal(left, right):
        shapes = f"shapes {shape_text(a)} and {shape_text(b)}"
        raise fault(f"{shapes}: the inner extents {left} and {right} differ")


def product_shape(a: tuple[expr.Index, ...], b: tuple[expr.Index, ...]) -> tuple[expr.Index, ...]:
    """The shape of NumPy's matmul.

    Raises:  ModelError for a scalar or extents that do not fit.
    """
    if not a or not b:
        raise fault("a matrix product of a scalar", "use mul")
    inner = b[-2] if len(b) > 1 else b[0]
    require_same_inner(a, b, a[-1], inner)
    return broadcast_shapes(a[:-2], b[:-2]) + a[-2:-1] + b[1:][-1:]


def matrix_product(
    name: str, a: expr.Tensor, b: expr.Tensor, wide: DType | None = None
) -> expr.Compute:
    """NumPy's matmul of two tensors, with the elements converted to `wide` first."""
    left, right = a.shape, b.shape
    shape = product_shape(left, right)
    has_row, has_column = len(left) > 1, len(right) > 1
    batch_rank = len(shape) - has_row - has_column
    batch = shape[:batch_rank]
    k = expr.reduce_axis("k", left[-1])
    names = [*(_BATCH[:batch_rank] if batch_rank != 1 else ("b",))]
    names += ["i"] * has_row + ["j"] * has_column

    def body(*outer: expr.Index) -> expr.Reduce:
        at = outer[:batch_rank]
        row = outer[batch_rank : batch_rank + has_row]
        column = outer[batch_rank + has_row :]
        of_a = _batched(a, at, batch, (*row, k.var))
        of_b = _batched(b, at, batch, (k.var, *column))
        if wide is not None:
            of_a, of_b = expr.cast(of_a, wide), expr.cast(of_b, wide)
        return expr.sum_over(of_a * of_b, k)

    return expr.compute(name, shape, body, tuple(names))


def _batched(
    tensor: expr.Tensor,
    at: tuple[expr.Index, ...],
    batch: tuple[expr.Index, ...],
    inner: tuple[expr.Index, ...],
) -> expr.Value:
    own = tensor.shape
    chosen = stretched_indices(own[: len(own) - len(inner)], at, batch)
    return expr.Load(tensor, (*chosen, *inner))


def _times(value: expr.Value, factor: float) -> expr.Value:
    """A product; that of an integer and a fraction loses its fraction."""
    if factor == 1:
        return value
    if value.dtype.is_float:
        return value * factor
    if factor == int(factor):
        return value * expr.constant(factor, value.dtype)
    return expr.cast(expr.cast(value, DType.F64) * factor, value.dtype)


def _infer_matmul(types: Types, _: Attributes) -> Types:
    a, b = types
    require_dtype("a", a, NUMBERS)
    require_same_dtype(("a", "b"), types)
    return (TensorType(a.dtype, product_shape(sizes_of(a), sizes_of(b))),)


def _matmul(tensors: Tensors, _: Attributes) -> Computes:
    return (matrix_product("matmul", tensors[0], tensors[1]),)


def _infer_gemm(types: Types, attributes: Attributes) -> Types:
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


def _gemm(tensors: Tensors, attributes: Attributes) -> Computes:
    a, b = tensors[:2]
    turned_a, turned_b = bool_of(attributes, "trans_a"), bool_of(attributes, "trans_b")
    rows, inner = reversed(a.shape) if turned_a else a.shape
    columns = b.shape[0 if turned_b else 1]
    alpha, beta = float_of(attributes, "alpha"), float_of(attributes, "beta")
    adds = len(tensors) == 3 and beta != 0
    plain = alpha == 1 and not adds
    k = expr.reduce_axis("k", inner)

    def body(i: expr.Index, j: expr.Index) -> expr.Reduce:
        of_a = a[k, i] if turned_a else a[i, k]
        of_b = b[j, k] if turned_b else b[k, j]
        return expr.sum_over(of_a * of_b, k)

    product = expr.compute("gemm" if plain else "gemm_product", (rows, columns), body)
    if plain:
        return (product,)

    def finish(*values: expr.Value) -> expr.Value:
        factors = (alpha, beta) if adds else (alpha,)
        return reduce(add, map(_times, values, factors))

    operands = (product, tensors[2]) if adds else (product,)
    return (pointwise("gemm", operands, (rows, columns), finish),)


def require_short(names: str, types: Types) -> None:
    """Refuse operands that are not bytes or i16, and zero points of another type than theirs."""
    zero_points = tuple(f"{name}_zero_point" for name in names)
    for label, each in zip((*names, *zero_points), types, strict=False):
        require_dtype(label, each, frozenset({DType.I8, DType.U8, DType.I16}))
    for name, label, data, zero in zip(names, zero_points, types, types[2:], strict=False):
        require_same_dtype((name, label), (data, zero))


def _infer_matmul_integer(types: Types, _: Attributes) -> Types:
    require_short("ab", types)
    a, b = types[:2]
    shape = product_shape(sizes_of(a), sizes_of(b))
    return (TensorType(DType.I32, shape),)


def _matmul_integer(tensors: Tensors, _: Attributes) -> Computes:
    a, b = tensors[:2]
    if len(tensors) > 2:
        a = _without_zero_point("matmul_integer_a", a, tensors[2], by_row=True)
    if len(tensors) > 3:
        b = _without_zero_point("matmul_integer_b", b, tensors[3], by_row=False)
    return (matrix_product("matmul_integer", a, b, DType.I32),)


def _without_zero_point(
    name: str, tensor: expr.Tensor, zero: expr.Tensor, *, by_row: bool
) -> expr.Compute:
    """The tensor as i32 minus its zero point: one number, one per row of a or column of b."""
    shape = tensor.shape
    has_rows = by_row and zero.shape not in ((), (1,)) and len(zero.shape) == 1

    def body(*indices: expr.Index) -> expr.Value:
        if has_rows:
            point = expr.Load(zero, (indices[-2],))
        else:
            point = stretched(zero, indices, shape)
        return expr.cast(expr.Load(tensor, indices), DType.I32) - expr.cast(point, DType.I32)

    return expr.compute(name, shape, body, tuple(f"i{n}" for n in range(len(shape))))


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
        multiplied=2,
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
        multiplied=2,
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


Shape = tuple[expr.Index, ...]


@dataclass(frozen=True, slots=True)
class Summation:
    """A parsed equation: the label of every dimension, ellipses replaced by labels e0, e1, ..."""

    terms: tuple[tuple[str, ...], ...]
    result: tuple[str, ...]
    extents: dict[str, expr.Index]

    @property
    def folded(self) -> tuple[str, ...]:
        """The labels that are summed over, in order of appearance."""
        seen = dict.fromkeys(label for term in self.terms for label in term)
        return tuple(label for label in seen if label not in self.result)


def parse_equation(equation: str, shapes: tuple[Shape, ...]) -> Summation:
    """Read an equation for operands of these shapes.

    Raises:  ModelError for wrong syntax, a wrong number of terms or dimensions, extents that
             differ.
    """
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    written = left.split(",")
    if len(written) != len(shapes):
        raise fault(f"equation {equation!r} has {len(written)} terms for {len(shapes)} inputs")
    pairs = list(zip(written, shapes, strict=True))
    hidden = max((len(shape) - _letters(term) for term, shape in pairs if "." in term), default=0)
    extents: dict[str, expr.Index] = {}
    terms = tuple(tuple(_labels(term, shape, hidden, equation)) for term, shape in pairs)
    for labels, shape in zip(terms, shapes, strict=True):
        for label, extent in zip(labels, shape, strict=True):
            former = extents.setdefault(label, extent)
            if 1 not in (former, extent) and not is_equal(former, extent):
                raise fault(f"equation {equation!r}: {label} is {former} and {extent}")
            extents[label] = extent if former == 1 else former
    if arrow:
        result = tuple(_expanded(right, hidden, hidden, equation))
    else:
        flat = [label for labels in terms for label in labels]
        shown = sorted(label for label in set(flat) if flat.count(label) == 1 and len(label) == 1)
        result = (*(f"e{n}" for n in range(hidden)), *shown)
    unknown = [label for label in result if label not in extents]
    if unknown or len(set(result)) < len(result):
        raise fault(f"equation {equation!r}: the output is not made of distinct input labels")
    return Summation(terms, result, extents)


def _letters(term: str) -> int:
    return len(term.replace("...", ""))


def _labels(term: str, shape: Shape, hidden: int, equation: str) -> Iterator[str]:
    own = len(shape) - _letters(term)
    if own < 0 or (own > 0 and "..." not in term):
        raise fault(f"equation {equation!r}: {term!r} does not fit shape {shape_text(shape)}")
    return _expanded(term, own, hidden, equation)


def _expanded(term: str, own: int, hidden: int, equation: str) -> Iterator[str]:
    before, dots, after = term.partition("...")
    letters = before + after
    if letters and not (letters.isalpha() and letters.isascii()):
        raise fault(f"equation {equation!r}: {term!r} is not made of letters and one ellipsis")
    yield from before
    if dots:
        yield from (f"e{n}" for n in range(hidden - own, hidden))
    yield from after


def _parsed(shapes: tuple[Shape, ...], attributes: Attributes) -> Summation:
    return parse_equation(text_of(attributes, "equation"), shapes)


def _infer(types: Types, attributes: Attributes) -> Types:
    names = tuple(map(str, range(len(types))))
    for name, each in zip(names, types, strict=True):
        require_dtype(name, each, NUMBERS)
    require_same_dtype(names, types)
    parsed = _parsed(tuple(map(sizes_of, types)), attributes)
    shape = tuple(parsed.extents[label] for label in parsed.result)
    return (TensorType(types[0].dtype, shape),)


def _meaning(tensors: Tensors, attributes: Attributes) -> Computes:
    parsed = _parsed(tuple(tensor.shape for tensor in tensors), attributes)
    folded = {label: expr.Axis(expr.Var(label), parsed.extents[label]) for label in parsed.folded}

    def body(*outer: expr.Index) -> expr.Value | expr.Reduce:
        at: dict[str, expr.Index] = dict(zip(parsed.result, outer, strict=True))
        at.update((label, axis.var) for label, axis in folded.items())
        factors: list[expr.Value] = []
        for tensor, labels in zip(tensors, parsed.terms, strict=True):
            own = zip(labels, tensor.shape, strict=True)
            places = (
                0
                if expr.is_same(n, 1) and not expr.is_same(parsed.extents[label], 1)
                else at[label]
                for label, n in own
            )
            factors.append(expr.Load(tensor, tuple(places)))
        product = reduce(lambda a, b: a * b, factors)
        return expr.sum_over(product, *folded.values()) if folded else product

    shape = tuple(parsed.extents[label] for label in parsed.result)
    return (expr.compute("einsum", shape, body, parsed.result),)


EINSUM_OPERATORS = (
    tensor_operator(
        "einsum",
        "sum of products of elements over the labels that the output does not have",
        ("*tensors",),
        (Attribute("equation", None, "the labels of all dimensions, as in NumPy"),),
        _infer,
        _meaning,
        Pattern.ANCHOR,
        fold=Fold.PRODUCT,
        multiplied=8,  # or as many as it has
    ),
)
