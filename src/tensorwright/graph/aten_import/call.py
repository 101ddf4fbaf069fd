"""The argument of a converter: one ATen node with its arguments, and the graph under construction.

A converter is a function from a `Call` to its values: tensors of the graph, sizes, numbers. The
arguments have the names of the operator's schema; those with default values may be left out.

Element types of results, by PyTorch's rules.

Tensors with dimensions rank first, then tensors without dimensions, then numbers. An operand of a
later rank counts only if its kind is higher (bool < integer < float). A float number alone is f32.
Source:  "Type promotion" in PyTorch's page on tensor attributes.

ATen operators that are one operator of tensorwright, one row each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

import numpy as np

from tensorwright import ops
from tensorwright.base import DType, UnsupportedError
from tensorwright.expr import Index, IndexExpr
from tensorwright.graph.builder import GraphBuilder
from tensorwright.graph.onnx_import.call import Call as OnnxCall
from tensorwright.graph.onnx_import.call import OnnxAttribute, Operand
from tensorwright.graph.onnx_import.converters import CONVERTERS
from tensorwright.graph.onnx_import.counterparts import COUNTERPARTS as ONNX_COUNTERPARTS
from tensorwright.graph.onnx_import.refusals import NO_OPERATOR, OTHERWISE, unsupported
from tensorwright.graph.onnx_import.size_terms import SizeArray, known_array, term_of

_ONNX_OPSET = 22


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of the graph under construction."""

    name: str


Value: TypeAlias = "bool | Index | float | str | DType | Tensor | tuple[Value, ...] | None"
Results: TypeAlias = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """One ATen node.

    operator   without its namespace and overload: "linear"
    overload   "default"
    label      its name in messages: "node linear_3 (aten.linear.default)"
    arguments  by the names of its schema
    """

    operator: str
    overload: str
    label: str
    arguments: Mapping[str, Value]
    builder: GraphBuilder

    # -- arguments

    def get(self, name: str, default: Value = None) -> Value:
        """An argument; the default if it is None or left out."""
        value = self.arguments.get(name)
        return default if value is None else value

    def has(self, name: str) -> bool:
        """Whether an argument is given and not None."""
        return self.arguments.get(name) is not None

    def tensor(self, name: str) -> str:
        """A tensor argument.

        Raises:  UnsupportedError if it is not a tensor.
        """
        value = self.get(name)
        if not isinstance(value, Tensor):
            raise self.unsupported(f"its argument {name} is not a tensor")
        return value.name

    def optional(self, name: str) -> tuple[str, ...]:
        """A tensor argument; () if it is left out."""
        return (self.tensor(name),) if self.has(name) else ()

    def tensors(self, name: str) -> tuple[str, ...]:
        """A list of tensors."""
        given = self._list(name)
        names = tuple(each.name for each in given if isinstance(each, Tensor))
        if len(names) < len(given):
            raise self.unsupported(f"its argument {name} is not a list of tensors")
        return names

    def index(self, name: str, default: Index | None = None) -> Index:
        """An integer, which may be an expression of sizes."""
        return self._index(self.get(name, default), name)

    def integer(self, name: str, default: int | None = None) -> int:
        """An integer that does not depend on named sizes."""
        return ops.number_of(self.index(name, default))

    def indices(self, name: str, default: Sequence[Index] | None = None) -> tuple[Index, ...]:
        """A list of integers, which may be expressions of sizes; one integer is a list of one."""
        if default is not None and not self.has(name):
            return tuple(default)
        return tuple(self._index(each, name) for each in self._list(name))

    def ints(self, name: str, default: Sequence[int] | None = None) -> tuple[int, ...]:
        """A list of integers that do not depend on named sizes."""
        return tuple(map(ops.number_of, self.indices(name, default)))

    def per_dimension(self, name: str, count: int, default: tuple[int, ...]) -> tuple[int, ...]:
        """A number for each dimension; a single one holds for all."""
        values = self.ints(name, default) or default
        return values * count if len(values) == 1 else values

    def real(self, name: str, default: float | None = None) -> float:
        """A number."""
        value = self.get(name, default)
        if not isinstance(value, int | float):
            raise self.unsupported(f"its argument {name} is not a number")
        return float(value)

    def flag(self, name: str, *, default: bool = False) -> bool:
        """A bool."""
        value = self.get(name, default)
        if not isinstance(value, int):
            raise self.unsupported(f"its argument {name} is not a bool")
        return bool(value)

    def text(self, name: str, default: str = "") -> str:
        """A text."""
        value = self.get(name, default)
        if not isinstance(value, str):
            raise self.unsupported(f"its argument {name} is not a text")
        return value

    def dtype(self, name: str = "dtype", default: DType | None = None) -> DType | None:
        """An element type."""
        value = self.get(name, default)
        if value is not None and not isinstance(value, DType):
            raise self.unsupported(f"its argument {name} is not an element type")
        return value

    def axis(self, rank: int, name: str = "dim", default: int | None = None) -> int:
        """A dimension of a tensor of that rank as a number from 0; a negative one counts back."""
        return ops.axis_in(self.integer(name, default), max(rank, 1))

    def _list(self, name: str) -> tuple[Value, ...]:
        value = self.get(name)
        if value is None:
            raise self.unsupported(f"its argument {name} is missing")
        return value if isinstance(value, tuple) else (value,)

    def _index(self, value: Value, name: str) -> Index:
        if isinstance(value, IndexExpr):
            return value
        if isinstance(value, float) and value == int(value):
            return int(value)
        if isinstance(value, int):
            return int(value)
        raise self.unsupported(f"its argument {name} is not an integer, or is computed at run time")

    # -- tensors

    def type_of(self, tensor: str) -> ops.TensorType:
        """The type of a tensor."""
        return self.builder.type_of(tensor)

    def dtype_of(self, tensor: str) -> DType:
        """The element type of a tensor."""
        return self.builder.type_of(tensor).dtype

    def sizes(self, tensor: str) -> tuple[Index, ...]:
        """The shape of a tensor, which may have named sizes."""
        return ops.sizes_of(self.builder.type_of(tensor))

    def extents(self, tensor: str) -> tuple[int, ...]:
        """The shape of a tensor without named sizes.

        Raises:  UnsupportedError for named sizes.
        """
        return tuple(map(ops.number_of, self.sizes(tensor)))

    def rank(self, tensor: str) -> int:
        """The number of dimensions of a tensor."""
        return len(self.builder.type_of(tensor).shape)

    def cast(self, tensor: str, dtype: DType | None) -> str:
        """A tensor in another element type; itself if it has that type, or `dtype` is None."""
        if dtype is None or self.dtype_of(tensor) is dtype:
            return tensor
        return self.add("cast", tensor, to=dtype)

    def full(self, shape: Sequence[Index], value: Value, dtype: DType) -> str:
        """A tensor whose elements are all one number."""
        if isinstance(value, Tensor):
            scalar = self.add("reshape", self.cast(value.name, dtype), shape=())
            return self.add("expand", scalar, shape=tuple(shape))
        if not isinstance(value, int | float | IndexExpr):
            raise self.unsupported("the value that it fills with is not a number")
        if dtype is DType.BOOL and not isinstance(value, IndexExpr):
            value = bool(value)
        elif not dtype.is_float and isinstance(value, float):
            value = int(value)
        if not shape and not isinstance(value, IndexExpr):
            return self.builder.constant(np.asarray(value).astype(dtype.numpy))
        return self.add("full", shape=tuple(shape), value=value, dtype=dtype)

    # -- results

    def add(self, operator: str, /, *inputs: str, **attributes: ops.AttributeValue) -> str:
        """Append a node to the graph and return its first output."""
        return self.builder.apply(operator, inputs, (), **attributes)[0]

    def apply(
        self, operator: str, /, *inputs: str, **attributes: ops.AttributeValue
    ) -> tuple[str, ...]:
        """Append a node to the graph and return all its outputs."""
        return self.builder.apply(operator, inputs, (), **attributes)

    def onnx(
        self,
        operator: str,
        operands: Iterable[str | Sequence[Index] | None],
        outputs: int = 1,
        **attributes: OnnxAttribute,
    ) -> tuple[str, ...]:
        """Import ONNX's operator of that name; a tuple of sizes is given as a tensor of them."""
        given = tuple(
            each if each is None or isinstance(each, str) else _as_operand(each)
            for each in operands
        )
        call = OnnxCall(
            operator,
            self.label,
            attributes,
            given,
            (True,) * outputs,
            _ONNX_OPSET,
            self.builder,
        )
        results = _ONNX[operator](call)
        if results is None:
            raise self.unsupported(f"{operator} does not take such arguments")
        return tuple(call.as_tensor(each) for each in results)

    def unsupported(self, reason: str = NO_OPERATOR, remedy: str = OTHERWISE) -> UnsupportedError:
        """The error that a converter raises if it cannot convert the node."""
        operator = f"aten.{self.operator}.{self.overload}"
        return unsupported(self.label, operator, reason, remedy)


def _as_operand(sizes: Sequence[Index]) -> Operand:
    terms = tuple(map(term_of, sizes))
    held: Operand | SizeArray = known_array(terms, (len(terms),), DType.I64)
    return held


_ONNX = {**CONVERTERS, **{each.theirs: each.convert for each in ONNX_COUNTERPARTS}}
Converter: TypeAlias = Callable[[Call], Results]
Table: TypeAlias = tuple[tuple[str, Converter], ...]


def tensors(*names: str) -> Results:
    """Tensors of the graph as values."""
    return tuple(map(Tensor, names))


_HALVES = (DType.F16, DType.BF16)


def _kind(dtype: DType) -> int:
    return 2 if dtype.is_float else 1 if dtype.is_int else 0


def joined(left: DType, right: DType) -> DType:
    """The type of the result of two operands of the same rank."""
    if left is right:
        return left
    if _kind(left) != _kind(right):
        return max(left, right, key=_kind)
    if left.is_float:
        if left in _HALVES and right in _HALVES:
            return DType.F32
        return max(left, right, key=lambda each: each.size_bytes)
    return DType.from_numpy(np.promote_types(left.numpy, right.numpy))


def _dtype_and_rank(call: Call, value: Value) -> tuple[DType, int]:
    if isinstance(value, Tensor):
        return call.dtype_of(value.name), 0 if call.rank(value.name) else 1
    if isinstance(value, bool):
        return DType.BOOL, 2
    if isinstance(value, int | IndexExpr):
        return DType.I64, 2
    if isinstance(value, float):
        return DType.F32, 2
    raise call.unsupported("an operand of it is neither a tensor nor a number")


def common_type(call: Call, values: Sequence[Value]) -> DType:
    """The element type in which an operator computes with these operands."""
    by_rank: list[DType | None] = [None, None, None]
    for value in values:
        dtype, rank = _dtype_and_rank(call, value)
        before = by_rank[rank]
        by_rank[rank] = dtype if before is None else joined(before, dtype)
    chosen: DType | None = None
    for each in by_rank:
        if each is not None and (chosen is None or _kind(each) > _kind(chosen)):
            chosen = each
    assert chosen is not None
    return chosen


def as_type(call: Call, value: Value, dtype: DType) -> str:
    """An operand as a tensor of an element type."""
    if isinstance(value, Tensor):
        return call.cast(value.name, dtype)
    return call.full((), value, dtype)


def promoted(call: Call, *names: str) -> tuple[str, ...]:
    """Arguments as tensors of their common type."""
    values = [call.get(name) for name in names]
    dtype = common_type(call, values)
    return tuple(as_type(call, value, dtype) for value in values)


def scaled(call: Call, tensor: str, name: str) -> str:
    """A tensor times the number that an argument is; itself for 1."""
    factor = call.get(name, 1)
    if factor == 1:
        return tensor
    return call.add("mul", tensor, as_type(call, factor, call.dtype_of(tensor)))


def as_float(call: Call, tensor: str) -> str:
    """Integers and bools as f32, floats unchanged."""
    return tensor if call.dtype_of(tensor).is_float else call.cast(tensor, DType.F32)


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
