"""Arithmetic of tensors as text, for operators that are formulas of others.

    formula(call, '''
        distance = x - reduce_mean(x, axes=axes, keepdims=1)
        distance / sqrt(reduce_mean(distance * distance, axes=axes, keepdims=1) + epsilon)
        ''', x=x, axes=axes, epsilon=epsilon)

Assignments come first, the result last.  Functions are our operators, with their attributes by
name; & | ^ ~ are those of bools.  A number becomes a constant of the type of the last tensor beside
it; a product with the number 1 and a quotient by it are the tensor itself, and so is a sum with an
operand that is left out.  Functions of formulas alone:

    bools(x), positions(x), like(x, y)   x as bools, as i32 or i64, in the element type of y
    sizes(x), axis(x)                    the shape of x, and its dimension that the node names

    by_formula("self+other alpha=1", "self + other * alpha")

is a converter.  Its operands are arguments by name, or inputs in this order; those joined by + get
their common type, one with ? may be left out, and one with = is a number with its
default, a float where that has a point.

The common type follows PyTorch's rules.  Tensors with dimensions rank first, then tensors without
dimensions, then numbers.  An operand of a later rank counts only if its kind is higher (bool <
integer < float).  A float number alone is f32.
Source:  "Type promotion" in PyTorch's page on tensor attributes.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from inspect import cleandoc
from typing import Any

import numpy as np

from tensorwright.base import DType
from tensorwright.expr import IndexExpr
from tensorwright.graph.imports.call import Attribute, Call, Converter, Operand, Results, Tensor

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


def _dtype_and_rank(call: Call, value: Attribute) -> tuple[DType, int]:
    if isinstance(value, Tensor):
        return call.dtype_of(value.name), 0 if call.rank(value.name) else 1
    if isinstance(value, bool):
        return DType.BOOL, 2
    if isinstance(value, int | IndexExpr):
        return DType.I64, 2
    if isinstance(value, float):
        return DType.F32, 2
    raise call.unsupported("an operand of it is neither a tensor nor a number")


def common_type(call: Call, values: Sequence[Attribute]) -> DType:
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


def as_type(call: Call, value: Attribute, dtype: DType) -> str:
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


_OPERATORS = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.Mod: "floormod",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.Invert: "not",
    ast.USub: "neg",
    ast.Eq: "equal",
    ast.NotEq: "not_equal",
    ast.Lt: "less",
    ast.LtE: "less_or_equal",
    ast.Gt: "greater",
    ast.GtE: "greater_or_equal",
}


def positions(call: Call, given: Operand) -> str:
    """Positions as i32 or i64."""
    dtype = call.dtype_of(given)
    return call.cast(given, dtype if dtype in (DType.I32, DType.I64) else DType.I64)


def _like(call: Call, given: Any, other: str) -> str:
    dtype = call.dtype_of(other)
    return call.cast(given, dtype) if _is_tensor(given) else call.full((), given, dtype)


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "positions": positions,
    "like": _like,
    "bools": lambda call, x: call.cast(x, DType.BOOL),
    "sizes": lambda call, x: call.sizes(x),
    "axis": lambda call, x: call.axis(call.rank(x)),
}


def by_formula(arguments: str, text: str) -> Converter:
    """The converter that computes a text of a node's arguments."""
    words = arguments.split()

    def convert(call: Call) -> Results:
        names: dict[str, Any] = {}
        for position, word in enumerate(words):
            name, _, default = word.rstrip("?").partition("=")
            if default:
                value = call.get(name, float(default))
                is_real = "." in default and not isinstance(value, Tensor)
                value = call.real(name, float(default)) if is_real else value
                names[name] = value.name if isinstance(value, Tensor) else value
            elif "+" in name:
                joined = name.split("+")
                names.update(zip(joined, promoted(call, *joined), strict=True))
            else:
                key = position if call.operands else name
                is_left_out = word.endswith("?") and not call.has(key)
                names[name] = None if is_left_out else call.tensor(key)
        return (formula(call, text, **names),)

    return convert


def formula(call: Call, text: str, **names: Any) -> str:
    """The tensor that a text computes; names are tensors, numbers and values of attributes."""
    return _Formula(call, names).run(_parsed(text))


@cache
def _parsed(text: str) -> tuple[ast.stmt, ...]:
    return tuple(ast.parse(cleandoc(text)).body)


@dataclass(frozen=True, slots=True)
class _Formula:
    """The state of one formula: the values of its names, and the constants that it has made."""

    call: Call
    names: dict[str, Any]
    constants: dict[tuple[float, DType], str] = field(default_factory=dict)

    def run(self, statements: tuple[ast.stmt, ...]) -> str:
        result = ""
        for statement in statements:
            match statement:
                case ast.Assign([ast.Name(name)], value):
                    self.names[name] = self.value(value)
                case ast.Expr(value):
                    result = self.value(value)
                case _:
                    raise AssertionError(f"a formula has no {ast.unparse(statement)}")
        return result

    def value(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(number):
                return number
            case ast.Name(name):
                return self.names[name]
            case ast.Tuple(parts):
                return tuple(map(self.value, parts))
            case ast.Call(ast.Name(function), arguments, []) if function in _FUNCTIONS:
                return _FUNCTIONS[function](self.call, *map(self.value, arguments))
            case ast.UnaryOp(sign, operand):
                return self.applied(_OPERATORS[type(sign)], self.value(operand))
            case ast.BinOp(left, sign, right) | ast.Compare(left, [sign], [right]):
                operands = self.value(left), self.value(right)
                return self.applied(_OPERATORS[type(sign)], *operands)
            case ast.Call(ast.Name(operator), arguments, keywords):
                attributes = {str(each.arg): self.value(each.value) for each in keywords}
                return self.applied(operator, *map(self.value, arguments), **attributes)
        raise AssertionError(f"a formula has no {ast.unparse(node)}")

    def applied(self, operator: str, *operands: Any, **attributes: Any) -> str:
        if operator in ("mul", "div") and not _is_tensor(operands[1]) and operands[1] == 1:
            return str(operands[0])
        if operator == "add" and None in operands:
            return str(operands[0] or operands[1])
        dtypes = [self.call.dtype_of(each) for each in operands if _is_tensor(each)]
        tensors = (
            each if _is_tensor(each) else self.constant(each, dtypes[-1]) for each in operands
        )
        return self.call.add(operator, *tensors, **attributes)

    def constant(self, number: float, dtype: DType) -> str:
        if (number, dtype) not in self.constants:
            self.constants[number, dtype] = self.call.full((), number, dtype)
        return self.constants[number, dtype]


def _is_tensor(value: object) -> bool:
    return not isinstance(value, bool | int | float)
