"""What models compute of named sizes: integers that are index expressions, and floats of them.

Exporters write the arithmetic of shapes as nodes: 2*n for the columns of a concatenation,
floor(0.5 * h) for the rows of a smaller image.  The tensor expressions of those nodes are evaluated
over these terms:

    integers   int | Ratio        floats   float | Ratio        bools   bool

What sizes do not decide ends in an error that names them.

Tensors whose elements are known, but for named sizes: what Shape gives, and what is made of it.

    x: f32(n, 3, 2*m)    Shape(x) = [n, 3, 2*m]    Gather(Shape(x), 2) * 4 = 8*m

Nodes of them are computed while the model is read, as nodes of constants are.  Where such a tensor
is needed when the network runs, nodes make it of the sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tensorwright import expr
from tensorwright.base import DType, TensorType
from tensorwright.graph.builder import GraphBuilder
from tensorwright.graph.graph import Graph
from tensorwright.graph.infer import operator_of
from tensorwright.ops import Array, decided, is_equal, not_decided

_FINEST = 1 << 12
"""The largest denominator of a float that may meet a size.

So few bits behind the point leave room for sizes up to 2**12 in f32, and what is divided by small
integers rounds to the right side of whole numbers far above that.
"""


@dataclass(frozen=True, slots=True)
class Ratio:
    """A number that depends on sizes: a quotient of integers, the divisor positive.

    NumPy takes it for an object, where it would ask an index expression for its elements.
    """

    dividend: expr.Index
    divisor: expr.Index = 1

    def __str__(self) -> str:
        return str(self.dividend) if self.divisor == 1 else f"({self.dividend})/({self.divisor})"


Term: TypeAlias = int | float | bool | Ratio


def term_of(index: expr.Index) -> int | Ratio:
    """An integer as a term."""
    return Ratio(index) if isinstance(index, expr.IndexExpr) else index


def index_of(term: Term) -> expr.Index:
    """A term as an integer."""
    if isinstance(term, Ratio) and term.divisor == 1:
        return term.dividend
    if isinstance(term, (Ratio, float)):
        raise TypeError(f"{term} is not an integer")
    return int(term)


class SizeTerms:
    """The terms, as `SymbolicDomain` asks for them."""

    def const(self, value: float | int | bool, dtype: DType) -> Term:
        """The number itself."""
        return (
            float(value) if dtype.is_float else bool(value) if dtype is DType.BOOL else int(value)
        )

    def integer(self, term: Term) -> int:
        """A number."""
        index = index_of(term)
        if isinstance(index, expr.IndexExpr):
            raise not_decided((index,), f"the position {index} must be a number here")
        return index

    def apply(self, fn: expr.Fn, args: tuple[Any, ...], dtype: DType) -> Term:
        """A function; comparisons are decided by the bounds of the sizes."""
        if dtype.is_float:
            return _of_floats(fn, tuple(map(_ratio, args)))
        if dtype is DType.BOOL:
            return bool(_numeric(_LOGIC, fn)(*args))
        if fn in _RELATIONS:
            return decided(expr.compare(_RELATIONS[fn], *map(index_of, args)))
        return term_of(_numeric(_INTEGERS, fn)(*map(index_of, args)))

    def select(self, condition: bool, then: Term, otherwise: Term) -> Term:
        """One of the two."""
        return then if condition else otherwise

    def cast(self, term: Term, source: DType, target: DType) -> Term:
        """Integers keep their value; floats are cut off."""
        if target is DType.BOOL:
            return decided(expr.compare(expr.Relation.NE, _ratio(term).dividend, 0))
        if target.is_float:
            return term if isinstance(term, Ratio) else float(term)
        if not source.is_float:
            return term if isinstance(term, Ratio) else int(term)
        ratio = _ratio(term)
        return term_of(_truncated(ratio.dividend, ratio.divisor))


def _numeric(table: Mapping[expr.Fn, Callable[..., Any]], fn: expr.Fn) -> Callable[..., Any]:
    operation = table.get(fn)
    if operation is None:
        raise TypeError(f"{fn.text} of sizes is not computed before they are known")
    return operation


def _truncated(dividend: expr.Index, divisor: expr.Index) -> expr.Index:
    """A quotient of integers, rounded towards zero."""
    if not decided(divisor > 0):
        dividend, divisor = -dividend, -divisor
    if decided(dividend >= 0):
        return expr.floor_div(dividend, divisor)
    return -expr.floor_div(-dividend, divisor)


def _floormod(dividend: expr.Index, divisor: expr.Index) -> expr.Index:
    if decided(divisor > 0):
        return expr.mod(dividend, divisor)
    return -expr.mod(-dividend, -divisor)


_INTEGERS: Mapping[expr.Fn, Callable[..., expr.Index]] = {
    expr.Fn.ADD: lambda a, b: a + b,
    expr.Fn.SUB: lambda a, b: a - b,
    expr.Fn.MUL: lambda a, b: a * b,
    expr.Fn.DIV: _truncated,
    expr.Fn.MOD: lambda a, b: a - b * _truncated(a, b),
    expr.Fn.FLOORMOD: _floormod,
    expr.Fn.MIN: lambda a, b: expr.simplify(expr.minimum(a, b), {}),
    expr.Fn.MAX: lambda a, b: expr.simplify(expr.maximum(a, b), {}),
    expr.Fn.NEG: lambda a: -a,
    expr.Fn.ABS: lambda a: a if decided(a >= 0) else -a,
    expr.Fn.SIGN: lambda a: 0 if is_equal(a, 0) else 1 if decided(a > 0) else -1,
}
_LOGIC: Mapping[expr.Fn, Callable[..., bool]] = {
    expr.Fn.AND: lambda a, b: a and b,
    expr.Fn.OR: lambda a, b: a or b,
    expr.Fn.XOR: lambda a, b: a != b,
    expr.Fn.NOT: lambda a: not a,
    expr.Fn.EQ: lambda a, b: a == b,
    expr.Fn.NE: lambda a, b: a != b,
    expr.Fn.MIN: min,
    expr.Fn.MAX: max,
}
_ROUNDINGS: Mapping[expr.Fn, Callable[[expr.Index, expr.Index], expr.Index]] = {
    expr.Fn.FLOOR: expr.floor_div,
    expr.Fn.CEIL: expr.ceil_div,
    expr.Fn.TRUNC: _truncated,
}
_RELATIONS = {
    expr.Fn.LT: expr.Relation.LT,
    expr.Fn.LE: expr.Relation.LE,
    expr.Fn.EQ: expr.Relation.EQ,
    expr.Fn.NE: expr.Relation.NE,
}


def _ratio(term: Term) -> Ratio:
    """A number as a quotient of integers."""
    if isinstance(term, Ratio):
        return term
    if not isinstance(term, float):
        return Ratio(int(term))
    exact = Fraction(term) if isfinite(term) else None
    if exact is None or exact.denominator > _FINEST:
        raise TypeError(f"{term} times a size is rounded, and not computed before it is known")
    return Ratio(exact.numerator, exact.denominator)


def _float(ratio: Ratio) -> Term:
    """The quotient, a float where no size is in it."""
    above, below = ratio.dividend, ratio.divisor
    return above / below if isinstance(above, int) and isinstance(below, int) else ratio


def _of_floats(fn: expr.Fn, args: tuple[Ratio, ...]) -> Term:
    """A function of quotients."""
    first, second = args[0], args[-1]
    a, p, b, q = first.dividend, first.divisor, second.dividend, second.divisor
    if fn in _ROUNDINGS:
        return _float(Ratio(_ROUNDINGS[fn](a, p)))
    if fn in _RELATIONS:
        return decided(expr.compare(_RELATIONS[fn], a * q, b * p))
    match fn:
        case expr.Fn.ADD:
            return _float(Ratio(a * q + b * p, p * q))
        case expr.Fn.SUB:
            return _float(Ratio(a * q - b * p, p * q))
        case expr.Fn.MUL:
            return _float(Ratio(a * b, p * q))
        case expr.Fn.NEG:
            return _float(Ratio(-a, p))
        case expr.Fn.DIV:
            if is_equal(b, 0):
                raise TypeError("a size is divided by 0")
            return _float(Ratio(a * q, p * b) if decided(b > 0) else Ratio(-a * q, -p * b))
        case expr.Fn.MIN | expr.Fn.MAX:
            is_left = decided(a * q <= b * p) == (fn is expr.Fn.MIN)
            return _float(first if is_left else second)
    raise TypeError(f"{fn.text} of sizes is not computed before they are known")


_DOMAIN = expr.SymbolicDomain(SizeTerms())


@dataclass(frozen=True, slots=True, eq=False)
class SizeArray:
    """A tensor of known elements, at least one of which depends on a size."""

    dtype: DType
    terms: NDArray[np.object_]

    @property
    def type(self) -> TensorType:
        """Its type."""
        return TensorType(self.dtype, self.terms.shape)

    @property
    def indices(self) -> tuple[expr.Index, ...]:
        """The elements, in row-major order."""
        return tuple(map(index_of, self.terms.ravel()))

    def narrowed(self, sizes: Mapping[expr.NamedSize, expr.Index]) -> SizeArray:
        """The same with other sizes."""
        terms = self.terms.copy()
        for position, term in np.ndenumerate(terms):
            if isinstance(term, Ratio):
                parts = (expr.substitute(each, sizes) for each in (term.dividend, term.divisor))
                terms[position] = Ratio(*parts)
        return SizeArray(self.dtype, terms)

    def __str__(self) -> str:
        return ", ".join(map(str, self.terms.ravel()))


def known_array(terms: Sequence[Term], shape: tuple[int, ...], dtype: DType) -> Array | SizeArray:
    """Elements in row-major order as an array: one of numbers where no size is in them."""
    if not any(isinstance(each, Ratio) for each in terms):
        return np.array(terms, dtype.numpy).reshape(shape)
    held: NDArray[np.object_] = np.empty(len(terms), object)
    for number, term in enumerate(terms):
        held[number] = term
    return SizeArray(dtype, held.reshape(shape))


def add_size_array(builder: GraphBuilder, array: SizeArray) -> str:
    """A tensor of the graph that has these elements when the network runs."""
    rows = [_add_term(builder, term, array.dtype, array.terms.ndim) for term in array.terms.ravel()]
    if not array.terms.ndim:
        return rows[0]
    joined = rows[0] if len(rows) == 1 else builder.add("concat", *rows, axis=0)
    if array.terms.ndim == 1:
        return joined
    return builder.add("reshape", joined, shape=array.terms.shape)


def _add_term(builder: GraphBuilder, term: Term, dtype: DType, rank: int) -> str:
    shape = (1,) * min(rank, 1)

    def full(value: expr.Index | float) -> str:
        return builder.add("full", shape=shape, value=value, dtype=dtype)

    if not isinstance(term, Ratio):
        return full(term)
    above = full(term.dividend)
    return above if term.divisor == 1 else builder.add("div", above, full(term.divisor))


def evaluate_terms(
    graph: Graph, inputs: Mapping[str, SizeArray]
) -> dict[str, Array | SizeArray] | None:
    """The outputs of a graph of known shapes for elements that depend on sizes; None where no
    tensor expression says what a node is.
    """
    values: dict[str, NDArray[Any]] = {
        **{
            name: _DOMAIN.inject(array, graph.types[name].dtype)
            for name, array in graph.constants.items()
        },
        **{name: array.terms for name, array in inputs.items()},
    }
    for node in graph.nodes:
        meaning = operator_of(node).meaning
        if meaning is None:
            return None
        tensors = tuple(
            expr.placeholder(name, graph.types[name].extents, graph.types[name].dtype)
            for name in node.inputs
        )
        given = {tensor: values[name] for tensor, name in zip(tensors, node.inputs, strict=True)}
        results = expr.evaluate(meaning(tensors, node.attribute_map), given, _DOMAIN)
        values.update(zip(node.outputs, results, strict=True))
    folded: dict[str, Array | SizeArray] = {}
    for name in graph.outputs:
        type_ = graph.types[name]
        folded[name] = known_array(tuple(values[name].ravel()), type_.extents, type_.dtype)
    return folded
