"""The plainest evaluator there is: one Python loop per axis, Python numbers, nothing shared."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np

from tensorwright.expr import (
    And,
    Apply,
    Cast,
    Combiner,
    Compare,
    Compute,
    Condition,
    Const,
    Decision,
    Element,
    ExactDiv,
    FloorDiv,
    Fn,
    FromIndex,
    Index,
    Load,
    Max,
    Min,
    Mod,
    Not,
    Or,
    Placeholder,
    Poly,
    Relation,
    Select,
    Value,
    Var,
    topological_order,
)

RELATIONS = {
    Relation.LT: lambda a, b: a < b,
    Relation.LE: lambda a, b: a <= b,
    Relation.EQ: lambda a, b: a == b,
    Relation.NE: lambda a, b: a != b,
}
FUNCTIONS = {
    Fn.ADD: lambda a, b: a + b,
    Fn.SUB: lambda a, b: a - b,
    Fn.MUL: lambda a, b: a * b,
    Fn.DIV: lambda a, b: a / b,
    Fn.MAX: max,
    Fn.MIN: min,
    Fn.EXP: math.exp,
    Fn.LT: lambda a, b: a < b,
    Fn.OR: lambda a, b: a or b,
    Fn.AND: lambda a, b: a and b,
}


def index_value(index: Index, env: Mapping[Any, int], arrays: Mapping[Any, Any]) -> int:
    match index:
        case int():
            return index
        case Var() | Decision():
            return env[index]
        case Poly(terms):
            return sum(
                scale * math.prod(index_value(atom, env, arrays) for atom in monomial)
                for monomial, scale in terms
            )
        case ExactDiv(a, b):
            quotient, rest = divmod(index_value(a, env, arrays), index_value(b, env, arrays))
            assert rest == 0
            return quotient
        case FloorDiv(a, b):
            return index_value(a, env, arrays) // index_value(b, env, arrays)
        case Mod(a, b):
            return index_value(a, env, arrays) % index_value(b, env, arrays)
        case Min(a, b):
            return min(index_value(a, env, arrays), index_value(b, env, arrays))
        case Max(a, b):
            return max(index_value(a, env, arrays), index_value(b, env, arrays))
        case Element(source, indices):
            return int(arrays[source][tuple(index_value(i, env, arrays) for i in indices)])
    raise TypeError(index)


def holds(condition: Condition, env: Mapping[Any, int], arrays: Mapping[Any, Any]) -> bool:
    match condition:
        case bool():
            return condition
        case Compare(relation, a, b):
            left, right = index_value(a, env, arrays), index_value(b, env, arrays)
            return bool(RELATIONS[relation](left, right))
        case And(parts):
            return all(holds(part, env, arrays) for part in parts)
        case Or(parts):
            return any(holds(part, env, arrays) for part in parts)
        case Not(part):
            return not holds(part, env, arrays)
    raise TypeError(condition)


def number(value: Value, env: Mapping[Any, int], arrays: Mapping[Any, Any]) -> Any:
    match value:
        case Const(constant, _):
            return constant
        case Load(source, indices):
            place = tuple(index_value(index, env, arrays) for index in indices)
            assert all(0 <= i < n for i, n in zip(place, source.shape, strict=True))
            return arrays[source][place].item()
        case FromIndex(index, _):
            return index_value(index, env, arrays)
        case Apply(fn, args):
            return FUNCTIONS[fn](*(number(arg, env, arrays) for arg in args))
        case Cast(operand, dtype):
            plain = number(operand, env, arrays)
            return float(plain) if dtype.is_float else int(plain)
        case Select(condition, then, otherwise):
            if isinstance(condition, (bool, Compare, And, Or, Not)):
                chosen = holds(condition, env, arrays)
            else:
                chosen = number(condition, env, arrays)
            return number(then if chosen else otherwise, env, arrays)
    raise TypeError(value)


def fill(tensor: Compute, arrays: Mapping[Any, Any]) -> np.ndarray:
    result = np.zeros(tensor.shape, tensor.dtype.numpy)
    for place in product(*(range(n) for n in tensor.shape)):
        env = {axis.var: i for axis, i in zip(tensor.axes, place, strict=True)}
        if tensor.reduction is None:
            result[place] = number(tensor.body, env, arrays)
            continue
        values = []
        for inner in product(*(range(axis.extent) for axis in tensor.reduce_axes)):
            fold = {axis.var: i for axis, i in zip(tensor.reduce_axes, inner, strict=True)}
            values.append(number(tensor.body, env | fold, arrays))
        match tensor.reduction.combiner:
            case Combiner.SUM:
                result[place] = math.fsum(values) if tensor.dtype.is_float else sum(values)
            case Combiner.PROD:
                result[place] = math.prod(values)
            case Combiner.MAX | Combiner.ANY:
                result[place] = max(values)
            case Combiner.MIN | Combiner.ALL:
                result[place] = min(values)
            case Combiner.ARGMAX:
                result[place] = values.index(max(values))
            case Combiner.ARGMIN:
                result[place] = values.index(min(values))
    return result


def naive(output: Compute, inputs: Mapping[Placeholder, np.ndarray]) -> np.ndarray:
    arrays: dict[Any, Any] = dict(inputs)
    for tensor in topological_order(output):
        if isinstance(tensor, Compute):
            arrays[tensor] = fill(tensor, arrays)
    return arrays[output]
