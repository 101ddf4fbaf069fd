"""One small node for each operator of ONNX, and its inputs for each type that its schema allows.

A recipe has the inputs and attributes of a node, as text. An input is

    (2, 3)            any numbers of the type, infinities, the largest and the least among them, NaN
    sums(2, 3)        as before, but integers are small, so that their sums are
    finite(2, 3)      any numbers of the type without NaN and infinities
    wrapping(2, 3)    any integers; floats are ordinary ones, whose sums depend little on the order
    tame(2, 3)        numbers from 1 to 3, for divisors, exponents and what would overflow
    unit(2, 3)        numbers from 0 to 1
    an array          these numbers, in the type that the schema asks for: a constant of the model
    None              left out
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnxruntime.capi.onnxruntime_pybind11_state as onnxruntime_schemas
from onnx import ModelProto, TensorProto, defs, helper
from tests.tables import rows_of

from tensorwright.base import DType
from tensorwright.ops import Array

OPSET = 28
ONNX_TYPES = {
    DType.F32: TensorProto.FLOAT,
    DType.F64: TensorProto.DOUBLE,
    DType.F16: TensorProto.FLOAT16,
    DType.BF16: TensorProto.BFLOAT16,
    DType.BOOL: TensorProto.BOOL,
    DType.I8: TensorProto.INT8,
    DType.I16: TensorProto.INT16,
    DType.I32: TensorProto.INT32,
    DType.I64: TensorProto.INT64,
    DType.U8: TensorProto.UINT8,
    DType.U16: TensorProto.UINT16,
    DType.U32: TensorProto.UINT32,
    DType.U64: TensorProto.UINT64,
}
TYPE_NAMES = {
    f"tensor({TensorProto.DataType.Name(number).lower()})": dtype
    for dtype, number in ONNX_TYPES.items()
}
USUAL = (DType.F32, DType.I64, DType.U8, DType.BOOL)  # the first that a schema allows
_LARGEST = {
    dtype: float(np.array(bits).view(dtype.numpy)[()])
    for dtype, bits in (
        (DType.F16, np.uint16(0x7BFF)),
        (DType.BF16, np.uint16(0x7F7F)),
        (DType.F32, np.uint32(0x7F7FFFFF)),
        (DType.F64, np.uint64(0x7FEFFFFFFFFFFFFF)),
    )
}


@dataclass(frozen=True)
class Numbers:
    """Numbers of some shape between two bounds; without bounds any, special ones among them."""

    shape: tuple[int, ...]
    bounds: tuple[float, float] | None = None
    are_finite: bool = False
    are_sums: bool = False
    are_ordinary: bool = False


@dataclass(frozen=True)
class OfType:
    """An attribute that names the type of a schema's variable, or a number 1 of that type."""

    variable: str
    is_number: bool = False


@dataclass(frozen=True, eq=False)
class Recipe:
    """A node: its inputs, attributes, how many outputs it has, and of which operator set it is.

    formals   the types of its inputs where the schema does not say them one by one
    """

    operator: str
    inputs: tuple[Any, ...]
    attributes: Mapping[str, Any]
    label: str = ""
    outputs: int = 1
    opset: int = OPSET
    domain: str = ""
    formals: tuple[str, ...] = ()

    def __str__(self) -> str:
        name = f"{self.domain}.{self.operator}" if self.domain else self.operator
        return f"{name} {self.label}".strip()


@dataclass(frozen=True)
class Case:
    """A recipe with a type for each variable of its schema; `usual` are those of its first case."""

    recipe: Recipe
    types: Mapping[str, DType]
    usual: Mapping[str, DType] = field(compare=False)

    @property
    def kind(self) -> str:
        """The types that are not the usual ones."""
        unusual = [f"{v}={t}" for v, t in self.types.items() if self.usual[v] is not t]
        return " ".join(unusual) or "usual"

    def __str__(self) -> str:
        return f"{self.recipe}: {self.kind}"

    def as_usual(self) -> Case:
        """The case of the usual types."""
        return Case(self.recipe, self.usual, self.usual)

    def widened(self) -> Case:
        """The case with f32 for f16 and bf16."""
        narrow = (DType.F16, DType.BF16)
        types = {v: DType.F32 if t in narrow else t for v, t in self.types.items()}
        return Case(self.recipe, types, self.usual)


def tame(*shape: int) -> Numbers:
    return Numbers(shape, (1, 3))


def unit(*shape: int) -> Numbers:
    return Numbers(shape, (0, 1))


def sums(*shape: int) -> Numbers:
    return Numbers(shape, are_sums=True)


def wrapping(*shape: int) -> Numbers:
    return Numbers(shape, are_ordinary=True)


def finite(*shape: int) -> Numbers:
    return Numbers(shape, are_finite=True)


def at(*numbers: Any) -> Array:
    return np.array(numbers)


ONE = np.array(1)
UNARY = (
    "Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceil Celu Cos Cosh Elu Erf Exp Flatten Floor "
    "Gelu HardSigmoid HardSwish Identity IsInf IsNaN LeakyRelu Log Mish Neg NonZero Not Reciprocal "
    "Relu Round Selu Shape Shrink Sigmoid Sign Sin Sinh Size Softplus Softsign Sqrt Swish Tan Tanh "
    "ThresholdedRelu"
).split()
BINARY = (
    "Add And BitwiseAnd BitwiseOr BitwiseXor Equal Greater GreaterOrEqual Less LessOrEqual Max Min "
    "Mul Or Sub Xor PRelu Mean Sum"
).split()
SUMMED = "L1 L2 LogSum LogSumExp Mean Prod Sum SumSquare".split()
REDUCTIONS = [f"Reduce{each}" for each in (*SUMMED, "Max", "Min")]

RECIPES_TEXT = """
{name}: (4, 6)
    for name in UNARY
{name} empty: (0, 3)
    for name in UNARY
{name}: (3, 4, 6), (4, 1)
    for name in BINARY if name != "PRelu"
{name} empty: (0, 3), (3,)
    for name in BINARY
Reduce{name}: sums(4, 6), at(-1)
    for name in SUMMED
{name}: finite(4, 6), at(-1)
    for name in ("ReduceMax", "ReduceMin")
{name} empty: (0, 3), at(1)
    for name in REDUCTIONS
{name} of nothing: (3, 0), at(1)
    for name in REDUCTIONS
{name}: finite(4, 6)
    for name in ("Softmax", "LogSoftmax")
LpNormalization: sums(4, 6)
{name}: sums(2, 3, 4, 4)
    for name in ("GlobalAveragePool", "GlobalLpPool")
GlobalMaxPool: finite(2, 3, 4, 4)
{name}: finite(4, 6), axis=1
    for name in ("ArgMax", "ArgMin", "Hardmax")
{name} last: finite(4, 6), axis=1, select_last_index=1
    for name in ("ArgMax", "ArgMin")
{name}Window: np.array(7)
    for name in ("Blackman", "Hamming", "Hann")
PRelu: (4, 6), tame(6)
AffineGrid: tame(2, 2, 3), at(2, 1, 2, 3)
Attention: unit(1, 2, 3, 4), unit(1, 2, 5, 4), unit(1, 2, 5, 4), unit(3, 5)
AveragePool: (1, 2, 5, 5), kernel_shape=[2, 2]
BatchNormalization: (2, 3, 4), tame(3), tame(3), tame(3), tame(3)
BitCast: (4, 6), to=OfType("T2")
BitShift: (4, 6), tame(6), direction="LEFT"
BitShift right: (4, 6), tame(6), direction="RIGHT"
Cast: tame(4, 6), to=OfType("T2")
Cast any: (4, 6), to=OfType("T2")
CausalConvWithState: unit(1, 3, 6), unit(3, 1, 2), outputs=2
Constant: value=OfType("T", is_number=True)
CastLike: tame(4, 6), tame(2)
CenterCropPad: (4, 6), at(6, 3)
Clip: (4, 6), np.array(1), np.array(3)
Clip below: (4, 6), np.array(1)
Clip above: (4, 6), None, np.array(3)
Col2Im: (1, 4, 4), at(3, 3), at(2, 2)
Compress: (4, 6), at(0, 1, 1, 0), axis=0
Concat: (4, 6), (2, 6), (0, 6), axis=0
ConstantOfShape: at(2, 3)
ConstantOfShape of ones: at(2, 3), value=OfType("T2", is_number=True)
Conv: unit(1, 2, 5, 5), unit(3, 2, 2, 2), unit(3)
ConvInteger: (1, 2, 5, 5), (3, 2, 2, 2), ONE, ONE
ConvTranspose: unit(1, 2, 5, 5), unit(2, 3, 2, 2), unit(3)
CumProd: tame(3, 4), ONE
CumSum: (4, 6), ONE
DFT: unit(1, 6, 1), None, ONE
DeformConv: unit(1, 2, 4, 4), unit(3, 2, 2, 2), unit(1, 8, 3, 3), unit(3), unit(1, 4, 3, 3)
DepthToSpace: (1, 8, 2, 3), blocksize=2
DequantizeLinear: tame(4, 6), unit(6), tame(6), axis=1
DequantizeLinear without zero point: (4, 6), unit()
Div: (4, 6), tame(6)
Dropout: (4, 6)
DynamicQuantizeLinear: tame(4, 6), outputs=3
Einsum: wrapping(3, 4), tame(4, 2), equation="ij,jk->ki"
Expand: (4, 1), at(3, 1, 6)
EyeLike: (4, 6), dtype=OfType("T2"), k=1
GRU: unit(2, 1, 3), unit(1, 12, 3), unit(1, 12, 4), outputs=2, hidden_size=4
Gather: (4, 6), at([3, -1], [0, 1])
GatherElements: (4, 6), at([3, -1], [0, 1])
GatherND: (4, 6), at([3, -1], [0, 1])
Gemm: wrapping(3, 4), tame(4, 2), tame(2)
Gemm scaled: tame(3, 4), tame(4, 2), tame(2), alpha=2.0, beta=3.0
GridSample: (1, 2, 4, 4), Numbers((1, 3, 3, 2), (-1.2, 1.2))
GroupNormalization: (2, 4, 6), tame(4), tame(4), num_groups=2
InstanceNormalization: (2, 3, 6), tame(3), tame(3)
LRN: (1, 4, 2, 2), size=3
LSTM: unit(2, 1, 3), unit(1, 16, 3), unit(1, 16, 4), outputs=3, hidden_size=4
LayerNormalization: (4, 6), tame(6), tame(6)
LinearAttention: unit(1, 3, 8), unit(1, 3, 8), unit(1, 3, 8), outputs=2, q_num_heads=2,
    update_rule="linear", kv_num_heads=2
LpPool: (1, 2, 5, 5), kernel_shape=[2, 2]
MatMul: wrapping(3, 4), tame(4, 2)
MatMulInteger: (3, 4), (4, 2), ONE, ONE
MaxPool: finite(1, 2, 5, 5), kernel_shape=[2, 2]
MaxPool positions: finite(1, 2, 5, 5), kernel_shape=[2, 2], outputs=2
MaxPool padded: finite(1, 2, 5, 5), kernel_shape=[2, 2], pads=[1, 1, 1, 1]
MaxUnpool: (1, 1, 2, 2), np.array([[[[0, 2], [8, 10]]]]), kernel_shape=[2, 2], strides=[2, 2]
MeanVarianceNormalization: (2, 3, 4, 4)
MelWeightMatrix: np.array(4), np.array(16), np.array(8000), np.array(0.0), np.array(4000.0),
    output_datatype=OfType("T3")
Mod fmod: (4, 6), tame(6), fmod=1
Mod: (4, 6), tame(6)
NegativeLogLikelihoodLoss: (3, 4), at(0, 3, 1), tame(4)
NonMaxSuppression: unit(1, 4, 4), unit(1, 2, 4), ONE
OneHot: at(0, 2, 5), np.array(4), at(0, 1)
Pad: (4, 6), at(0, 1, 2, 0), np.array(1)
Pad zeros: (4, 6), at(0, 1, 2, 0)
Pad reflect: (4, 6), at(0, 1, 2, 0), mode="reflect"
Pow: tame(4, 6), tame(6)
QLinearConv: (1, 2, 5, 5), np.array(0.1), ONE, (3, 2, 2, 2), np.array(0.1), ONE, np.array(0.5), ONE
QLinearMatMul: (3, 4), np.array(0.1), ONE, (4, 2), np.array(0.1), ONE, np.array(9.1), ONE
QuantizeLinear: tame(4, 6), tame(6), tame(6), axis=1
RMSNormalization: (4, 6), tame(6)
RNN: unit(2, 1, 3), unit(1, 4, 3), unit(1, 4, 4), outputs=2, hidden_size=4
Range: np.array(1), np.array(7), np.array(2)
Reshape: (4, 6), at(3, -1)
Resize: sums(1, 1, 3, 3), None, at(1.0, 1.0, 2.0, 2.0), mode="nearest"
Resize linear: tame(1, 1, 3, 3), None, at(1.0, 1.0, 2.0, 2.0), mode="linear"
ReverseSequence: (4, 3), at(2, 4, 1)
RoiAlign: unit(1, 1, 6, 6), at([0, 0, 4, 4], [1, 1, 3, 5]), at(0, 0), output_height=2,
    output_width=2, sampling_ratio=2
RotaryEmbedding: unit(1, 2, 3, 4), unit(1, 3, 2), unit(1, 3, 2)
STFT: unit(1, 12, 1), np.array(3), None, np.array(6)
ScatterElements {how}: tame(4, 6), at([3, 1], [0, 1]), tame(2, 2), reduction="{how}"
    for how in ("none", "add", "mul", "min", "max")
ScatterND {how}: tame(4, 6), at([3], [1], [3]), tame(3, 6), reduction="{how}"
    for how in ("add", "mul", "min", "max")
ScatterND: (4, 6), at([3], [1]), (2, 6)
Scatter: (4, 6), at([3, 1], [0, 1]), tame(2, 2), opset=10
Slice: (4, 6), at(3, 1), at(0, 6), at(0, 1), at(-1, 2)
SoftmaxCrossEntropyLoss: tame(3, 4), at(0, 3, 1), tame(4), outputs=2
SpaceToDepth: (1, 2, 4, 6), blocksize=2
Split: (4, 6), at(1, 5), axis=1, outputs=2
Squeeze: (4, 1, 6), at(1)
SwiGLU: unit(4, 6), unit(4, 6)
TensorScatter: (2, 4, 3), (2, 2, 3), at(1, 2)
Tile: (2, 3), at(2, 2)
TopK: finite(4, 6), at(3), outputs=2
Transpose: (4, 6), perm=[1, 0]
Trilu: (4, 6), upper=0
Trilu upper: (2, 4, 6), ONE
Unique: tame(6), outputs=4
Unsqueeze: (4, 6), at(1)
Upsample: tame(1, 1, 3, 3), at(1.0, 1.0, 2.0, 2.0), opset=9
Where: at([0], [1], [1], [0]), (4, 6), (6,)
"""
OF_ONNXRUNTIME_TEXT = """
com.microsoft.{name}: wrapping(4, 6)
    for name in ("Gelu", "FastGelu", "QuickGelu")
com.microsoft.{name} biased: wrapping(4, 6), tame(6)
    for name in ("BiasGelu", "FastGelu")
com.microsoft.FusedMatMul: unit(3, 4), unit(4, 2), alpha=0.5
com.microsoft.FusedConv: unit(1, 2, 5, 5), unit(3, 2, 2, 2), unit(3), activation="Relu"
com.microsoft.FusedGemm: wrapping(3, 4), tame(4, 2), tame(2), activation="Relu"
com.microsoft.RotaryEmbedding: unit(2, 3, 8), at(1), unit(9, 2), unit(9, 2)
com.microsoft.SkipLayerNormalization: unit(2, 3, 8), unit(2, 3, 8), unit(8), unit(8), unit(8)
com.microsoft.SkipSimplifiedLayerNormalization: unit(2, 3, 8), unit(2, 3, 8), unit(8)
SimplifiedLayerNormalization: unit(2, 8), unit(8)
com.microsoft.EmbedLayerNormalization: tame(2, 5), tame(2, 5), unit(9, 8), unit(7, 8), unit(4, 8),
    unit(8), unit(8), outputs=2
com.microsoft.Attention: unit(2, 5, 12), unit(12, 36), unit(36), at(3, 5), num_heads=3
com.microsoft.MultiHeadAttention: unit(2, 4, 12), unit(2, 5, 12), unit(2, 5, 18), num_heads=3
com.microsoft.QAttention: (2, 5, 12), (12, 36), unit(36), np.array(0.02), np.array(0.02),
    at(3, 5), ONE, ONE, num_heads=3
com.microsoft.QuantizeLinear: tame(4, 6), np.array(0.5), ONE
com.microsoft.DequantizeLinear: sums(4, 6), np.array(0.5), np.array(0)
com.microsoft.DynamicQuantizeMatMul: unit(3, 8), (8, 5), unit(5)
com.microsoft.DynamicQuantizeLSTM: unit(3, 2, 4), np.arange(64).reshape(1, 4, 16),
    np.arange(64).reshape(1, 4, 16), None, None, None, None, None, np.array([0.01]),
    np.array([30]), np.array([0.02]), np.array([20]), outputs=3, hidden_size=4
com.microsoft.MatMulIntegerToFloat: (3, 8), (8, 5), np.array(0.1), np.array(0.2), ONE, ONE
com.microsoft.MatMulNBits: unit(3, 40), np.arange(144).reshape(6, 3, 8),
    np.linspace(0.1, 0.4, 18), N=6, K=40, bits=4, block_size=16
com.microsoft.GatherBlockQuantized: np.arange(24).reshape(3, 8), at(2),
    np.linspace(0.1, 0.4, 3).reshape(3, 1), block_size=16
com.microsoft.GroupQueryAttention: unit(1, 2, 64), unit(1, 2, 32), unit(1, 2, 32), None, None,
    np.array([1]), np.array(2), outputs=3, num_heads=2, kv_num_heads=1
com.microsoft.QGemm: (3, 8), np.array(0.1), ONE, (8, 5), np.array(0.2), ONE
com.microsoft.{name}: *((3, 4), np.array(0.02), ONE) * 2, np.array(0.05), ONE
    for name in ("QLinearAdd", "QLinearMul")
com.microsoft.QLinearSigmoid: (3, 4), np.array(0.02), ONE, np.array(0.01), ONE
com.microsoft.QLinearLeakyRelu: (3, 4), np.array(0.02), ONE, np.array(0.01), ONE, alpha=0.3
com.microsoft.QLinearAveragePool: (1, 4, 6, 6), np.array(0.02), ONE, np.array(0.05), ONE,
    kernel_shape=[3, 3]
com.microsoft.QLinearGlobalAveragePool: (1, 4, 6, 6), np.array(0.02), ONE, np.array(0.05), ONE
com.microsoft.QLinearSoftmax: (3, 8), np.array(0.02), ONE, np.array(0.004), np.array(0), axis=-1,
    opset_of_softmax=13
com.microsoft.QLinearConcat: np.array(0.05), ONE, (3, 4), np.array(0.02), ONE, (3, 2),
    np.array(0.1), ONE, axis=1, formals=("TF", "T8", *("T8", "TF", "T8") * 2)
com.microsoft.QLinearWhere: unit(3), (2, 3), np.array(0.02), ONE, (2, 3), np.array(0.1), ONE,
    np.array(0.05), ONE
"""


def _read(row: str) -> Recipe:
    """`domain.Operator label: inputs, attributes`."""
    head, given = row.split(": ", 1)
    name, _, label = head.partition(" ")
    domain, _, operator = name.rpartition(".")

    def made(*inputs: Any, outputs: int = 1, opset: int = OPSET, formals: Any = (), **more: Any):
        return Recipe(operator, inputs, more, label, outputs, opset, domain, formals)

    return eval(f"made({given})", {**globals(), "made": made})


RECIPES = tuple(map(_read, rows_of(RECIPES_TEXT, globals())))
OF_ONNXRUNTIME = tuple(map(_read, rows_of(OF_ONNXRUNTIME_TEXT, globals())))


def cases_of(each: Recipe) -> list[Case]:
    """The recipe with each type of each variable beside the usual ones, and with one type for all.

    Where an attribute names a type, each with each.
    """
    allowed = allowed_types(each)
    usual = {v: next((t for t in USUAL if t in types), types[0]) for v, types in allowed.items()}
    if any(isinstance(value, OfType) for value in each.attributes.values()):
        chosen = [
            dict(zip(allowed, types, strict=True)) for types in itertools.product(*allowed.values())
        ]
    else:
        chosen = [usual]
        chosen += ({**usual, v: dtype} for v, types in allowed.items() for dtype in types)
        chosen += (
            {v: dtype if dtype in types else usual[v] for v, types in allowed.items()}
            for dtype in DType
        )
    distinct = dict.fromkeys(tuple(types.items()) for types in chosen)
    cases = [Case(each, dict(types), usual) for types in distinct]
    return [case for case in cases if _has_meaning(case)]


def _has_meaning(case: Case) -> bool:
    """A bit cast is between types of one size; a cast of NaN to integers means nothing."""
    source, target = case.types.get("T1"), case.types.get("T2")
    if case.recipe.operator == "BitCast" and source and target:
        return source.size_bytes == target.size_bytes
    if str(case.recipe) == "Cast any" and source and target:
        return target.is_float or target is DType.BOOL or not source.is_float
    return True


def _schema_of(each: Recipe) -> tuple[list[str], list[str], dict[str, list[str]]]:
    """The types of inputs and outputs, and what its variables may be."""
    if not each.domain and each.operator != "SimplifiedLayerNormalization":
        schema = defs.get_schema(each.operator, each.opset)
        inputs = [formal.type_str for formal in schema.inputs]
        outputs = [formal.type_str for formal in schema.outputs]
    else:
        schema = _OF_ONNXRUNTIME[each.operator, each.domain]
        inputs = [formal.typeStr for formal in schema.inputs]
        outputs = [formal.typeStr for formal in schema.outputs]
    variables = {each.type_param_str: each.allowed_type_strs for each in schema.type_constraints}
    return inputs, outputs, variables


_OF_ONNXRUNTIME = {
    (schema.name, schema.domain): schema for schema in onnxruntime_schemas.get_all_operator_schema()
}


def allowed_types(each: Recipe) -> dict[str, list[DType]]:
    """The types of tensors that each variable may be which the inputs and attributes use."""
    used = {value.variable for value in each.attributes.values() if isinstance(value, OfType)}
    formals = formals_of(each)
    used |= {name for given, name in zip(each.inputs, formals, strict=True) if given is not None}
    return {
        variable: types
        for variable, names in _schema_of(each)[2].items()
        if variable in used and (types := [TYPE_NAMES[n] for n in names if n in TYPE_NAMES])
    }


def formals_of(each: Recipe) -> list[str]:
    """The type of each input that is given: a variable, or "tensor(int64)"."""
    names = list(each.formals) or _schema_of(each)[0]
    return (names + names[-1:] * len(each.inputs))[: len(each.inputs)]


def output_types(case: Case) -> list[DType | None]:
    """The types of the outputs; None where only an attribute says it."""
    names = _schema_of(case.recipe)[1]
    names = (names + names[-1:] * case.recipe.outputs)[: case.recipe.outputs]
    return [case.types.get(name) or TYPE_NAMES.get(name) for name in names]


def arrays_of(case: Case) -> list[Array | None]:
    """The numbers of the inputs."""
    random = np.random.default_rng(zlib.crc32(str(case).encode()))
    arrays: list[Array | None] = []
    for given, formal in zip(case.recipe.inputs, formals_of(case.recipe), strict=True):
        dtype = None if given is None else case.types.get(formal) or TYPE_NAMES[formal]
        arrays.append(None if dtype is None else _numbers(given, dtype, random))
    return arrays


def model_of(
    case: Case, arrays: Sequence[Array | None], prefix: str = ""
) -> tuple[ModelProto, dict[str, Array]]:
    """A model of one node, and its inputs; arrays that a recipe gives are constants."""
    each = case.recipe
    names = ["" if array is None else f"{prefix}x{n}" for n, array in enumerate(arrays)]
    tensors = {n: array for n, array in zip(names, arrays, strict=True) if array is not None}
    constants = {n for n, given in zip(names, each.inputs, strict=True) if _is_constant(given)}
    while names and not names[-1]:
        names.pop()
    results = [f"{prefix}y{n}" for n in range(each.outputs)]
    attributes = {_ATTRIBUTE_NAMES.get(n, n): v for n, v in each.attributes.items()}
    for name, value in attributes.items():
        if isinstance(value, OfType):
            dtype = case.types[value.variable]
            number = ONNX_TYPES[dtype]
            one = helper.make_tensor("", number, (1,), np.ones(1, dtype.numpy).tobytes(), raw=True)
            attributes[name] = one if value.is_number else number
    node = helper.make_node(each.operator, names, results, domain=each.domain, **attributes)
    graph = helper.make_graph(
        [node],
        "test",
        [
            helper.make_tensor_value_info(n, _number(array), array.shape)
            for n, array in tensors.items()
            if n not in constants
        ],
        [helper.make_empty_tensor_value_info(name) for name in results],
        [
            helper.make_tensor(n, _number(array), array.shape, array.tobytes(), raw=True)
            for n, array in tensors.items()
            if n in constants
        ],
    )
    opsets = [helper.make_opsetid("", each.opset), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, ir_version=10, opset_imports=opsets)
    return model, {n: array for n, array in tensors.items() if n not in constants}


_ATTRIBUTE_NAMES = {"opset_of_softmax": "opset"}


def _number(array: Array) -> int:
    return ONNX_TYPES[DType.from_numpy(array.dtype)]


def _is_constant(given: Any) -> bool:
    return isinstance(given, np.ndarray)


def _numbers(given: Any, dtype: DType, random: np.random.Generator) -> Array:
    if isinstance(given, np.ndarray):
        return given.astype(dtype.numpy)
    numbers = given if isinstance(given, Numbers) else Numbers(given)
    shape = numbers.shape
    if dtype is DType.BOOL:
        return random.integers(0, 2, shape).astype(bool)
    if numbers.bounds is not None:
        least, greatest = numbers.bounds
        if dtype.is_int:
            return random.integers(int(least), int(greatest) + 1, shape).astype(dtype.numpy)
        return random.uniform(least, greatest, shape).astype(dtype.numpy)
    special: list[float] = []
    if dtype.is_int:
        array = random.integers(-9 if dtype.is_signed else 0, 10, shape).astype(dtype.numpy)
        if not numbers.are_sums:
            special = [dtype.lowest, dtype.highest]
    else:
        array = (3 * random.standard_normal(shape)).astype(dtype.numpy)
        if not numbers.are_ordinary:
            special = [_LARGEST[dtype], -_LARGEST[dtype], 0.0, -0.0]
        if not numbers.are_ordinary and not numbers.are_finite:
            special += [np.inf, -np.inf, np.nan]
    flat = array.reshape(-1)
    for position, number in zip(range(flat.size - 1, flat.size // 3, -1), special, strict=False):
        flat[position] = number
    return array
