"""Elements at the same position, functions, normalisations, reductions and products.

ewadd(a, b)                   a (2, 3), b (2, 3) -> (2, 3); other shapes are ill-typed
leaky_relu[f0p01](x)          a number that is not a size is a word (`parameters.number_word`)
reduce_sum[1](x)              x (2, 3) -> (2, 1)
matmul(a, b)                  a (5, 2, 3), b (5, 3, 4) -> (5, 2, 4)
"""

from __future__ import annotations

from tensorwright.base import DType
from tensorwright.rewriting.assumptions import Needs, Params, Shapes
from tensorwright.rewriting.dims import Shape
from tensorwright.rewriting.operators import operator
from tensorwright.rewriting.operators.parameters import (
    ALIKE,
    AXIS,
    BATCHES,
    BESIDE_AXIS,
    CHANNELS,
    ROWS,
    Parameter,
    axis_of,
    number_parameter,
)


def _scaled_shape(params: Params, shapes: Shapes, needs: Needs) -> Shape:
    needs.rank(shapes[1], 0)
    return shapes[0]


def _of_same_shape(
    name: str, meaning: operator.MeaningRule, *, arity: int = 2
) -> operator.RewriteOperator:
    return operator.RewriteOperator(
        name, operator.same_shape, meaning, arguments=(operator.TENSOR,) * arity, merging=ALIKE
    )


def _comparison(name: str) -> operator.MeaningRule:
    """Truth as a number."""
    return lambda params, shapes: (
        operator.Step(name, {}),
        operator.Step("cast", {"to": DType.F64}),
    )


def _select(params: Params, shapes: Shapes) -> tuple[operator.Step, ...]:
    return (operator.Step("cast", {"to": DType.BOOL}, argument=0), operator.Step("where", {}))


ARITHMETIC = ("add", "mul", "sub", "div", "max", "min", "pow")
_COMPARISONS = ("less", "less_or_equal", "equal")
PAIR_OPERATORS = (
    *(_of_same_shape(f"ew{name}", operator.plain(name)) for name in ARITHMETIC),
    *(_of_same_shape(name, _comparison(name)) for name in _COMPARISONS),
)

PAIRS = frozenset(each.name for each in PAIR_OPERATORS)
"""The operators of two elements at the same position."""

ELEMENTWISE = (
    *PAIR_OPERATORS,
    _of_same_shape("select", _select, arity=3),
    operator.RewriteOperator(
        "scalar_mul",
        _scaled_shape,
        operator.plain("mul"),
        arguments=(operator.TENSOR, operator.ArgumentRole.NUMBER),
        merging=ALIKE,
    ),
)


def _function(name: str, *parameters: Parameter) -> operator.RewriteOperator:
    """A function whose parameters are the attributes of the same name of the operator of `ops`."""
    return operator.RewriteOperator(
        name,
        operator.same_shape,
        operator.plain(name, *(each.name for each in parameters)),
        parameters=parameters,
        merging=ALIKE,
    )


_PLAIN = (
    *("relu", "exp", "sigmoid", "tanh", "neg", "abs", "sign", "floor", "ceil", "sqrt", "rsqrt"),
    *("log", "erf", "sin", "cos", "softplus", "hard_swish"),
)

FUNCTIONS = (
    *map(_function, _PLAIN),
    _function("gelu", Parameter("approximate", words=("none", "tanh"), is_beside_shape=True)),
    _function("leaky_relu", number_parameter("alpha", 0.01, 0.5, 2.0, -1.0)),
    _function("elu", number_parameter("alpha", 1.0, 0.5)),
    _function("swish", number_parameter("alpha", 1.0, 1.702)),
    _function(
        "hard_sigmoid",
        number_parameter("alpha", 0.2, 1 / 6, -1.0),
        number_parameter("beta", 0.5, 0.0),
    ),
    _function(
        "clip",
        number_parameter("min", 0.0, -1.0, float("-inf")),
        number_parameter("max", 6.0, 1.0, float("inf")),
    ),
)


def _batch_norm_shape(params: Params, shapes: Shapes, needs: Needs) -> Shape:
    x, *vectors = shapes
    needs.hold(len(x) >= 2, "batch_norm of a tensor without channels")
    for vector in vectors:
        needs.equal_shapes((x[1],), vector)
    return x


def _layer_norm_shape(params: Params, shapes: Shapes, needs: Needs) -> Shape:
    x, *vectors = shapes
    for each in vectors:
        needs.equal_shapes(x[axis_of(params[0], x) :], each)
    return x


NORMALIZATIONS = (
    operator.RewriteOperator(
        "batch_norm",
        _batch_norm_shape,
        operator.plain("batch_norm"),
        arguments=(*(operator.TENSOR,) * 4, operator.ArgumentRole.VARIANCE),
        merging=CHANNELS,
    ),
    operator.RewriteOperator(
        "layer_norm",
        _layer_norm_shape,
        operator.plain("layer_norm", "axis", "epsilon"),
        arguments=(operator.TENSOR, operator.TENSOR, operator.TENSOR),
        parameters=(AXIS, number_parameter("epsilon", 1e-5, 0.5)),
        merging=ROWS,
    ),
    operator.RewriteOperator(
        "softmax",
        operator.shape_with_axis,
        operator.plain("softmax", "axis"),
        parameters=(AXIS,),
        merging=BESIDE_AXIS,
    ),
)


def _reduced_shape(params: Params, shapes: Shapes, needs: Needs) -> Shape:
    (x,) = shapes
    return operator.replaced(x, axis_of(params[0], x), 1)


_FOLDS = ("reduce_sum", "reduce_mean", "reduce_max", "reduce_min")
REDUCTIONS = frozenset(_FOLDS)

FOLDS = tuple(
    operator.RewriteOperator(
        name, _reduced_shape, operator.listed(name, "axes"), parameters=(AXIS,), merging=BESIDE_AXIS
    )
    for name in _FOLDS
)


def _matmul_shape(params: Params, shapes: Shapes, needs: Needs) -> Shape:
    a, b = shapes
    needs.hold(len(a) >= 2 and len(a) == len(b), "matmul of unequal ranks, or below 2")
    needs.equal_shapes(a[:-2], b[:-2])
    needs.equal(a[-1], b[-2])
    return (*a[:-1], b[-1])


PRODUCTS = (
    operator.RewriteOperator(
        "matmul",
        _matmul_shape,
        operator.plain("matmul"),
        arguments=(operator.TENSOR, operator.TENSOR),
        merging=BATCHES,
    ),
)
