"""Functions of single elements, with numbers that shape them.

relu(x)                       x (2, 3) -> (2, 3)
leaky_relu[f0p01](x)          x, but 0.01 * x below 0
clip[f0p0, f6p0](x)           min(max(x, 0), 6)
sqrt(x)                       elements without a value are not covered

A number that is not a size is a word (`parameters.number_word`): f0p01 is 0.01, fm1p5 is -1.5.
"""

from __future__ import annotations

from tensorwright.rewriting.operators.dimensions import ALIKE
from tensorwright.rewriting.operators.operator import (
    RewriteOperator,
    StructureKind,
    plain,
    same_shape,
)
from tensorwright.rewriting.operators.parameters import Parameter, number_parameter
from tensorwright.rewriting.operators.split_points import first_points


def _function(name: str, *parameters: Parameter) -> RewriteOperator:
    """A function whose parameters are the attributes of the same name of the operator of `ops`."""
    return RewriteOperator(
        name,
        same_shape,
        plain(name, *(each.name for each in parameters)),
        parameters=parameters,
        structure=StructureKind.POINTWISE,
        split_points=first_points,
        merging=ALIKE,
    )


_PLAIN = (
    *("relu", "exp", "sigmoid", "tanh", "neg", "abs", "sign", "floor", "ceil", "sqrt", "rsqrt"),
    *("log", "erf", "sin", "cos", "softplus", "hard_swish"),
)

OPERATORS = (
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
