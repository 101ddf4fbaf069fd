"""The argument of a converter: one ONNX node with its operands, and the graph that is being built.

A converter is a function from a `Call` to its results. An operand is a tensor of the graph under
construction (its name), an array whose value is known at import, or one whose elements depend on
sizes alone. Shape arithmetic stays in arrays and leaves no node behind.
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
from tensorwright.graph.interpret import interpret
from tensorwright.graph.onnx_import.open_dimensions import CountedSizes, greatest_value
from tensorwright.graph.onnx_import.refusals import (
    NO_OPERATOR,
    OTHERWISE,
    model_error,
    unsupported,
)
from tensorwright.graph.onnx_import.size_terms import SizeArray, add_size_array
from tensorwright.ops import operator as operator_named

MOST_ITERATIONS = 4096  # of what is written out step by step
MOST_ELEMENTS = 1 << 27  # of what is written out as a table
Single: TypeAlias = str | ops.Array | SizeArray


@dataclass(frozen=True, slots=True)
class TensorList:
    """A sequence of ONNX whose number of tensors is known at import; no tensor itself."""

    parts: tuple[Single, ...]


Operand: TypeAlias = Single | TensorList
AttributeDefault: TypeAlias = bool | int | float | str | type[int] | type[str]
OnnxAttribute: TypeAlias = (
    int
    | float
    | str
    | tuple[int, ...]
    | tuple[float, ...]
    | tuple[str, ...]
    | TensorProto
    | SparseTensorProto
    | GraphProto
)


def type_of(operand: Operand, builder: GraphBuilder) -> ops.TensorType:
    """The type of an operand of a graph under construction.

    Raises:  UnsupportedError for a sequence.
    """
    operand = _no_list(operand)
    if isinstance(operand, str):
        return builder.type_of(operand)
    if isinstance(operand, SizeArray):
        return operand.type
    return ops.TensorType(DType.from_numpy(operand.dtype), operand.shape)


def as_tensor(operand: Operand, builder: GraphBuilder) -> str:
    """An operand as a tensor of a graph under construction.

    Raises:  UnsupportedError for a sequence.
    """
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
    """One ONNX node.

    label     how messages call it: "node conv1 (Conv)"
    operands  its inputs, None where an optional one is left out
    names     what the model calls them
    stem      what sizes that it decides are called after
    counted   makes them
    outputs   how many outputs it names; `wanted` says which of them somebody may read
    opset     the version of the operator set that gives the node its meaning
    folder    where external data must lie
    """

    operator: str
    label: str
    attributes: Mapping[str, OnnxAttribute]
    operands: tuple[Operand | None, ...]
    wanted: tuple[bool, ...]
    opset: int
    builder: GraphBuilder
    folder: Path | None = None
    names: tuple[str, ...] = ()
    stem: str = ""
    counted: CountedSizes = field(default_factory=lambda: CountedSizes({}))

    # -- operands

    def has(self, position: int) -> bool:
        """Whether the optional input is given."""
        return position < len(self.operands) and self.operands[position] is not None

    def operand(self, position: int) -> Operand:
        """An input, as it is.

        Raises:  UnsupportedError if it is left out.
        """
        operand = self.operands[position] if position < len(self.operands) else None
        if operand is None:
            raise self.unsupported(f"its input {position} is missing")
        return operand

    def tensor(self, position: int) -> str:
        """An input as a tensor of the graph; a known array becomes a constant, or is made of
        sizes.
        """
        return self.as_tensor(self.operand(position))

    def tensors(self) -> tuple[str, ...]:
        """All inputs that are given, as tensors of the graph."""
        return tuple(self.as_tensor(each) for each in self.operands if each is not None)

    def as_tensor(self, operand: Operand) -> str:
        """A tensor of the graph."""
        return as_tensor(operand, self.builder)

    def type_at(self, position: int) -> ops.TensorType:
        """The type of an input."""
        return self.type_of(self.operand(position))

    def type_of(self, operand: Operand) -> ops.TensorType:
        """The type of an operand."""
        return type_of(operand, self.builder)

    def shape(self, position: int) -> tuple[int, ...]:
        """The shape of an input, where it must be numbers.

        Raises:  UnsupportedError for named sizes.
        """
        return tuple(map(ops.number_of, self.sizes(position)))

    def sizes(self, position: int) -> tuple[expr.Index, ...]:
        """The shape of an input, which may have named sizes."""
        return ops.sizes_of(self.type_at(position))

    def sizes_of(self, operand: Operand) -> tuple[expr.Index, ...]:
        """The shape of an operand, which may have named sizes."""
        return ops.sizes_of(self.type_of(operand))

    def rank(self, position: int) -> int:
        """How many dimensions an input has."""
        return len(self.type_at(position).shape)

    def static_value(self, position: int) -> ops.Array | None:
        """The value of an input where it is known at import."""
        operand = self.operands[position] if self.has(position) else None
        if isinstance(operand, str):
            return self.builder.constant_value(operand)
        return None if isinstance(operand, SizeArray | TensorList) else operand

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

    def known_value(self, position: int, what: str) -> ops.Array | None:
        """The value of an input, None where it is only known when the model runs.

        Raises:  UnsupportedError where sizes decide it.
        """
        operand = self.operand(position)
        if isinstance(operand, SizeArray):
            raise self.undecided(operand.indices, f"{what} ({operand})")
        value = self.static_value(position)
        return self._computed(self.tensor(position), what) if value is None else value

    def truth(self, operand: Operand, what: str) -> bool | None:
        """The value of a bool, None where it is only known when the model runs: sizes that values
        decide are known then.

        Raises:  UnsupportedError where sizes of inputs decide it.
        """
        if isinstance(operand, SizeArray):
            if self.counted.have_decided(expr.named_sizes_of(*operand.indices)):
                return None
            raise self.undecided(operand.indices, what)
        value: ops.Array | None
        if isinstance(operand, str):
            value = self.builder.constant_value(operand)
            graph = self.builder.constant_graph(operand) if value is None else None
            if graph is not None and self.counted.have_decided(graph.sizes):
                return None
            value = self._computed(operand, what) if value is None else value
        else:
            value = None if isinstance(operand, TensorList) else operand
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

    def _computed(self, tensor: str, what: str) -> ops.Array | None:
        """The value of a tensor that nodes make of constants, which is too large to be held.

        Raises:  UnsupportedError where it is made of sizes, too.
        """
        graph = self.builder.constant_graph(tensor)
        if graph is not None and graph.sizes:
            raise self.undecided(graph.sizes, what)
        return None if graph is None else interpret(graph, {})[tensor]

    def indices(self, position: int, what: str) -> tuple[expr.Index, ...]:
        """The value of a 1-D integer input, whose elements may be expressions of sizes."""
        operand = self.operand(position)
        return operand.indices if isinstance(operand, SizeArray) else self.ints(position, what)

    def index(self, position: int, what: str) -> expr.Index:
        """The value of an integer input with one element, which may be an expression of sizes."""
        operand = self.operand(position)
        if not isinstance(operand, SizeArray):
            return int(self.scalar(position, what))
        if operand.terms.size != 1:
            raise self.unsupported(f"its {what} has {operand.terms.size} elements, not one")
        return operand.indices[0]

    def whole(self, position: int, what: str) -> expr.Index:
        """The value of an input with one element, a whole number or an expression of sizes."""
        operand = self.operand(position)
        if isinstance(operand, SizeArray):
            return self.index(position, what)
        number = self.scalar(position, what)
        if number != int(number):
            raise self.unsupported(f"its {what} {number} meets sizes, and is not a whole number")
        return int(number)

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
        """Refuse to write out too many steps.

        Raises:  UnsupportedError.
        """
        if count > MOST_ITERATIONS:
            raise self.unsupported(f"it runs more than {MOST_ITERATIONS} iterations")

    def check_elements(self, count: int) -> None:
        """Refuse to write out too many numbers.

        Raises:  UnsupportedError.
        """
        if count > MOST_ELEMENTS:
            raise self.unsupported(f"it needs a table of {count:,} numbers")

    # -- attributes

    def value(self, name: str, default: AttributeDefault) -> bool | int | float | str:
        """An attribute of the type of its default, which is a type where the node must give it."""
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
                return self.text(name) if default is str else self.integer(name)

    def integer(self, name: str, default: int | None = None) -> int:
        """An integer attribute."""
        return int(self._get(name, default, (int,)))  # type: ignore[call-overload,no-any-return]

    def real(self, name: str, default: float | None = None) -> float:
        """A number attribute."""
        return float(self._get(name, default, (int, float)))  # type: ignore[arg-type]

    def text(self, name: str, default: str | None = None) -> str:
        """A text attribute."""
        return str(self._get(name, default, (str,)))

    def flag(self, name: str, *, default: bool | None = None) -> bool:
        """An integer attribute that means a bool."""
        return bool(self._get(name, default, (int,)))

    def integers(self, name: str, default: tuple[int, ...] | None = None) -> tuple[int, ...]:
        """An attribute that is a list of integers."""
        return self._get(name, default, (tuple,))  # type: ignore[return-value]

    def reals(self, name: str) -> tuple[float, ...]:
        """An attribute that is a list of numbers."""
        return self._get(name, None, (tuple,))  # type: ignore[return-value]

    def given(self, name: str) -> bool:
        """Whether the node has the attribute."""
        return name in self.attributes

    def _get(self, name: str, default: object, kinds: tuple[type, ...]) -> object:
        value = self.attributes.get(name, default)
        if value is None:
            raise self.unsupported(f"its attribute {name} is missing")
        if not isinstance(value, kinds):
            raise self.unsupported(f"its attribute {name} is a {type(value).__name__}")
        return value

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
        if operator in ops.AT_POSITIONS:
            self._check_positions(operator, operands, attributes)
        return results

    def _check_positions(
        self, name: str, operands: tuple[str, ...], attributes: Mapping[str, ops.AttributeValue]
    ) -> None:
        complete = operator_named(name).complete(attributes)
        positions = self.builder.constant_value(operands[ops.POSITIONS_INPUT])
        if positions is None:
            if name == "gather":
                self._need_positions_inside(operands, ops.int_of(complete, "axis"))
            return
        fault = ops.position_fault(name, self.builder.type_of(operands[0]), positions, complete)
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

    def take(self, tensor: Operand, position: int, axis: int) -> str:
        """One slice of a tensor, without that dimension."""
        return self.add("gather", tensor, np.asarray(position, np.int64), axis=axis)

    def stack(self, tensors: Sequence[Operand], axis: int) -> str:
        """Tensors of one shape along a new dimension."""
        rows = [self.add("unsqueeze", tensor, axes=(axis,)) for tensor in tensors]
        return rows[0] if len(rows) == 1 else self.add("concat", *rows, axis=axis)

    def as_array(self, value: float, dtype: DType) -> ops.Array:
        """A scalar array."""
        return np.asarray(value).astype(dtype.numpy)

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
        dtype = call.type_at(0).dtype
        if dtype not in dtypes:
            return convert(call)
        operands = tuple(
            each
            if each is None or call.type_of(each).dtype is not dtype
            else call.add("cast", each, to=DType.F32)
            for each in call.operands
        )
        results = convert(replace(call, operands=operands))
        return results and tuple(call.add("cast", each, to=dtype) for each in results)

    return widened


Results: TypeAlias = tuple[Operand, ...]
Converter: TypeAlias = Callable[[Call], Results | None]  # None: expand the standard's function
Table: TypeAlias = tuple[tuple[str, Converter], ...]
