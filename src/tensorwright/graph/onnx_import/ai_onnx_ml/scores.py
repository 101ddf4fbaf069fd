"""From the scores of a classical model to its outputs: post transforms and labels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import DType
from tensorwright.graph.onnx_import.call import Call, Operand
from tensorwright.graph.onnx_import.tensors import to_array
from tensorwright.ops import Array

_CALLED_ZERO = 1e-7  # a score of SOFTMAX_ZERO
_WINITZKI = 0.147  # of his approximation of the inverse of the error function
_OF_TEXT = "its labels are text, and text tensors are not supported"
_WITHOUT_TEXT = (
    "train with labels that are integers (LabelEncoder().fit_transform(y)), or keep the output of "
    "probabilities alone (onnx.utils.extract_model), of which no label is made"
)


def rows_of(call: Call, *, keep: frozenset[DType] = frozenset((DType.F32,))) -> str:
    """Input 0 as rows of floats: those of another type as f32, one dimension as one row."""
    x = call.tensor(0)
    if call.rank(0) == 1:
        x = call.add("reshape", x, shape=(1, *call.sizes(0)))
    return x if call.type_of(x).dtype in keep else call.add("cast", x, to=DType.F32)


def numbers(call: Call, name: str, dtype: DType = DType.F32) -> NDArray[Any]:
    """A list of numbers, or the tensor that may stand in its place; empty where both are missing.

    The tensor has the name of the list and `_as_tensor` behind it.
    """
    for each in (f"{name}_as_tensor", name):
        if call.given(each):
            value = call.attributes[each]
            array = np.asarray(value) if isinstance(value, tuple) else _tensor(call, each)
            return array.astype(dtype.numpy)
    return np.zeros(0, dtype.numpy)


def _tensor(call: Call, name: str) -> Array:
    return to_array(call.attributes[name], call.folder, call.label)  # type: ignore[arg-type]


def f32(value: float) -> NDArray[np.float32]:
    """A constant of a row."""
    return np.asarray(value, np.float32)


def added(call: Call, x: Operand, numbers: Array) -> str:
    """A sum with a constant, which is left out where it is 0."""
    return call.add("add", x, numbers) if numbers.any() else call.as_tensor(x)


def labels_of(call: Call, integers: str) -> Array:
    """The integers that classes are called; numbers from 0 where nobody reads the texts.

    Raises:  UnsupportedError for texts that are read.
    """
    if call.given("classlabels_strings") and call.attributes["classlabels_strings"]:
        if call.wants(0):
            raise call.unsupported(_OF_TEXT, _WITHOUT_TEXT)
        return np.arange(len(call.attributes["classlabels_strings"]))  # type: ignore[arg-type]
    return numbers(call, integers, DType.I64)


def label_of_greatest(call: Call, scores: Operand, labels: Array) -> str:
    """The label of the first class with the greatest score."""
    best = call.add("argmax", scores, axis=1, keepdims=False, skip_nan=True)
    is_plain = np.array_equal(labels, np.arange(len(labels)))
    return best if is_plain else call.add("gather", labels, best, axis=0)


def label_of_two(call: Call, score: Operand, limit: float, labels: Array) -> str:
    """The second label where a score (rows, 1) is greater than the limit, else the first."""
    column = call.add("squeeze", score, axes=(1,))
    is_second = call.add("greater", column, call.as_array(limit, call.type_of(column).dtype))
    return call.add("where", is_second, labels[1], labels[0])


def two_scores(call: Call, score: Operand, post: str, *, of_one: bool) -> str:
    """The scores of two classes from that of the second one (rows, 1).

    of_one   the first one has what is missing to 1, else the negative
    """
    opposite = call.add("neg", score)
    if post == "LOGISTIC":
        return call.add("sigmoid", call.add("concat", opposite, score, axis=1))
    if post == "PROBIT":
        raise call.unsupported("PROBIT of one score for two classes has no second score")
    if of_one:
        opposite = call.add("add", opposite, call.as_array(1, call.type_of(score).dtype))
    return call.add("concat", opposite, score, axis=1)


def transformed(call: Call, scores: Operand, post: str) -> str:
    """Scores (rows, classes) after a post transform."""
    match post:
        case "NONE":
            return call.as_tensor(scores)
        case "LOGISTIC":
            return call.add("sigmoid", scores)
        case "SOFTMAX":
            return call.add("softmax", scores, axis=1)
        case "SOFTMAX_ZERO":
            return _softmax_zero(call, scores)
        case "PROBIT":
            return _probit(call, scores)
    raise call.unsupported(f"its post_transform {post!r} is none of ONNX")


def _softmax_zero(call: Call, scores: Operand) -> str:
    """Softmax of the scores that are not 0; those that are stay 0."""
    dtype = call.type_of(scores).dtype
    best = call.add("reduce_max", scores, axes=(1,), keepdims=True)
    counts = call.add("greater", call.add("abs", scores), call.as_array(_CALLED_ZERO, dtype))
    powers = call.add("exp", call.add("sub", scores, best))
    kept = call.add("where", counts, powers, call.as_array(0, dtype))
    total = call.add("reduce_sum", kept, axes=(1,), keepdims=True)
    small = call.add("mul", scores, call.add("exp", call.add("neg", best)))
    return call.add("div", call.add("where", counts, powers, small), total)


def _probit(call: Call, scores: Operand) -> str:
    """The inverse of the normal distribution, by Winitzki's approximation (2008)."""
    dtype = call.type_of(scores).dtype

    def constant(value: float) -> Array:
        return call.as_array(value, dtype)

    x = call.add("sub", call.add("mul", scores, constant(2)), constant(1))
    both = call.add("mul", call.add("sub", constant(1), x), call.add("add", constant(1), x))
    log = call.add("log", both)
    half = call.add("mul", log, constant(0.5))
    v = call.add("add", half, constant(2 / (math.pi * _WINITZKI)))
    under = call.add("mul", log, constant(1 / _WINITZKI))
    root = call.add("sqrt", call.add("sub", call.add("mul", v, v), under))
    size = call.add("sqrt", call.add("sub", root, v))
    sign = call.add("where", call.add("less", x, constant(0)), constant(-1), constant(1))
    return call.add("mul", call.add("mul", size, sign), constant(math.sqrt(2)))
