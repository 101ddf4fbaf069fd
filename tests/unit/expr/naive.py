"""The plainest evaluator there is: one Python loop per axis, Python numbers, nothing shared."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np

from tensorwright import expr

RELATIONS = {
    expr.Relation.LT: lambda a, b: a < b,
    expr.Relation.LE: lambda a, b: a <= b,
    expr.Relation.EQ: lambda a, b: a == b,
    expr.Relation.NE: lambda a, b: a != b,
}
FUNCTIONS = {
    expr.Fn.ADD: lambda a, b: a + b,
    expr.Fn.SUB: lambda a, b: a - b,
    expr.Fn.MUL: lambda a, b: a * b,
    expr.Fn.DIV: lambda a, b: a / b,
    expr.Fn.MAX: max,
    expr.Fn.MIN: min,
    expr.Fn.EXP: math.exp,
    expr.Fn.LT: lambda a, b: a < b,
    expr.Fn.OR: lambda a, b: a or b,
    expr.Fn.AND: lambda a, b: a and b,
}


def index_value(index: expr.Index, env: Mapping[Any, int], arrays: Mapping[Any, Any]) -> int:
    match index:
        case int():
            return index
        case expr.Var() | expr.Decision():
            return env[index]
        case expr.Poly(terms):
            return sum(
                scale * math.prod(index_value(atom, env, arrays) for atom in monomial)
                for monomial, scale in terms
            )
        case expr.ExactDiv(a, b):
            quotient, rest = divmod(index_value(a, env, arrays), index_value(b, env, arrays))
            assert rest == 0
            return quotient
        case expr.FloorDiv(a, b):
            return index_value(a, env, arrays) // index_value(b, env, arrays)
        case expr.Mod(a, b):
            return index_value(a, env, arrays) % index_value(b, env, arrays)
        case expr.Min(a, b):
            return min(index_value(a, env, arrays), index_value(b, env, arrays))
        case expr.Max(a, b):
            return max(index_value(a, env, arrays), index_value(b, env, arrays))
        case expr.Element(source, indices):
            return int(arrays[source][tuple(index_value(i, env, arrays) for i in indices)])
    raise TypeError(index)


def holds(condition: expr.Condition, env: Mapping[Any, int], arrays: Mapping[Any, Any]) -> bool:
    match condition:
        case bool():
            return condition
        case expr.Compare(relation, a, b):
            left, right = index_value(a, env, arrays), index_value(b, env, arrays)
            return bool(RELATIONS[relation](left, right))
        case expr.And(parts):
            return all(holds(part, env, arrays) for part in parts)
        case expr.Or(parts):
            return any(holds(part, env, arrays) for part in parts)
        case expr.Not(part):
            return not holds(part, env, arrays)
    raise TypeError(condition)


def number(value: expr.Value, env: Mapping[Any, int], arrays: Mapping[Any, Any]) -> Any:
    match value:
        case expr.Const(constant, _):
            return constant
        case expr.Load(source, indices):
            place = tuple(index_value(index, env, arrays) for index in indices)
            assert all(0 <= i < n for i, n in zip(place, source.shape, strict=True))
            return arrays[source][place].item()
        case expr.FromIndex(index, _):
            return index_value(index, env, arrays)
        case expr.Apply(fn, args):
            return FUNCTIONS[fn](*(number(arg, env, arrays) for arg in args))
        case expr.Cast(operand, dtype):
            plain = number(operand, env, arrays)
            return float(plain) if dtype.is_float else int(plain)
        case expr.Select(condition, then, otherwise):
            if isinstance(condition, (bool, expr.Compare, expr.And, expr.Or, expr.Not)):
                chosen = holds(condition, env, arrays)
            else:
                chosen = number(condition, env, arrays)
            return number(then if chosen else otherwise, env, arrays)
    raise TypeError(value)


def fill(tensor: expr.Compute, arrays: Mapping[Any, Any]) -> np.ndarray:
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
            case expr.Combiner.SUM:
                result[place] = math.fsum(values) if tensor.dtype.is_float else sum(values)
            case expr.Combiner.PROD:
                result[place] = math.prod(values)
            case expr.Combiner.MAX | expr.Combiner.ANY:
                result[place] = max(values)
            case expr.Combiner.MIN | expr.Combiner.ALL:
                result[place] = min(values)
            case expr.Combiner.ARGMAX:
                result[place] = values.index(max(values))
            case expr.Combiner.ARGMIN:
                result[place] = values.index(min(values))
    return result


def naive(output: expr.Compute, inputs: Mapping[expr.Placeholder, np.ndarray]) -> np.ndarray:
    arrays: dict[Any, Any] = dict(inputs)
    for tensor in expr.topological_order(output):
        if isinstance(tensor, expr.Compute):
            arrays[tensor] = fill(tensor, arrays)
    return arrays[output]
