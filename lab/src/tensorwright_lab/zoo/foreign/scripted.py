"""Graphs that onnxscript writes: it reads the functions below as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import onnxscript
from onnxscript import opset17 as op

from tensorwright_lab.zoo.foreign.case import Case, Given, Size

_ROWS: Any = onnxscript.FLOAT["rows", 8]
_MATRIX: Any = onnxscript.FLOAT[8, 16]
_NUMBERS: Any = onnxscript.FLOAT[...]


@onnxscript.script()
def _gated(x: _ROWS, w: _MATRIX, v: _MATRIX) -> _NUMBERS:
    a = op.MatMul(x, w)
    return a * op.Sigmoid(a) * op.MatMul(x, v)


@onnxscript.script()
def _halved(x: _ROWS) -> _NUMBERS:
    """As often as the greatest sum is above 1, at most 20 times."""
    y = op.Identity(x)
    one = op.Constant(value_float=1.0)
    go_on = op.ReduceMax(op.Abs(y), keepdims=0) > one
    for _ in range(20):
        if go_on:
            y = y * 0.5
        else:
            y = op.Identity(y)
        go_on = op.ReduceMax(op.Abs(y), keepdims=0) > one
    return y


@onnxscript.script()
def _chosen(x: _ROWS) -> _NUMBERS:
    total = op.ReduceSum(x, keepdims=0)
    if total > 0.0:
        y = op.Softmax(x, axis=1)
    else:
        y = op.Tanh(x)
    return y


@onnxscript.script()
def _best(x: _ROWS) -> _NUMBERS:
    three = op.Constant(value_ints=[3])
    values, at = op.TopK(op.Softmax(x), three)
    return values / op.ReduceSum(values, op.Constant(value_ints=[-1])) + op.Cast(at, to=1)


@onnxscript.script()
def _masked(x: _ROWS) -> _NUMBERS:
    """Attention of rows to those before them; the mask is made of the shape."""
    count = op.Gather(op.Shape(x), op.Constant(value_int=0))
    at = op.Range(op.Constant(value_int=0), count, op.Constant(value_int=1))
    is_behind = op.Unsqueeze(at, op.Constant(value_ints=[0])) > op.Unsqueeze(
        at, op.Constant(value_ints=[1])
    )
    scores = op.MatMul(x, op.Transpose(x, perm=[1, 0])) * 0.35
    hidden = op.Where(is_behind, op.Constant(value_float=-1e9), scores)
    return op.MatMul(op.Softmax(hidden), x)


@onnxscript.script()
def _window_means(x: _ROWS) -> _NUMBERS:
    sums = op.CumSum(x, op.Constant(value_int=0))
    before = op.Pad(sums, op.Constant(value_ints=[3, 0, 0, 0]))
    starts, ends = op.Constant(value_ints=[0]), op.Shape(x, start=0, end=1)
    return (sums - op.Slice(before, starts, ends, op.Constant(value_ints=[0]))) / 3.0


def cases() -> Iterator[Case]:
    """All of them: rows of 8 numbers, and matrices where a function takes more."""
    for name, function in _FUNCTIONS.items():
        inputs = [Given("x", ("rows", 8))]
        inputs += [Given(each.name, (8, 16)) for each in function.to_model_proto().graph.input[1:]]
        build = function.to_model_proto
        yield Case("scripts", name, "onnxscript", tuple(inputs), {"rows": Size(0, 12)}, build)


_FUNCTIONS = {
    "gates": _gated,
    "halves": _halved,
    "a branch": _chosen,
    "the best": _best,
    "a mask": _masked,
    "moving means": _window_means,
}
