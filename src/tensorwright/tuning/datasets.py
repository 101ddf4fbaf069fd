"""From records to samples for a cost model.

A record whose decisions are those of a sketch of its space gets its features together with the
others of that sketch, as columns; any other from the loop nest that its trace lowers to.

Read back what `str` of a workload gives: a tensor program from its text in a record store.

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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tensorwright import expr
from tensorwright.base import DType, TensorwrightError, UsageError
from tensorwright.graph import Workload, program_workload
from tensorwright.records import Record, Status
from tensorwright.schedule import format_trace, parse_trace
from tensorwright.tuning.features import FeatureSource
from tensorwright.tuning.models import Features, Sample
from tensorwright.tuning.space.sketch import Sketch, Space


@dataclass(frozen=True, slots=True)
class Dataset:
    """Samples of a workload, each with its record, and the number of useless records.

    skipped  their traces do not replay: another version wrote them
    """

    samples: tuple[Sample, ...]
    records: tuple[Record, ...]
    skipped: int = 0


def dataset(records: Iterable[Record], space: Space, featurizer: FeatureSource) -> Dataset:
    """The timed records of one workload as samples, each trace once, in the order of the records.

    The fastest complete time of a trace counts, because other load only adds time.
    """
    kept = _one_each(records)
    features: dict[str, Features] = {}
    others: list[Record] = []
    by_sketch: dict[int, tuple[Sketch, list[Record], list[tuple[int, ...]]]] = {}
    for record in kept:
        match = find_sketch(record, space)
        if match is None:
            others.append(record)
            continue
        sketch, genes = match
        _, members, rows = by_sketch.setdefault(id(sketch), (sketch, [], []))
        members.append(record)
        rows.append(genes)
    for sketch, members, rows in by_sketch.values():
        described = featurizer.of_sketch(sketch, np.array(rows, np.int64).reshape(len(rows), -1))
        features |= {record.trace: one for record, one in zip(members, described, strict=True)}
    for record in others:
        lowered = _from_trace(record.trace, featurizer)
        if lowered is not None:
            features[record.trace] = lowered
    usable = [record for record in kept if record.trace in features]
    samples = tuple(_sample(record, features[record.trace]) for record in usable)
    return Dataset(samples, tuple(usable), len(kept) - len(usable))


def find_sketch(record: Record, space: Space) -> tuple[Sketch, tuple[int, ...]] | None:
    """The sketch of a space that a record's program comes from, and its rows; or None."""
    decisions = dict(record.decisions)
    for sketch in space.sketches:
        genes = sketch.genes_of(decisions)
        if genes is not None and format_trace(sketch.bound(decisions)) == record.trace:
            return sketch, genes
    return None


def _one_each(records: Iterable[Record]) -> Sequence[Record]:
    """The best timed record of each trace; a censored one only if there is no other."""
    best: dict[str, Record] = {}
    for record in records:
        if not record.status.is_timed:
            continue
        fastest = best.get(record.trace)
        if fastest is None or _rank(record) < _rank(fastest):
            best[record.trace] = record
    return tuple(best.values())


def _rank(record: Record) -> tuple[bool, float]:
    return record.status is Status.CENSORED, min(record.times_s)


def _sample(record: Record, features: Features) -> Sample:
    is_censored = record.status is Status.CENSORED
    return Sample(record.workload, features, min(record.times_s), is_censored)


def _from_trace(text: str, featurizer: FeatureSource) -> Features | None:
    """The features of a trace; None if it does not replay."""
    try:
        features: Features = featurizer.of_trace(parse_trace(text))[0]
    except TensorwrightError:
        return None
    return features


_HEAD = re.compile(r"workload (\S+) ([0-9a-f]{16})")
_INPUT = re.compile(r"(input|constant) (\w+): (\w+) \(([\d, ]*)\)")
_STAGE = re.compile(r"(\w+)(?:\[([\w, ]*)\])? = (?:(\w+) over (.*?) of )?(.*?)(?:    for (.*))?")
_AXIS = re.compile(r"(\w+) in 0\.\.(\d+)")
_DTYPES = {str(dtype): dtype for dtype in DType}
_FUNCTIONS = {fn.text: fn for fn in expr.Fn}
_INFIX: Mapping[type[ast.AST], expr.Fn] = {
    ast.Add: expr.Fn.ADD,
    ast.Sub: expr.Fn.SUB,
    ast.Mult: expr.Fn.MUL,
    ast.Div: expr.Fn.DIV,
    ast.BitAnd: expr.Fn.BITAND,
    ast.BitOr: expr.Fn.BITOR,
    ast.BitXor: expr.Fn.BITXOR,
    ast.LShift: expr.Fn.SHL,
    ast.RShift: expr.Fn.SHR,
    ast.And: expr.Fn.AND,
    ast.Or: expr.Fn.OR,
    ast.Lt: expr.Fn.LT,
    ast.LtE: expr.Fn.LE,
    ast.Eq: expr.Fn.EQ,
    ast.NotEq: expr.Fn.NE,
    ast.Not: expr.Fn.NOT,
    ast.Invert: expr.Fn.BITNOT,
}
_RELATIONS: Mapping[type[ast.AST], expr.Relation] = {
    ast.Lt: expr.Relation.LT,
    ast.LtE: expr.Relation.LE,
    ast.Eq: expr.Relation.EQ,
    ast.NotEq: expr.Relation.NE,
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
    tensors: dict[str, expr.Tensor] = {}
    constants: set[str] = set()
    outputs: list[str] = []
    for line in (each.strip() for each in text.splitlines()[1:]):
        if given := _INPUT.fullmatch(line):
            kind, called, dtype, shape = given.groups()
            sizes = tuple(int(size) for size in shape.split(",") if size.strip())
            tensors[called] = expr.Placeholder(called, sizes, _DTYPES[dtype])
            if kind == "constant":
                constants.add(called)
        elif line.startswith("output "):
            outputs += line.removeprefix("output ").split(", ")
        elif stage := _STAGE.fullmatch(line):
            made = _stage(stage, tensors, reads_elements)
            tensors[made.name] = made
        elif line:
            raise ValueError(line)
    results = tuple(each for key in outputs if isinstance(each := tensors[key], expr.Compute))
    return program_workload(results, frozenset(constants), name)


def _stage(
    line: re.Match[str], tensors: Mapping[str, expr.Tensor], reads_elements: bool
) -> expr.Compute:
    name, _, fold, over, body, ranges = line.groups()
    axes = _axes(ranges or "")
    reduction = expr.Reduction(expr.Combiner(fold), _axes(over)) if fold else None
    tree = ast.parse(body.replace("[]", "[()]"), mode="eval").body
    return expr.Compute(name, axes, _Reader(tensors, reads_elements).value(tree, None), reduction)


def _axes(text: str) -> tuple[expr.Axis, ...]:
    return tuple(expr.Axis(expr.Var(name), int(extent)) for name, extent in _AXIS.findall(text))


@dataclass(frozen=True, slots=True)
class _Reader:
    """Expressions of one stage, from Python's syntax tree of their text.

    reads_elements   a tensor's element, where it may be either, is an index and not a value
    """

    tensors: Mapping[str, expr.Tensor]
    reads_elements: bool

    def value(self, node: ast.expr, wanted: DType | None) -> expr.Value:
        """A value; a number has the wanted type unless an operand beside it decides another."""
        number = _number(node)
        if number is not None:
            return expr.constant(number, wanted or _usual_type(number))
        match node:
            case ast.Subscript():
                return expr.Load(self._source(node), self._indices(node))
            case ast.Call(ast.Name("select"), [condition, then, otherwise]):
                dtype = self._dtype(node) or wanted
                return expr.Select(
                    self._condition(condition),
                    self.value(then, dtype),
                    self.value(otherwise, dtype),
                )
            case ast.Call(ast.Name(name), [operand]) if name in _DTYPES:
                if self._is_index(operand):
                    return expr.FromIndex(self.index(operand), _DTYPES[name])
                return expr.cast(self.value(operand, None), _DTYPES[name])
        fn, arguments = _application(node)
        typed = next((d for each in arguments if (d := self._dtype(each))), None)
        dtype = typed or (None if fn.gives_bool else wanted)
        return expr.Apply(fn, tuple(self.value(each, dtype) for each in arguments))

    def index(self, node: ast.expr) -> expr.Index:
        """An index expression."""
        match node:
            case ast.Constant(int(value)):
                return value
            case ast.Name(name):
                return expr.Var(name)
            case ast.Subscript():
                return expr.Element(self._source(node), self._indices(node))
            case ast.UnaryOp(ast.USub(), operand):
                return -self.index(operand)
            case ast.Call(ast.Name("min"), [left, right]):
                return expr.minimum(self.index(left), self.index(right))
            case ast.Call(ast.Name("max"), [left, right]):
                return expr.maximum(self.index(left), self.index(right))
            case ast.BinOp(left, operator, right):
                return _combined(operator, self.index(left), self.index(right))
        raise ValueError(ast.unparse(node))

    def _condition(self, node: ast.expr) -> expr.Condition | expr.Value:
        if not self._is_index(node):
            return self.value(node, DType.BOOL)
        return self._index_condition(node)

    def _index_condition(self, node: ast.expr) -> expr.Condition:
        match node:
            case ast.BoolOp(ast.And(), parts):
                return expr.all_of(*map(self._index_condition, parts))
            case ast.BoolOp(ast.Or(), parts):
                return expr.any_of(*map(self._index_condition, parts))
            case ast.UnaryOp(ast.Not(), part):
                return expr.negate(self._index_condition(part))
            case ast.Compare(left, [relation], [right]):
                return expr.compare(_RELATIONS[type(relation)], self.index(left), self.index(right))
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

    def _source(self, node: ast.Subscript) -> expr.Tensor:
        if not isinstance(node.value, ast.Name):
            raise ValueError(ast.unparse(node))
        return self.tensors[node.value.id]

    def _indices(self, node: ast.Subscript) -> tuple[expr.Index, ...]:
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


def _application(node: ast.expr) -> tuple[expr.Fn, tuple[ast.expr, ...]]:
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


def _combined(operator: ast.operator, left: expr.Index, right: expr.Index) -> expr.Index:
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
