"""Operators that others and we have alike, attribute by attribute; import and export read it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

from tensorwright.graph.imports.call import AttributeDefault, Call, Results, Table
from tensorwright.graph.imports.promotion import as_float, promoted
from tensorwright.ops import AttributeValue

_OUR_NAMES = {
    "num_groups": "groups",
    "transA": "trans_a",
    "transB": "trans_b",
    "padding_mode": "padding",
    "negative_slope": "alpha",
}


class Elements(Enum):
    """In which element type an operator of ATen computes."""

    OWN = "that of its operand"
    FLOAT = "that of its operand, f32 for integers"
    COMMON = "that of all operands together"


@dataclass(frozen=True, slots=True)
class Counterpart:
    """An operator of ONNX or ATen and ours.

    attributes  their name and default of each; a type where the node must give it
    opset       the operator set of ONNX that export needs at least
    number      our integer attribute that is ONNX's second input, and its default; "" for none
    fixed       our attributes that theirs has not, with the values that it implies
    elements, operands   of ATen: how it computes, and its tensors by name
    """

    theirs: str
    ours: str
    attributes: tuple[tuple[str, AttributeDefault], ...] = ()
    opset: int = 0
    number: tuple[str, AttributeDefault] = ("", 0)
    fixed: tuple[tuple[str, AttributeValue], ...] = ()
    elements: Elements = Elements.OWN
    operands: tuple[str, ...] = ("self",)

    def named_attributes(self) -> Iterator[tuple[str, str, AttributeDefault]]:
        """Our name, their name and the default of each attribute."""
        return ((_OUR_NAMES.get(name, name), name, default) for name, default in self.attributes)

    def convert(self, call: Call, **more: AttributeValue) -> Results:
        """The converter of the operator; `more` are attributes that it does not read."""
        given = {ours: call.value(theirs, each) for ours, theirs, each in self.named_attributes()}
        return (call.add(self.ours, *self._tensors(call), **dict(self.fixed), **more, **given),)

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

    def convert_with_number(self, call: Call) -> Results:
        """As `convert`, of an operator whose second input is a number: an attribute to us."""
        name, default = self.number
        value = default if isinstance(default, int) and not call.has(1) else call.index(1, name)
        return self.convert(replace(call, operands=call.operands[:1]), **{name: value})


_PLAIN = """
    abs               Abs                  abs
    neg               Neg                  neg
    relu              Relu                 relu
    isnan             IsNaN                isnan
    isinf             -                    isinf
    hard_swish        HardSwish            hardswish
    mish              Mish                 mish
    sqrt              Sqrt                 sqrt                 FLOAT
    rsqrt             -                    rsqrt                FLOAT
    reciprocal        Reciprocal           reciprocal           FLOAT
    exp               Exp                  exp                  FLOAT
    expm1             -                    expm1                FLOAT
    log               Log                  log                  FLOAT
    log1p             -                    log1p                FLOAT
    erf               Erf                  erf,special_erf      FLOAT
    sin               Sin                  sin                  FLOAT
    cos               Cos                  cos                  FLOAT
    tan               Tan                  tan                  FLOAT
    asin              Asin                 asin                 FLOAT
    acos              Acos                 acos                 FLOAT
    atan              Atan                 atan                 FLOAT
    sinh              Sinh                 sinh                 FLOAT
    cosh              Cosh                 cosh                 FLOAT
    tanh              Tanh                 tanh                 FLOAT
    asinh             Asinh                asinh                FLOAT
    acosh             Acosh                acosh                FLOAT
    atanh             Atanh                atanh                FLOAT
    sigmoid           Sigmoid              sigmoid,special_expit  FLOAT
    swish             -                    silu                 FLOAT
    softsign          Softsign             softsign             FLOAT
    selu              -                    selu                 FLOAT
    max               -                    maximum              COMMON
    min               -                    minimum              COMMON
    equal             Equal                eq                   COMMON
    not_equal         -                    ne                   COMMON
    less              Less                 lt                   COMMON
    less_or_equal     LessOrEqual          le                   COMMON
    greater           Greater              gt                   COMMON
    greater_or_equal  GreaterOrEqual       ge                   COMMON
    floormod          -                    remainder            COMMON
    fmod              -                    fmod                 COMMON
    matmul            MatMul               -
    add               Add                  -
    sub               Sub                  -
    mul               Mul                  -
    div               Div                  -
    pow               Pow                  -
    sign              Sign                 -
    floor             Floor                -
    ceil              Ceil                 -
    round             Round                -
    not               Not                  -
    and               And                  -
    or                Or                   -
    xor               Xor                  -
    bitwise_not       BitwiseNot           -
    bitwise_and       BitwiseAnd           -
    bitwise_or        BitwiseOr            -
    bitwise_xor       BitwiseXor           -
    where             Where                -
    prelu             PRelu                -
    softplus          Softplus             -
    global_max_pool   GlobalMaxPool        -
    global_average_pool  GlobalAveragePool  -
    """
"""Our operators without attributes, ONNX's and ATen's names, and in which type ATen's computes."""

_PLAIN_ROWS = tuple(row.split() for row in _PLAIN.strip().splitlines())
_BOTH = ("self", "other")
_HARD = (("alpha", 1 / 6), ("beta", 0.5))


def _plain_in_aten(ours: str, name: str, elements: str = "OWN") -> Counterpart:
    operands = _BOTH if elements == "COMMON" else ("self",)
    return Counterpart(name, ours, elements=Elements[elements], operands=operands)


_SEARCH = (("axis", 0), ("keepdims", True), ("select_last_index", False))
_SELU = (("alpha", 1.67326319217681884765625), ("gamma", 1.05070102214813232421875))
COUNTERPARTS = (
    *(Counterpart(theirs, ours) for ours, theirs, *_ in _PLAIN_ROWS if theirs != "-"),
    Counterpart("LeakyRelu", "leaky_relu", (("alpha", 0.01),)),
    Counterpart("Elu", "elu", (("alpha", 1.0),)),
    Counterpart("Celu", "celu", (("alpha", 1.0),)),
    Counterpart("ThresholdedRelu", "thresholded_relu", (("alpha", 1.0),)),
    Counterpart("Selu", "selu", _SELU),
    Counterpart("HardSigmoid", "hard_sigmoid", (("alpha", 0.2), ("beta", 0.5))),
    Counterpart("Swish", "swish", (("alpha", 1.0),), opset=24),
    Counterpart("Shrink", "shrink", (("bias", 0.0), ("lambd", 0.5))),
    Counterpart("Gelu", "gelu", (("approximate", "none"),), opset=20),
    Counterpart("IsInf", "isinf", (("detect_negative", True), ("detect_positive", True))),
    Counterpart("ArgMax", "argmax", _SEARCH, fixed=(("skip_nan", True),)),
    Counterpart("ArgMin", "argmin", _SEARCH, fixed=(("skip_nan", True),)),
    Counterpart("Concat", "concat", (("axis", int),)),
    Counterpart("DepthToSpace", "depth_to_space", (("blocksize", int), ("mode", "DCR"))),
    Counterpart("Einsum", "einsum", (("equation", str),)),
    Counterpart(
        "Gemm", "gemm", (("alpha", 1.0), ("beta", 1.0), ("transA", False), ("transB", False))
    ),
    Counterpart("GlobalLpPool", "global_lp_pool", (("p", 2),)),
    Counterpart("LRN", "lrn", (("size", int), ("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0))),
    Counterpart("LpNormalization", "lp_normalization", (("axis", -1), ("p", 2))),
)
SCATTER = Counterpart("ScatterElements", "scatter_elements", (("axis", 0), ("reduction", "none")))
AT_POSITIONS = (
    Counterpart("Gather", "gather", (("axis", 0),)),
    Counterpart("GatherElements", "gather_elements", (("axis", 0),)),
    Counterpart("GatherND", "gather_nd", (("batch_dims", 0),)),
    Counterpart("ReverseSequence", "reverse_sequence", (("batch_axis", 1), ("time_axis", 0))),
    SCATTER,
    Counterpart("ScatterND", "scatter_nd", (("reduction", "none"),)),
)
"""Input 1 holds positions, which ONNX may give as other integers."""

_RUNNING = (("exclusive", False), ("reverse", False))
WITH_NUMBER = (
    Counterpart("Trilu", "trilu", (("upper", True),), number=("k", 0)),
    Counterpart("CumSum", "cumsum", _RUNNING, number=("axis", int)),
    Counterpart("CumProd", "cumprod", _RUNNING, opset=26, number=("axis", int)),
)

_CEIL = ("ceil_mode", False)
MAX_POOL = Counterpart("MaxPool", "max_pool", (_CEIL,))
POOLS = (
    Counterpart("AveragePool", "average_pool", (_CEIL, ("count_include_pad", False))),
    Counterpart("LpPool", "lp_pool", (_CEIL, ("p", 2))),
)
"""Beside the attributes of their windows."""

_EPSILON = ("epsilon", 1e-5)
TRAILING_NORMS = (
    Counterpart("LayerNormalization", "layer_norm", (("axis", -1), _EPSILON)),
    Counterpart("RMSNormalization", "rms_norm", (("axis", -1), _EPSILON), opset=23),
    Counterpart("GroupNormalization", "group_norm", (("num_groups", int), _EPSILON), opset=21),
)
"""Of wide floats and without statistics; otherwise the standard's function."""

SOFTMAXES = (
    Counterpart("Softmax", "softmax", (("axis", -1),)),
    Counterpart("LogSoftmax", "log_softmax", (("axis", -1),)),
    Counterpart("Hardmax", "hardmax", (("axis", -1),)),
)
WRITTEN_ALIKE = (
    Counterpart("BatchNormalization", "batch_norm", (_EPSILON,)),
    Counterpart("InstanceNormalization", "instance_norm", (_EPSILON,)),
    Counterpart("MatMulInteger", "matmul_integer"),
    *SOFTMAXES,
    Counterpart("Identity", "identity"),
    Counterpart("SpaceToDepth", "space_to_depth", (("blocksize", int),)),
    Counterpart("DequantizeLinear", "dequantize_linear", (("axis", 1),)),
    Counterpart(
        "GridSample",
        "grid_sample",
        (("mode", "linear"), ("padding_mode", "zeros"), ("align_corners", False)),
        opset=20,
    ),
)
"""What export writes as it is; import has more cases to tell apart."""

IN_ATEN = (
    *(
        _plain_in_aten(ours, name, *rest)
        for ours, _, names, *rest in _PLAIN_ROWS
        if names != "-"
        for name in names.split(",")
    ),
    Counterpart("hardsigmoid", "hard_sigmoid", fixed=_HARD, elements=Elements.FLOAT),
    Counterpart("leaky_relu", "leaky_relu", (("negative_slope", 0.01),)),
    Counterpart("gelu", "gelu", (("approximate", "none"),)),
    Counterpart("celu", "celu", (("alpha", 1.0),)),
    Counterpart("mm", "matmul", operands=("self", "mat2")),
    Counterpart("bmm", "matmul", operands=("self", "mat2")),
    Counterpart("mv", "matmul", operands=("self", "vec")),
    Counterpart("dot", "matmul", operands=("self", "tensor")),
    Counterpart("matmul", "matmul", operands=("self", "other")),
)
"""Operators of ATen."""

ALIKE: Table = (
    *((each.theirs, each.convert) for each in COUNTERPARTS),
    *((each.theirs, each.convert_with_number) for each in WITH_NUMBER),
)
ATEN_ALIKE: Table = tuple((each.theirs, each.convert) for each in IN_ATEN)
