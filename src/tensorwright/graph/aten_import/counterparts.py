"""ATen operators that are one operator of tensorwright, one row each."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tensorwright.graph.aten_import.call import Call, Results, Table, tensors
from tensorwright.graph.aten_import.promotion import as_float, promoted


class Elements(Enum):
    """In which element type an operator computes."""

    OWN = "that of its operand"
    FLOAT = "that of its operand, f32 for integers"
    COMMON = "that of all operands together"


@dataclass(frozen=True, slots=True)
class Counterpart:
    """An ATen operator and the operator of tensorwright that computes the same.

    theirs, ours   the names of both
    operands       the tensors, by the names of ATen's schema; all but the first are optional
    attributes     our name, ATen's name and the default of each attribute
    """

    theirs: str
    ours: str
    elements: Elements = Elements.OWN
    operands: tuple[str, ...] = ("self",)
    attributes: tuple[tuple[str, str, int | float | bool | str], ...] = ()

    def convert(self, call: Call) -> Results:
        """The converter of the operator."""
        given = tuple(name for name in self.operands if call.has(name))
        match self.elements:
            case Elements.COMMON:
                operands = promoted(call, *given)
            case Elements.FLOAT:
                operands = tuple(as_float(call, call.tensor(name)) for name in given)
            case Elements.OWN:
                operands = tuple(call.tensor(name) for name in given)
        attributes = {
            ours: _attribute(call, theirs, default) for ours, theirs, default in self.attributes
        }
        return tensors(call.add(self.ours, *operands, **attributes))


def _attribute(
    call: Call, name: str, default: int | float | bool | str
) -> int | float | bool | str:
    match default:
        case bool():
            return call.flag(name, default=default)
        case int():
            return call.integer(name, default)
        case float():
            return call.real(name, default)
        case str():
            return call.text(name, default)


_ROWS_OWN = (
    ("abs", "abs"),
    ("neg", "neg"),
    ("relu", "relu"),
    ("isnan", "isnan"),
    ("isinf", "isinf"),
    ("hardswish", "hard_swish"),
    ("mish", "mish"),
)
_ROWS_FLOAT = (
    ("sqrt", "sqrt"),
    ("rsqrt", "rsqrt"),
    ("reciprocal", "reciprocal"),
    ("exp", "exp"),
    ("expm1", "expm1"),
    ("log", "log"),
    ("log1p", "log1p"),
    ("erf", "erf"),
    ("special_erf", "erf"),
    ("sin", "sin"),
    ("cos", "cos"),
    ("tan", "tan"),
    ("asin", "asin"),
    ("acos", "acos"),
    ("atan", "atan"),
    ("sinh", "sinh"),
    ("cosh", "cosh"),
    ("tanh", "tanh"),
    ("asinh", "asinh"),
    ("acosh", "acosh"),
    ("atanh", "atanh"),
    ("sigmoid", "sigmoid"),
    ("special_expit", "sigmoid"),
    ("silu", "swish"),
    ("softsign", "softsign"),
    ("selu", "selu"),
)
_ROWS_COMMON = (
    ("maximum", "max"),
    ("minimum", "min"),
    ("eq", "equal"),
    ("ne", "not_equal"),
    ("lt", "less"),
    ("le", "less_or_equal"),
    ("gt", "greater"),
    ("ge", "greater_or_equal"),
    ("remainder", "floormod"),
    ("fmod", "fmod"),
)
_BOTH = ("self", "other")
_HARD_SIGMOID = (("alpha", "", 1 / 6), ("beta", "", 0.5))

COUNTERPARTS = (
    *(Counterpart(theirs, ours) for theirs, ours in _ROWS_OWN),
    *(Counterpart(theirs, ours, Elements.FLOAT) for theirs, ours in _ROWS_FLOAT),
    *(Counterpart(theirs, ours, Elements.COMMON, _BOTH) for theirs, ours in _ROWS_COMMON),
    Counterpart("hardsigmoid", "hard_sigmoid", Elements.FLOAT, attributes=_HARD_SIGMOID),
    Counterpart("leaky_relu", "leaky_relu", attributes=(("alpha", "negative_slope", 0.01),)),
    Counterpart("gelu", "gelu", attributes=(("approximate", "approximate", "none"),)),
    Counterpart("celu", "celu", attributes=(("alpha", "alpha", 1.0),)),
    Counterpart("mm", "matmul", operands=("self", "mat2")),
    Counterpart("bmm", "matmul", operands=("self", "mat2")),
    Counterpart("mv", "matmul", operands=("self", "vec")),
    Counterpart("dot", "matmul", operands=("self", "tensor")),
    Counterpart("matmul", "matmul", operands=("self", "other")),
)
ALIKE: Table = tuple((each.theirs, each.convert) for each in COUNTERPARTS)
