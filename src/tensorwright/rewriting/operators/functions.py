"""Functions of single elements, with numbers that shape them.

relu(x)                       x (2, 3) -> (2, 3)
leaky_relu[f0p01](x)          x, but 0.01 * x below 0
clip[f0p0, f6p0](x)           min(max(x, 0), 6)
sqrt(x)                       nothing is said of elements at which it has no value

A number that is no size is a word (`number_word`): f0p01 is 0.01, fm1p5 is -1.5.
"""

from __future__ import annotations

import re

from tensorwright.rewriting.dims import Shape
from tensorwright.rewriting.operators.dimensions import ALIKE
from tensorwright.rewriting.operators.operator import (
    TENSOR,
    IntShape,
    MeaningRule,
    Parameter,
    RewriteOperator,
    Step,
    StructureKind,
    plain,
)
from tensorwright.rewriting.operators.split_points import first_points
from tensorwright.rewriting.shapes import Needs, Params, Shapes
from tensorwright.rewriting.terms import Param

_NUMBER = r"f(m?\d+p\d+|m?\d+(p\d+)?em?\d+|m?inf)"


def number_word(value: float) -> str:
    """The word of a number: 0.01 is f0p01, -1.5 is fm1p5, infinity finf."""
    return "f" + repr(float(value)).replace(".", "p").replace("-", "m").replace("+", "")


def number_of_word(word: Param) -> float:
    """The number that a word is.

    Raises:  ValueError for another word.
    """
    text = str(word)
    if not re.fullmatch(_NUMBER, text):
        raise ValueError(f"{text} is no word of a number")
    return float(text[1:].replace("p", ".").replace("m", "-"))


def number_parameter(name: str, *samples: float) -> Parameter:
    """A parameter that is a number and no size; it is tried at the samples."""
    return Parameter(
        name, form=_NUMBER, samples=tuple(map(number_word, samples)), is_beside_shape=True
    )


def _same_shape(params: Params, shapes: Shapes, needs: Needs) -> Shape:
    return shapes[0]


def _with_numbers(name: str, attributes: tuple[str, ...]) -> MeaningRule:
    def rule(params: Params, shapes: tuple[IntShape, ...]) -> tuple[Step, ...]:
        return (Step(name, dict(zip(attributes, map(number_of_word, params), strict=True))),)

    return rule


def _function(
    name: str, meaning: MeaningRule | None = None, *parameters: Parameter
) -> RewriteOperator:
    return RewriteOperator(
        name,
        (TENSOR,),
        parameters,
        _same_shape,
        meaning or plain(name),
        StructureKind.POINTWISE,
        first_points,
        merging=ALIKE,
    )


def _shaped(name: str, *parameters: Parameter) -> RewriteOperator:
    """A function of numbers that are the attributes of the same name of the operator of `ops`."""
    names = tuple(each.name for each in parameters)
    return _function(name, _with_numbers(name, names), *parameters)


def _gelu(params: Params, shapes: tuple[IntShape, ...]) -> tuple[Step, ...]:
    return (Step("gelu", {"approximate": str(params[0])}),)


_PLAIN = (
    *("relu", "exp", "sigmoid", "tanh", "neg", "abs", "sign", "floor", "ceil", "sqrt", "rsqrt"),
    *("log", "erf", "sin", "cos", "softplus", "hard_swish"),
)

OPERATORS = (
    *map(_function, _PLAIN),
    _function(
        "gelu", _gelu, Parameter("approximate", words=("none", "tanh"), is_beside_shape=True)
    ),
    _shaped("leaky_relu", number_parameter("alpha", 0.01, 0.5, 2.0, -1.0)),
    _shaped("elu", number_parameter("alpha", 1.0, 0.5)),
    _shaped("swish", number_parameter("alpha", 1.0, 1.702)),
    _shaped(
        "hard_sigmoid",
        number_parameter("alpha", 0.2, 1 / 6, -1.0),
        number_parameter("beta", 0.5, 0.0),
    ),
    _shaped(
        "clip",
        number_parameter("min", 0.0, -1.0, float("-inf")),
        number_parameter("max", 6.0, 1.0, float("inf")),
    ),
)
