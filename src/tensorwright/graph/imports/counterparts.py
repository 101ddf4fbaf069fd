"""Operators that others and we have alike; import and export read the table.

Names, kinds and defaults of attributes are those of our operator's record; `_OTHER_NAMES` has the
names that others have for them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum

from tensorwright.graph.imports.call import Call, Results, Table
from tensorwright.graph.imports.formula import as_float, promoted
from tensorwright.ops import AttributeValue, operator

_OTHER_NAMES = {
    "groups": ("num_groups", "group"),
    "trans_a": ("transA",),
    "trans_b": ("transB",),
    "padding": ("padding_mode",),
    "alpha": ("negative_slope",),
    "kernel": ("kernel_shape",),
    "coordinates": ("coordinate_transformation_mode",),
    "cubic_a": ("cubic_coeff_a",),
}


def names_of(attribute: str) -> tuple[str, ...]:
    """The names that an attribute of ours has elsewhere, its own one first."""
    return (attribute, *_OTHER_NAMES.get(attribute, ()))


class Elements(Enum):
    """In which element type an operator of ATen computes."""

    OWN = "that of its operand"
    FLOAT = "that of its operand, f32 for integers"
    COMMON = "that of all operands together"


@dataclass(frozen=True, slots=True)
class Counterpart:
    """An operator of ONNX or ATen and ours.

    opset       the operator set of ONNX that export needs at least
    number      our integer attribute that is ONNX's second input; "" for none
    fixed       our attributes that theirs has not, with the values that it implies
    elements, operands   of ATen: how it computes, and its tensors by name
    """

    theirs: str
    ours: str
    opset: int = 0
    number: str = ""
    fixed: tuple[tuple[str, AttributeValue], ...] = ()
    elements: Elements = Elements.OWN
    operands: tuple[str, ...] = ("self",)

    def convert(self, call: Call, **more: AttributeValue) -> Results:
        """The converter of the operator; `more` are attributes that it does not read."""
        given: dict[str, AttributeValue] = {**dict(self.fixed), **more}
        if self.number:
            given[self.number] = call.index(1, self.number) if call.has(1) else 0
            call = replace(call, operands=call.operands[:1])
        for each in operator(self.ours).attributes:
            if each.name not in given:
                names = [name for name in names_of(each.name) if call.has(name)]
                name = (names or names_of(each.name)[-1:])[0]
                given[each.name] = call.value(name, each.default)
        return (call.add(self.ours, *self._tensors(call), **given),)

    def _tensors(self, call: Call) -> tuple[str, ...]:
        if call.operands:
            return call.tensors()
        match self.elements:
            case Elements.COMMON:
                return promoted(call, *self.operands)
            case Elements.FLOAT:
                return tuple(as_float(call, each) for each in call.optional(*self.operands))
            case Elements.OWN:
                return call.optional(*self.operands)


_ALIKE = """
    abs               Abs             abs
    neg               Neg             neg
    relu              Relu            relu
    isnan             IsNaN           isnan
    isinf             IsInf           isinf
    hard_swish        HardSwish       hardswish
    mish              Mish            mish
    sqrt              Sqrt            sqrt FLOAT
    rsqrt             -               rsqrt FLOAT
    reciprocal        Reciprocal      reciprocal FLOAT
    exp               Exp             exp FLOAT
    expm1             -               expm1 FLOAT
    log               Log             log FLOAT
    log1p             -               log1p FLOAT
    erf               Erf             erf|special_erf FLOAT
    sin               Sin             sin FLOAT
    cos               Cos             cos FLOAT
    tan               Tan             tan FLOAT
    asin              Asin            asin FLOAT
    acos              Acos            acos FLOAT
    atan              Atan            atan FLOAT
    sinh              Sinh            sinh FLOAT
    cosh              Cosh            cosh FLOAT
    tanh              Tanh            tanh FLOAT
    asinh             Asinh           asinh FLOAT
    acosh             Acosh           acosh FLOAT
    atanh             Atanh           atanh FLOAT
    sigmoid           Sigmoid         sigmoid|special_expit FLOAT
    swish             Swish@24        silu FLOAT
    softsign          Softsign        softsign FLOAT
    selu              Selu            selu FLOAT
    max               -               maximum COMMON
    min               -               minimum COMMON
    equal             Equal           eq COMMON
    not_equal         -               ne COMMON
    less              Less            lt COMMON
    less_or_equal     LessOrEqual     le COMMON
    greater           Greater         gt COMMON
    greater_or_equal  GreaterOrEqual  ge COMMON
    floormod          -               remainder COMMON
    fmod              -               fmod COMMON
    leaky_relu        LeakyRelu       leaky_relu
    celu              Celu            celu
    gelu              Gelu@20         gelu
    """
"""Ours, ONNX's with its second input and its operator set, ATen's, and in which type it computes.

Import and export take these as they are.
"""

_ALONE = (
    "matmul MatMul, add Add, sub Sub, mul Mul, div Div, pow Pow, sign Sign, floor Floor, "
    "ceil Ceil, round Round, not Not, and And, or Or, xor Xor, bitwise_not BitwiseNot, "
    "bitwise_and BitwiseAnd, bitwise_or BitwiseOr, bitwise_xor BitwiseXor, where Where, "
    "prelu PRelu, softplus Softplus, global_max_pool GlobalMaxPool, "
    "global_average_pool GlobalAveragePool, elu Elu, thresholded_relu ThresholdedRelu, "
    "hard_sigmoid HardSigmoid, shrink Shrink, argmax ArgMax, argmin ArgMin, concat Concat, "
    "depth_to_space DepthToSpace, einsum Einsum, gemm Gemm, global_lp_pool GlobalLpPool, "
    "lrn LRN, lp_normalization LpNormalization, trilu Trilu(k), cumsum CumSum(axis), "
    "cumprod CumProd(axis)@26"
)
"""As `_ALIKE`, of ONNX alone."""

_THEIRS = re.compile(r"(\w+)(?:\((\w+)\))?(?:@(\d+))?")
_SKIP_NAN = (("skip_nan", True),)
_HARD = (("alpha", 1 / 6), ("beta", 0.5))


def _in_onnx(table: str) -> tuple[Counterpart, ...]:
    rows = [row.split() for row in re.split(r"[,\n]", table.strip())]
    return tuple(_row(ours, theirs) for ours, theirs, *_ in rows if theirs != "-")


def _row(ours: str, text: str) -> Counterpart:
    match = _THEIRS.fullmatch(text)
    assert match is not None, f"a row has no {text}"
    theirs, number, opset = match.groups()
    fixed = _SKIP_NAN if theirs in ("ArgMax", "ArgMin") else ()
    return Counterpart(theirs, ours, int(opset or 0), number or "", fixed)


def _in_aten(ours: str, name: str, elements: str = "OWN") -> Counterpart:
    operands = ("self", "other") if elements == "COMMON" else ("self",)
    return Counterpart(name, ours, elements=Elements[elements], operands=operands)


AT_POSITIONS = _in_onnx(
    "gather Gather, gather_elements GatherElements, gather_nd GatherND, scatter_nd ScatterND, "
    "scatter_elements ScatterElements, reverse_sequence ReverseSequence"
)
"""Input 1 holds positions, which ONNX may give as other integers."""
MAX_POOL, *POOLS = _in_onnx("max_pool MaxPool, average_pool AveragePool, lp_pool LpPool")
"""They have attributes of windows."""
TRAILING_NORMS = _in_onnx(
    "layer_norm LayerNormalization, rms_norm RMSNormalization@23, group_norm GroupNormalization@21"
)
"""Of wide floats and without statistics; otherwise the standard's function."""
SOFTMAXES = _in_onnx("softmax Softmax, log_softmax LogSoftmax, hardmax Hardmax")
VARIADIC = _in_onnx("sum Sum, mean Mean, max Max, min Min")
_WRITTEN = _in_onnx(
    "batch_norm BatchNormalization, instance_norm InstanceNormalization, identity Identity, "
    "matmul_integer MatMulInteger, space_to_depth SpaceToDepth, grid_sample GridSample@20, "
    "dequantize_linear DequantizeLinear"
)
_BOTH = (*_in_onnx(_ALIKE), *_in_onnx(_ALONE))
_ACTIVATIONS = "Relu Tanh Sigmoid Softsign Softplus Elu LeakyRelu HardSigmoid HardSwish".split()
ACTIVATIONS = {each.theirs: each.ours for each in _BOTH if each.theirs in _ACTIVATIONS}
"""What an operator with an activation may name, and ours."""
WRITTEN_ALIKE = (*_BOTH, *AT_POSITIONS, *TRAILING_NORMS, *SOFTMAXES, *VARIADIC, *_WRITTEN)
"""What export writes as it is; import has more cases to tell apart for some."""

_ATEN_ROWS = [row.split() for row in _ALIKE.strip().splitlines()]
IN_ATEN = (
    *(
        _in_aten(ours, name, *rest)
        for ours, _, names, *rest in _ATEN_ROWS
        if names != "-"
        for name in names.split("|")
    ),
    Counterpart("hardsigmoid", "hard_sigmoid", fixed=_HARD, elements=Elements.FLOAT),
    Counterpart("mm", "matmul", operands=("self", "mat2")),
    Counterpart("bmm", "matmul", operands=("self", "mat2")),
    Counterpart("mv", "matmul", operands=("self", "vec")),
    Counterpart("dot", "matmul", operands=("self", "tensor")),
    Counterpart("matmul", "matmul", operands=("self", "other")),
)
"""Operators of ATen."""

ALIKE: Table = tuple((each.theirs, each.convert) for each in _BOTH)
ATEN_ALIKE: Table = tuple((each.theirs, each.convert) for each in IN_ATEN)
