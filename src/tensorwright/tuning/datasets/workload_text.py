"""Read back what `str` of a workload gives: a tensor program from its text in a record store.

    workload relu 3f0c9f6f0a1d2b4e
      input x: f32 (4, 8)
      relu[i, j] = max(x[i, j], 0.0)    for i in 0..4, j in 0..8
      output relu

The text leaves out the types of numbers, and whether an element of a tensor is a value or an index.
The type of a number follows from the operands beside it; for elements both readings are tried.  A
program whose key is not that of the text is refused, so a text is never misread.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tensorwright.base import DType, TensorwrightError, UsageError
from tensorwright.expr import (
    Apply,
    Axis,
    Combiner,
    Compute,
    Condition,
    Element,
    Fn,
    FromIndex,
    Index,
    Load,
    Placeholder,
    Reduction,
    Relation,
    Select,
    Tensor,
    Value,
    Var,
    all_of,
    any_of,
    cast,
    compare,
    constant,
    maximum,
    minimum,
    negate,
)
from tensorwright.graph import Workload, program_workload

_HEAD = re.compile(r"workload (\S+) ([0-9a-f]{16})")
_INPUT = re.compile(r"(input|constant) (\w+): (\w+) \(([\d, ]*)\)")
_STAGE = re.compile(r"(\w+)(?:\[([\w, ]*)\])? = (?:(\w+) over (.*?) of )?(.*?)(?:    for (.*))?")
_AXIS = re.compile(r"(\w+) in 0\.\.(\d+)")
_DTYPES = {str(dtype): dtype for dtype in DType}
_FUNCTIONS = {fn.text: fn for fn in Fn}
_INFIX: Mapping[type[ast.AST], Fn] = {
    ast.Add: Fn.ADD,
    ast.Sub: Fn.SUB,
    ast.Mult: Fn.MUL,
    ast.Div: Fn.DIV,
    ast.BitAnd: Fn.BITAND,
    ast.BitOr: Fn.BITOR,
    ast.BitXor: Fn.BITXOR,
    ast.LShift: Fn.SHL,
    ast.RShift: Fn.SHR,
    ast.And: Fn.AND,
    ast.Or: Fn.OR,
    ast.Lt: Fn.LT,
    ast.LtE: Fn.LE,
    ast.Eq: Fn.EQ,
    ast.NotEq: Fn.NE,
    ast.Not: Fn.NOT,
    ast.Invert: Fn.BITNOT,
}
_RELATIONS: Mapping[type[ast.AST], Relation] = {
    ast.Lt: Relation.LT,
    ast.LtE: Relation.LE,
    ast.Eq: Relation.EQ,
    ast.NotEq: Relation.NE,
}


def parse_workload(text: str) -> Workload:
    """The workload whose `str` is the text.

    Raises:  UsageError for any other text, and for a program that an expression in it does not
             give: functions that print like Python's words (xor), sizes that are not fixed.
    """
    head = _HEAD.match(text)
    if head is None:
        raise _fault(text, "it does not begin with a name and a key")
    for reads_elements in (False, True):
        try:
            workload = _read(text, head[1], reads_elements)
        except (SyntaxError, TypeError, ValueError, KeyError, RecursionError, TensorwrightError):
            continue
        if workload.key == head[2]:
            return workload
    raise _fault(text, "it does not give the program of its key")


def _fault(text: str, reason: str) -> UsageError:
    return UsageError(
        stage="workload",
        where=f"text {text.partition(chr(10))[0]!r}",
        reason=reason,
        remedy="give the text of a workload of this version",
    )


def _read(text: str, name: str, reads_elements: bool) -> Workload:
    tensors: dict[str, Tensor] = {}
    constants: set[str] = set()
    outputs: list[str] = []
    for line in (each.strip() for each in text.splitlines()[1:]):
        if given := _INPUT.fullmatch(line):
            kind, called, dtype, shape = given.groups()
            sizes = tuple(int(size) for size in shape.split(",") if size.strip())
            tensors[called] = Placeholder(called, sizes, _DTYPES[dtype])
            if kind == "constant":
                constants.add(called)
        elif line.startswith("output "):
            outputs += line.removeprefix("output ").split(", ")
        elif stage := _STAGE.fullmatch(line):
            made = _stage(stage, tensors, reads_elements)
            tensors[made.name] = made
        elif line:
            raise ValueError(line)
    results = tuple(each for key in outputs if isinstance(each := tensors[key], Compute))
    return program_workload(results, frozenset(constants), name)


def _stage(line: re.Match[str], tensors: Mapping[str, Tensor], reads_elements: bool) -> Compute:
    name, _, fold, over, body, ranges = line.groups()
    axes = _axes(ranges or "")
    reduction = Reduction(Combiner(fold), _axes(over)) if fold else None
    tree = ast.parse(body.replace("[]", "[()]"), mode="eval").body
    return Compute(name, axes, _Reader(tensors, reads_elements).value(tree, None), reduction)


def _axes(text: str) -> tuple[Axis, ...]:
    return tuple(Axis(Var(name), int(extent)) for name, extent in _AXIS.findall(text))


@dataclass(frozen=True, slots=True)
class _Reader:
    """Expressions of one stage, from Python's syntax tree of their text.

    reads_elements   a tensor's element, where it may be either, is an index and not a value
    """

    tensors: Mapping[str, Tensor]
    reads_elements: bool

    def value(self, node: ast.expr, wanted: DType | None) -> Value:
        """A value; a number has the wanted type unless an operand beside it decides another."""
        number = _number(node)
        if number is not None:
            return constant(number, wanted or _usual_type(number))
        match node:
            case ast.Subscript():
                return Load(self._source(node), self._indices(node))
            case ast.Call(ast.Name("select"), [condition, then, otherwise]):
                dtype = self._dtype(node) or wanted
                return Select(
                    self._condition(condition),
                    self.value(then, dtype),
                    self.value(otherwise, dtype),
                )
            case ast.Call(ast.Name(name), [operand]) if name in _DTYPES:
                if self._is_index(operand):
                    return FromIndex(self.index(operand), _DTYPES[name])
                return cast(self.value(operand, None), _DTYPES[name])
        fn, arguments = _application(node)
        typed = next((d for each in arguments if (d := self._dtype(each))), None)
        dtype = typed or (None if fn.gives_bool else wanted)
        return Apply(fn, tuple(self.value(each, dtype) for each in arguments))

    def index(self, node: ast.expr) -> Index:
        """An index expression."""
        match node:
            case ast.Constant(int(value)):
                return value
            case ast.Name(name):
                return Var(name)
            case ast.Subscript():
                return Element(self._source(node), self._indices(node))
            case ast.UnaryOp(ast.USub(), operand):
                return -self.index(operand)
            case ast.Call(ast.Name("min"), [left, right]):
                return minimum(self.index(left), self.index(right))
            case ast.Call(ast.Name("max"), [left, right]):
                return maximum(self.index(left), self.index(right))
            case ast.BinOp(left, operator, right):
                return _combined(operator, self.index(left), self.index(right))
        raise ValueError(ast.unparse(node))

    def _condition(self, node: ast.expr) -> Condition | Value:
        if not self._is_index(node):
            return self.value(node, DType.BOOL)
        return self._index_condition(node)

    def _index_condition(self, node: ast.expr) -> Condition:
        match node:
            case ast.BoolOp(ast.And(), parts):
                return all_of(*map(self._index_condition, parts))
            case ast.BoolOp(ast.Or(), parts):
                return any_of(*map(self._index_condition, parts))
            case ast.UnaryOp(ast.Not(), part):
                return negate(self._index_condition(part))
            case ast.Compare(left, [relation], [right]):
                return compare(_RELATIONS[type(relation)], self.index(left), self.index(right))
        raise ValueError(ast.unparse(node))

    def _is_index(self, node: ast.expr) -> bool:
        """Whether it is an index, or a condition on indices."""
        match node:
            case ast.Name():
                return True
            case ast.Subscript():
                return self.reads_elements
            case ast.Call(ast.Name(name), arguments):
                return name in ("min", "max") and any(map(self._is_index, arguments))
        return any(self._is_index(each) for each in _operands(node))

    def _dtype(self, node: ast.expr) -> DType | None:
        """The type of a value; None if it consists of numbers only."""
        match node:
            case ast.Subscript():
                return self._source(node).dtype
            case ast.Constant() | ast.Name():
                return None
            case ast.Call(ast.Name("select"), [_, then, otherwise]):
                return self._dtype(then) or self._dtype(otherwise)
            case ast.Call(ast.Name(name)) if name in _DTYPES:
                return _DTYPES[name]
        if _number(node) is not None:
            return None
        fn, arguments = _application(node)
        if fn.gives_bool:
            return DType.BOOL
        return next((dtype for each in arguments if (dtype := self._dtype(each))), None)

    def _source(self, node: ast.Subscript) -> Tensor:
        if not isinstance(node.value, ast.Name):
            raise ValueError(ast.unparse(node))
        return self.tensors[node.value.id]

    def _indices(self, node: ast.Subscript) -> tuple[Index, ...]:
        parts: Sequence[ast.expr] = (node.slice,)
        if isinstance(node.slice, ast.Tuple):
            parts = node.slice.elts
        return tuple(map(self.index, parts))


def _number(node: ast.expr) -> float | int | bool | None:
    match node:
        case ast.Constant(bool() | int() | float() as value):
            return value
        case ast.Name("inf" | "nan" as name):
            return float(name)
        case ast.UnaryOp(ast.USub(), operand):
            number = _number(operand)
            return None if number is None else -number
    return None


def _usual_type(number: float | int | bool) -> DType:
    if isinstance(number, bool):
        return DType.BOOL
    return DType.F32 if isinstance(number, float) else DType.I64


def _application(node: ast.expr) -> tuple[Fn, tuple[ast.expr, ...]]:
    """A function of values, and its arguments."""
    arguments = tuple(_operands(node))
    match node:
        case ast.Call(ast.Name(name)):
            fn = _FUNCTIONS[name]
        case ast.BinOp(op=operator) | ast.UnaryOp(op=operator) | ast.BoolOp(op=operator):
            fn = _INFIX[type(operator)]
        case ast.Compare(ops=[operator]):
            fn = _INFIX[type(operator)]
        case _:
            raise ValueError(ast.unparse(node))
    if len(arguments) != fn.arity:
        raise ValueError(ast.unparse(node))
    return fn, arguments


def _operands(node: ast.expr) -> Sequence[ast.expr]:
    match node:
        case ast.BinOp(left, _, right):
            return (left, right)
        case ast.UnaryOp(_, operand):
            return (operand,)
        case ast.BoolOp(_, values):
            return values
        case ast.Compare(left, _, others):
            return (left, *others)
        case ast.Call(_, arguments):
            return arguments
    return ()


def _combined(operator: ast.operator, left: Index, right: Index) -> Index:
    match operator:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.FloorDiv():
            return left // right
        case ast.Mod():
            return left % right
    raise ValueError(type(operator).__name__)
