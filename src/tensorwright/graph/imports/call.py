"""The argument of a converter: one node of a model, and the graph that is being built.

A converter is a function from a `Call` to its results.  A node of ONNX has operands by position and
attributes by name; one of ATen has all its arguments by name.  An operand is a tensor of the graph
under construction (its name), an array whose value is known at import, or one whose elements depend
on sizes alone.  Shape arithmetic stays in arrays and leaves no node behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
from onnx import GraphProto, SparseTensorProto, TensorProto

from tensorwright import expr, ops
from tensorwright.base import DType, UndecidedError, UnsupportedError
from tensorwright.graph.builder import GraphBuilder
from tensorwright.graph.imports.open_dimensions import CountedSizes, greatest_value
from tensorwright.graph.imports.refusals import (
    NO_OPERATOR,
    OTHERWISE,
    model_error,
    unsupported,
)
from tensorwright.graph.imports.size_terms import SizeArray, add_size_array
from tensorwright.graph.interpret import interpret
from tensorwright.ops import operator as operator_named

MOST_ITERATIONS = 4096  # of what is written out step by step
MOST_ELEMENTS = 1 << 27  # of what is written out as a table
Single: TypeAlias = str | ops.Array | SizeArray


@dataclass(frozen=True, slots=True)
class TensorList:
    """A sequence of ONNX whose number of tensors is known at import; no tensor itself."""

    parts: tuple[Single, ...]


Operand: TypeAlias = Single | TensorList
Key: TypeAlias = int | str  # the position or the name of an argument


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of the graph under construction that is an argument by name."""

    name: str


Value: TypeAlias = "bool | expr.Index | float | str | DType | Tensor | tuple[Value, ...] | None"
Attribute: TypeAlias = "Value | TensorProto | SparseTensorProto | GraphProto"
Results: TypeAlias = tuple[Operand, ...]
Converter: TypeAlias = "Callable[[Call], Results | None]"  # None: expand the standard's function
Table: TypeAlias = "tuple[tuple[str, Converter], ...]"


def type_of(operand: Operand, builder: GraphBuilder) -> ops.TensorType:
    """The type of an operand of a graph under construction."""
    operand = _no_list(operand)
    if isinstance(operand, str):
        return builder.type_of(operand)
    if isinstance(operand, SizeArray):
        return operand.type
    return ops.TensorType(DType.from_numpy(operand.dtype), operand.shape)


def as_tensor(operand: Operand, builder: GraphBuilder) -> str:
    """An operand as a tensor of a graph under construction."""
    operand = _no_list(operand)
    if isinstance(operand, str):
        return operand
    if isinstance(operand, SizeArray):
        return add_size_array(builder, operand)
    return builder.constant(operand)


def name_of(operand: Operand, builder: GraphBuilder) -> str | None:
    """The tensor of a graph under construction that an operand is; None where it is none yet."""
    if isinstance(operand, str):
        return operand
    if isinstance(operand, SizeArray | TensorList):
        return None
    return builder.name_of_constant(operand)


def _no_list(operand: Operand) -> Single:
    if isinstance(operand, TensorList):
        raise unsupported(
            "a sequence",
            "sequence",
            "it is read as a tensor, or leaves the graph, and sequences are not tensors",
            "make one tensor of it before: ConcatFromSequence, torch.cat or torch.stack",
        )
    return operand


@dataclass(frozen=True, slots=True)
class Call:
    """One node of a model.

    label       how messages call it: "node conv1 (Conv)"
    attributes  its arguments by name
    operands    its inputs by position, None where an optional one is left out
    names       what the model calls them
    stem        what sizes that it decides are called after
    counted     makes them
    outputs     how many outputs it names; `wanted` says which of them somebody may read
    opset       the version of the operator set that gives the node its meaning
    folder      where external data must lie
    """

    operator: str
    label: str
    attributes: Mapping[str, Attribute]
    builder: GraphBuilder
    operands: tuple[Operand | None, ...] = ()
    wanted: tuple[bool, ...] = ()
    opset: int = 0
    folder: Path | None = None
    names: tuple[str, ...] = ()
    stem: str = ""
    counted: CountedSizes = field(default_factory=lambda: CountedSizes({}))

    # -- operands

    def has(self, key: Key) -> bool:
        """Whether the optional argument is given."""
        return self._argument(key) is not None

    def operand(self, key: Key) -> Operand:
        """An argument that is a tensor, as it is."""
        value = self._argument(key)
        if isinstance(key, str):
            if not isinstance(value, Tensor):
                raise self.unsupported(f"its argument {key} is not a tensor")
            return value.name
        if value is None:
            raise self.unsupported(f"its input {key} is missing")
        return value  # type: ignore[return-value]

    def _argument(self, key: Key) -> Operand | Attribute:
        if isinstance(key, str):
            return self.attributes.get(key)
        return self.operands[key] if key < len(self.operands) else None

    def tensor(self, key: Key) -> str:
        """A tensor of the graph; a known array becomes a constant, or is made of sizes."""
        return self.as_tensor(self.operand(key))

    def optional(self, *keys: Key) -> tuple[str, ...]:
        """The tensors among these arguments that are given."""
        return tuple(self.tensor(key) for key in keys if self.has(key))

    def tensors(self, name: str = "") -> tuple[str, ...]:
        """All inputs that are given, or the list of that name, as tensors of the graph."""
        if not name:
            return tuple(self.as_tensor(each) for each in self.operands if each is not None)
        parts = self._list(name)
        names = tuple(each.name for each in parts if isinstance(each, Tensor))
        if len(names) < len(parts):
            raise self.unsupported(f"its argument {name} is not a list of tensors")
        return names

    def as_tensor(self, operand: Operand) -> str:
        """A tensor of the graph."""
        return as_tensor(operand, self.builder)

    def type_of(self, operand: int | Operand) -> ops.TensorType:
        """The type of an operand, or of that at a position."""
        return type_of(self.operand(operand) if isinstance(operand, int) else operand, self.builder)

    def dtype_of(self, operand: int | Operand) -> DType:
        """The element type of an operand."""
        return self.type_of(operand).dtype

    def sizes(self, operand: int | Operand) -> tuple[expr.Index, ...]:
        """The shape of an operand, which may have named sizes."""
        return ops.sizes_of(self.type_of(operand))

    def extents(self, operand: int | Operand) -> tuple[int, ...]:
        """The shape of an operand, where it must be numbers."""
        return tuple(map(ops.number_of, self.sizes(operand)))

    def rank(self, operand: int | Operand) -> int:
        """How many dimensions an operand has."""
        return len(self.type_of(operand).shape)

    def static_value(self, position: int) -> ops.Array | None:
        """The value of an input where it is known, and held as an array."""
        operand = self.operands[position] if self.has(position) else None
        if isinstance(operand, str):
            return self.builder.constant_value(operand)
        return None if isinstance(operand, SizeArray | TensorList) else operand

    def value_of(
        self, operand: Operand, what: str, *, may_be_decided: bool = False
    ) -> ops.Array | None:
        """The elements of an operand, None where they are only known when the model runs.

        may_be_decided   sizes that values decide are known then, too
        Raises:  UndecidedError where sizes decide them.
        """
        match operand:
            case TensorList():
                return None
            case SizeArray():
                sizes = expr.named_sizes_of(*operand.indices)
                what = what if may_be_decided else f"{what} ({operand})"
            case str():
                value = self.builder.constant_value(operand)
                graph = self.builder.constant_graph(operand) if value is None else None
                if graph is None:
                    return value
                if not graph.sizes:
                    return interpret(graph, {})[operand]
                sizes = graph.sizes
            case _:
                return operand
        if may_be_decided and self.counted.have_decided(sizes):
            return None
        raise self.undecided(sizes, what)

    def known_value(self, position: int, what: str) -> ops.Array | None:
        """As `value_of`, of an input."""
        return self.value_of(self.operand(position), what)

    def array(self, position: int, what: str) -> ops.Array:
        """The value of an input that must be known.

        Raises:  UnsupportedError if it is only known when the model runs.
        """
        value = self.known_value(position, what)
        if value is None:
            raise self.unsupported(
                f"the value of its {what} is only known when the model runs, "
                "and shapes depend on it",
                "export the model with fixed shapes, or give the input that it depends on a value",
            )
        return value

    def truth(self, operand: Operand, what: str) -> bool | None:
        """The value of a bool, None where it is only known when the model runs."""
        value = self.value_of(operand, what, may_be_decided=True)
        return None if value is None or value.size != 1 else bool(value.reshape(-1)[0])

    def undecided(self, sizes: Iterable[expr.Index], what: str) -> UndecidedError:
        """The error for a value of this node that sizes decide, and that must be a number."""
        error = ops.not_decided(sizes, f"its {what} must be known")
        return UndecidedError(
            stage="import",
            where=self.label,
            reason=error.reason,
            remedy=error.remedy,
            operator=self.operator,
            names=error.names,
        )

    def indices(self, position: int, what: str) -> tuple[expr.Index, ...]:
        """The value of a 1-D integer input, whose elements may be expressions of sizes."""
        operand = self.operand(position)
        return operand.indices if isinstance(operand, SizeArray) else self.ints(position, what)

    def index(self, position: int, what: str) -> expr.Index:
        """The value of an input with one element, a whole number or an expression of sizes."""
        operand = self.operand(position)
        if not isinstance(operand, SizeArray):
            number = self.scalar(position, what)
            if number != int(number):
                raise self.unsupported(f"its {what} {number} is not a whole number")
            return int(number)
        if operand.terms.size != 1:
            raise self.unsupported(f"its {what} has {operand.terms.size} elements, not one")
        return operand.indices[0]

    def ints(self, position: int, what: str) -> tuple[int, ...]:
        """The value of a 1-D integer input."""
        return tuple(int(item) for item in self.array(position, what).reshape(-1))

    def optional_ints(self, position: int, name: str, *, input_from: int) -> tuple[int, ...]:
        """Integers that are an input from an operator set on, and before it an attribute."""
        if self.opset < input_from:
            return self.integers(name, ())
        return self.ints(position, name) if self.has(position) else ()

    def scalar(self, position: int, what: str) -> int | float:
        """The value of an input with one element."""
        array = self.array(position, what)
        if array.size != 1:
            raise self.unsupported(f"its {what} has {array.size} elements, not one")
        item: int | float = array.reshape(-1)[0].item()
        return item

    def check_iterations(self, count: int) -> None:
        """Refuse to write out too many steps."""
        if count > MOST_ITERATIONS:
            raise self.unsupported(f"it runs more than {MOST_ITERATIONS} iterations")

    def check_elements(self, count: int) -> None:
        """Refuse to write out too many numbers."""
        if count > MOST_ELEMENTS:
            raise self.unsupported(f"it needs a table of {count:,} numbers")

    # -- arguments by name

    def get(self, name: str, default: Value = None) -> Attribute:
        """An argument; the default if it is None or left out."""
        value = self.attributes.get(name)
        return default if value is None else value

    def value(self, name: str, default: ops.AttributeValue | None) -> bool | int | float | str:
        """An argument of the type of its default; without one, a text or integer that is needed."""
        match default:
            case bool():
                return self.flag(name, default=default)
            case int():
                return self.integer(name, default)
            case float():
                return self.real(name, default)
            case str():
                return self.text(name, default)
            case _:
                return self.text(name) if isinstance(self.get(name), str) else self.integer(name)

    def size(self, name: str, default: expr.Index | None = None) -> expr.Index:
        """An integer, which may be an expression of sizes."""
        return self._size(self._given(name, default), name)

    def integer(self, name: str, default: int | None = None) -> int:
        """An integer that does not depend on named sizes."""
        return ops.number_of(self.size(name, default))

    def axis(self, rank: int, name: str = "dim", default: int | None = None) -> int:
        """A dimension of a tensor of that rank as a number from 0; a negative one counts back."""
        return ops.axis_in(self.integer(name, default), max(rank, 1))

    def shape(
        self, name: str, default: Sequence[expr.Index] | None = None
    ) -> tuple[expr.Index, ...]:
        """A list of integers, which may be expressions of sizes; one integer is a list of one."""
        if default is not None and not self.has(name):
            return tuple(default)
        return tuple(self._size(each, name) for each in self._list(name))

    def integers(self, name: str, default: Sequence[int] | None = None) -> tuple[int, ...]:
        """A list of integers that do not depend on named sizes."""
        return tuple(map(ops.number_of, self.shape(name, default)))

    def per_dimension(self, name: str, count: int, default: tuple[int, ...]) -> tuple[int, ...]:
        """A number for each dimension; a single one holds for all."""
        values = self.integers(name, default) or default
        return values * count if len(values) == 1 else values

    def real(self, name: str, default: float | None = None) -> float:
        """A number."""
        value = self._given(name, default)
        if not isinstance(value, int | float):
            raise self.unsupported(f"its argument {name} is not a number")
        return float(value)

    def reals(self, name: str) -> tuple[float, ...]:
        """A list of numbers."""
        return tuple(float(each) for each in self._list(name))  # type: ignore[arg-type]

    def text(self, name: str, default: str | None = None) -> str:
        """A text."""
        value = self._given(name, default)
        if not isinstance(value, str):
            raise self.unsupported(f"its argument {name} is not a text")
        return value

    def flag(self, name: str, *, default: bool = False) -> bool:
        """A bool, or an integer that means one."""
        value = self.get(name, default)
        if not isinstance(value, int):
            raise self.unsupported(f"its argument {name} is not a bool")
        return bool(value)

    def dtype(self, name: str = "dtype", default: DType | None = None) -> DType | None:
        """An element type."""
        value = self.get(name, default)
        if value is not None and not isinstance(value, DType):
            raise self.unsupported(f"its argument {name} is not an element type")
        return value

    def _given(self, name: str, default: Value) -> Attribute:
        value = self.get(name, default)
        if value is None:
            raise self.unsupported(f"its argument {name} is missing")
        return value

    def _list(self, name: str) -> tuple[Value, ...]:
        value = self._given(name, None)
        return value if isinstance(value, tuple) else (value,)

    def _size(self, value: Attribute, name: str) -> expr.Index:
        if isinstance(value, expr.IndexExpr):
            return value
        if isinstance(value, int) or (isinstance(value, float) and value == int(value)):
            return int(value)
        raise self.unsupported(f"its argument {name} is not an integer, or is computed at run time")

    # -- results

    def add(self, operator: str, /, *inputs: Operand, **attributes: ops.AttributeValue) -> str:
        """Append a node to the graph and return its first output."""
        return self.apply(operator, *inputs, **attributes)[0]

    def apply(
        self, operator: str, /, *inputs: Operand, **attributes: ops.AttributeValue
    ) -> tuple[str, ...]:
        """Append a node to the graph and return all its outputs.

        Raises:  ModelError for inputs or attributes that do not fit, and for a position that is
                 known and outside.
        """
        operands = tuple(map(self.as_tensor, inputs))
        results = self.builder.apply(operator, operands, (), **attributes)
        own = operator_named(operator)
        if own.has_positions:
            self._check_positions(own, operands, attributes)
        return results

    def _check_positions(
        self,
        own: ops.Operator,
        operands: tuple[str, ...],
        attributes: Mapping[str, ops.AttributeValue],
    ) -> None:
        complete = own.complete(attributes)
        positions = self.builder.constant_value(operands[ops.POSITIONS_INPUT])
        if positions is None:
            if own.name == "gather":
                self._need_positions_inside(operands, ops.int_of(complete, "axis"))
            return
        fault = ops.position_fault(own, self.builder.type_of(operands[0]), positions, complete)
        if fault:
            source = self._name_of(operands[ops.POSITIONS_INPUT])
            reason = f"in its input {source}, {fault}" if source else fault
            raise model_error(self.label, reason)

    def _need_positions_inside(self, operands: tuple[str, ...], axis: int) -> None:
        """Bound a size that counts positions in a table: 64 rows make a sequence at most 64 long.

        Raises:  UndecidedError that names the bound.
        """
        extent = ops.sizes_of(self.builder.type_of(operands[0]))[axis]
        last = greatest_value(self.builder, operands[ops.POSITIONS_INPUT])
        if not isinstance(last, expr.IndexExpr) or not isinstance(extent, int):
            return
        offset = dict(expr.terms_of(last)).get((), 0)
        count = last - offset
        try:
            ops.is_equal(count, expr.minimum(count, extent - 1 - offset))
        except UndecidedError as error:
            if error.needs:
                reason = f"its positions go up to {last}, and the dimension has {extent}"
                raise ops.not_decided((last,), reason, error.needs) from None

    def _name_of(self, tensor: str) -> str:
        """The model's name for a tensor of the graph that is an input of the node; "" for none."""
        for name, operand in zip(self.names, self.operands, strict=False):
            if operand is None:
                continue
            if name_of(operand, self.builder) == tensor:
                return name
        return ""

    def positions(self, count: expr.Index, dtype: DType) -> Operand:
        """The numbers from 0 on."""
        if isinstance(count, int):
            return np.arange(count, dtype=dtype.numpy)
        return self.add("range", size=count, dtype=dtype)

    def take(self, tensor: Operand, at: int | Operand, axis: int = 0) -> str:
        """A slice of a tensor, without that dimension; or the slices at positions of any shape."""
        positions = np.asarray(at, np.int64) if isinstance(at, int) else at
        return self.add("gather", tensor, positions, axis=axis)

    def piece(
        self, tensor: Operand, axis: int, start: expr.Index, end: expr.Index, step: int = 1
    ) -> str:
        """tensor[start:end:step] along a dimension."""
        return self.add("slice", tensor, starts=(start,), ends=(end,), axes=(axis,), steps=(step,))

    def stack(self, tensors: Sequence[Operand], axis: int) -> str:
        """Tensors of one shape along a new dimension."""
        rows = [self.add("unsqueeze", tensor, axes=(axis,)) for tensor in tensors]
        return rows[0] if len(rows) == 1 else self.add("concat", *rows, axis=axis)

    def cast(self, operand: Operand, dtype: DType | None) -> str:
        """A tensor in another element type; itself if it has that type, or `dtype` is None."""
        if dtype is None or self.dtype_of(operand) is dtype:
            return self.as_tensor(operand)
        return self.add("cast", operand, to=dtype)

    def as_array(self, value: float, dtype: DType) -> ops.Array:
        """A scalar array."""
        return np.asarray(value).astype(dtype.numpy)

    def full(self, shape: Sequence[expr.Index], value: Attribute, dtype: DType) -> str:
        """A tensor whose elements are all one number."""
        if isinstance(value, Tensor):
            scalar = self.add("reshape", self.cast(value.name, dtype), shape=())
            return self.add("expand", scalar, shape=tuple(shape))
        if not isinstance(value, int | float | expr.IndexExpr):
            raise self.unsupported("the value that it fills with is not a number")
        if dtype is DType.BOOL and not isinstance(value, expr.IndexExpr):
            value = bool(value)
        elif not dtype.is_float and isinstance(value, float):
            value = int(value)
        if not shape and not isinstance(value, expr.IndexExpr):
            return self.builder.constant(self.as_array(value, dtype))
        return self.add("full", shape=tuple(shape), value=value, dtype=dtype)

    def wants(self, position: int) -> bool:
        """Whether somebody may read that output."""
        return position < len(self.wanted) and self.wanted[position]

    def unsupported(self, reason: str = NO_OPERATOR, remedy: str = OTHERWISE) -> UnsupportedError:
        """The error of a converter for a node that it cannot convert."""
        return unsupported(self.label, self.operator, reason, remedy)


def in_single_precision(
    convert: Callable[[Call], Results | None], dtypes: frozenset[DType]
) -> Callable[[Call], Results | None]:
    """A converter that gets data of these types as f32, and whose results have their type again."""

    def widened(call: Call) -> Results | None:
        dtype = call.dtype_of(0)
        if dtype not in dtypes:
            return convert(call)
        operands = tuple(
            call.cast(each, DType.F32)
            if each is not None and call.dtype_of(each) is dtype
            else each
            for each in call.operands
        )
        results = convert(replace(call, operands=operands))
        return results and tuple(call.add("cast", each, to=dtype) for each in results)

    return widened
