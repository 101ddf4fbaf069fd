"""From the scores of a classical model to its outputs: post transforms and labels."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import DType
from tensorwright.graph.builder import GraphBuilder
from tensorwright.graph.imports.call import Call, Operand, Results, Table
from tensorwright.graph.imports.formula import formula
from tensorwright.graph.imports.tensors import to_array
from tensorwright.graph.nested import CONDITION, COUNT, LOOP
from tensorwright.ops import Array

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
    return x if call.dtype_of(x) in keep else call.add("cast", x, to=DType.F32)


def numbers(call: Call, name: str, dtype: DType = DType.F32) -> NDArray[Any]:
    """A list of numbers, or the tensor that may stand in its place; empty where both are missing.

    The tensor has the name of the list and `_as_tensor` behind it.
    """
    for each in (f"{name}_as_tensor", name):
        if call.has(each):
            value: Any = call.attributes[each]
            is_list = isinstance(value, tuple)
            array = np.asarray(value) if is_list else to_array(value, call.folder, call.label)
            return array.astype(dtype.numpy)
    return np.zeros(0, dtype.numpy)


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
    if call.has("classlabels_strings") and call.attributes["classlabels_strings"]:
        if call.wants(0):
            raise call.unsupported(_OF_TEXT, _WITHOUT_TEXT)
        return np.arange(len(call.attributes["classlabels_strings"]))  # type: ignore[arg-type]
    return numbers(call, integers, DType.I64)


def label_of_greatest(call: Call, scores: Operand, labels: Array) -> str:
    """The label of the first class with the greatest score."""
    best = call.add("argmax", scores, axis=1, keepdims=False, skip_nan=True)
    is_plain = np.array_equal(labels, np.arange(len(labels)))
    return best if is_plain else call.take(labels, best)


def label_of_two(call: Call, score: Operand, limit: float, labels: Array) -> str:
    """The second label where a score (rows, 1) is greater than the limit, else the first."""
    column = call.add("squeeze", score, axes=(1,))
    is_second = call.add("greater", column, call.as_array(limit, call.dtype_of(column)))
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
        opposite = call.add("add", opposite, call.as_array(1, call.dtype_of(score)))
    return call.add("concat", opposite, score, axis=1)


_TRANSFORMS = {
    "NONE": "x",
    "LOGISTIC": "sigmoid(x)",
    "SOFTMAX": "softmax(x, axis=1)",
    "SOFTMAX_ZERO": """
        best = reduce_max(x, axes=(1,), keepdims=True)
        counts = abs(x) > 1e-7
        powers = exp(x - best)
        total = reduce_sum(where(counts, powers, 0), axes=(1,), keepdims=True)
        where(counts, powers, x * exp(-best)) / total
        """,
    "PROBIT": """
        x = x * 2 - 1
        powers = log((1 - x) * (1 + x))
        v = powers * 0.5 + shift
        sqrt(sqrt(v * v - powers * steep) - v) * sign(x) * root
        """,
}
"""Post transforms.  SOFTMAX_ZERO is that of the scores that are not 0; those that are stay 0.
PROBIT is the inverse of the normal distribution, by Winitzki's approximation (2008).
"""
_PROBIT = {"shift": 2 / (math.pi * 0.147), "steep": 1 / 0.147, "root": math.sqrt(2)}


def transformed(call: Call, scores: Operand, post: str) -> str:
    """Scores (rows, classes) after a post transform."""
    if post not in _TRANSFORMS:
        raise call.unsupported(f"its post_transform {post!r} is none of ONNX")
    return formula(call, _TRANSFORMS[post], x=call.as_tensor(scores), **_PROBIT)


def _products(call: Call, x: str, count: int) -> str:
    """Products of rows with `count` rows of coefficients, and the intercepts."""
    weights, bias = numbers(call, "coefficients"), numbers(call, "intercepts")
    if not count or weights.size % count:
        raise call.unsupported(f"{weights.size} coefficients do not belong to {count} results")
    return added(call, call.add("matmul", x, weights.reshape(count, -1).T.copy()), bias)


def _classifier(call: Call) -> Results:
    labels, post = labels_of(call, "classlabels_ints"), call.text("post_transform", "NONE")
    count = len(numbers(call, "intercepts")) or len(labels)
    scores = _products(call, rows_of(call), count)
    if count == 1 and len(labels) == 2:
        label = label_of_two(call, scores, 0, labels)
        return label, two_scores(call, scores, post, of_one=True)
    if len(labels) != count:
        raise call.unsupported(f"it has {len(labels)} labels for {count} scores")
    return label_of_greatest(call, scores, labels), transformed(call, scores, post)


def _regressor(call: Call) -> Results:
    scores = _products(call, rows_of(call), call.integer("targets", 1))
    return (transformed(call, scores, call.text("post_transform", "NONE")),)


LINEAR: Table = (("LinearClassifier", _classifier), ("LinearRegressor", _regressor))


_ITERATIONS = 100
_JUST_BELOW = float(np.nextafter(np.float32(0.5), np.float32(0)))
_LEAST = 1e-7  # probability that one of two classes has


def _kernels(call: Call, x: str, vectors: Array) -> str:
    """The kernel of each row with each vector (count, features)."""
    kind = call.text("kernel_type", "LINEAR")
    given = numbers(call, "kernel_params")
    gamma, offset, degree = map(f32, given if len(given) == 3 else (0, 0, 0))
    if kind == "RBF":
        pairs = call.add("unsqueeze", x, axes=(1,))
        gaps = call.add("sub", pairs, vectors)
        far = call.add("reduce_sum", call.add("mul", gaps, gaps), axes=(2,), keepdims=False)
        return call.add("exp", call.add("mul", far, -gamma))
    products = call.add("matmul", x, vectors.T.copy())
    if kind == "LINEAR":
        return products
    inner = added(call, call.add("mul", products, gamma), offset)
    if kind == "POLY":
        return call.add("pow", inner, degree)
    if kind == "SIGMOID":
        return call.add("tanh", inner)
    raise call.unsupported(f"its kernel_type {kind!r} is none of ONNX")


def _vector_regressor(call: Call) -> Results:
    count, weights = call.integer("n_supports", 0), numbers(call, "coefficients")
    x = rows_of(call)
    if count:
        vectors = numbers(call, "support_vectors").reshape(count, -1)
        x = _kernels(call, x, vectors)
    scores = added(call, call.add("matmul", x, weights.reshape(-1, 1)), numbers(call, "rho")[:1])
    if call.flag("one_class"):
        is_inside = call.add("greater", scores, f32(0))
        return (call.add("where", is_inside, f32(1), f32(-1)),)
    return (transformed(call, scores, call.text("post_transform", "NONE")),)


def _vector_classifier(call: Call) -> Results:
    labels, post = labels_of(call, "classlabels_ints"), call.text("post_transform", "NONE")
    sizes = numbers(call, "vectors_per_class", DType.I64)
    if not sizes.sum():
        return _of_linear_scores(call, labels, post)
    ends = np.cumsum(sizes)
    vectors = numbers(call, "support_vectors").reshape(ends[-1], -1)
    weights = numbers(call, "coefficients").reshape(-1, ends[-1])
    pairs = tuple(combinations(range(len(labels)), 2))
    ofs = np.zeros((ends[-1], len(pairs)), np.float32)
    votes = np.zeros((len(pairs), 2, len(labels)), np.float32)
    for at, (first, second) in enumerate(pairs):
        for own, other in ((first, second - 1), (second, first)):
            span = slice(ends[own] - sizes[own], ends[own])
            ofs[span, at] = weights[other, span]
        votes[at, 0, second] = votes[at, 1, first] = 1
    kernels = _kernels(call, rows_of(call), vectors)
    scores = added(call, call.add("matmul", kernels, ofs), numbers(call, "rho")[: len(pairs)])
    is_first = call.add("greater", scores, f32(0))
    cast = call.add("cast", is_first, to=DType.F32)
    counts = added(call, call.add("matmul", cast, votes[:, 1] - votes[:, 0]), votes[:, 0].sum(0))
    label = label_of_greatest(call, counts, labels)
    if numbers(call, "prob_a").size:
        return label, transformed(call, _probabilities(call, scores, pairs, len(labels)), post)
    if len(pairs) == 1:
        return label, two_scores(call, scores, post, of_one=post != "NONE")
    return label, transformed(call, scores, post)


def _of_linear_scores(call: Call, labels: Array, post: str) -> Results:
    """Without support vectors, coefficients are those of a linear score for each class."""
    weights = numbers(call, "coefficients").reshape(max(len(labels), 1), -1)
    products = call.add("matmul", rows_of(call), weights.T.copy())
    scores = added(call, products, numbers(call, "rho")[:1])
    if len(labels) != 2:
        return label_of_greatest(call, scores, labels), transformed(call, scores, post)
    best = call.add("reduce_max", scores, axes=(1,), keepdims=True)
    limit = _JUST_BELOW if not np.any(np.less(weights, 0)) else 0.0
    of_best = label_of_greatest(call, scores, labels)
    is_second = label_of_two(call, best, limit, np.array([0, 1]))
    is_second = call.add("cast", is_second, to=DType.BOOL)
    return call.add("where", is_second, labels[1], of_best), transformed(call, scores, post)


def _probabilities(
    call: Call, scores: str, pairs: tuple[tuple[int, int], ...], classes: int
) -> str:
    """A probability for each class from the scores of pairs.

    Source:  Platt, Probabilities for SV Machines, 1999; Wu, Lin and Weng, Probability Estimates for
             Multi-class Classification by Pairwise Coupling, JMLR 2004, algorithm 2, as libsvm does
             it: a row is done when the condition holds within 0.005 / classes.
    """
    slopes, offsets = (numbers(call, each)[: len(pairs)] for each in ("prob_a", "prob_b"))
    wins = call.add(
        "sigmoid", call.add("neg", added(call, call.add("mul", scores, slopes), offsets))
    )
    wins = call.add("clip", wins, min=_LEAST, max=1 - _LEAST)
    loses = call.add("sub", f32(1), wins)
    both = call.add("concat", wins, loses, axis=1)
    order = np.zeros((classes, classes), np.int64)
    for at, (first, second) in enumerate(pairs):
        order[first, second], order[second, first] = at, at + len(pairs)
    shares = call.take(both, order, axis=1)  # (rows, i, j): how often i wins of j
    apart = 1 - np.eye(classes, dtype=np.float32)
    shares = call.add("mul", shares, apart)
    mirrored = call.add("transpose", shares, perm=(0, 2, 1))
    crossed = call.add("neg", call.add("mul", shares, mirrored))
    squares = call.add("mul", mirrored, mirrored)
    own = call.add("reduce_sum", squares, axes=(2,), keepdims=True)
    matrix = call.add("add", crossed, call.add("mul", own, np.eye(classes, dtype=np.float32)))
    start = call.add(
        "full", shape=(call.sizes(scores)[0], classes), value=1 / classes, dtype=DType.F32
    )
    builder = GraphBuilder("probabilities")
    builder.input("step", (), COUNT.dtype)
    builder.input("condition", (), CONDITION.dtype)
    inside = replace(call, builder=builder)
    rows = call.type_of(start)
    before = builder.input("before", rows.shape, rows.dtype)
    held = builder.input("matrix", call.type_of(matrix).shape, rows.dtype)
    body = builder.finish(_improved(inside, before, held, classes))
    limit = np.asarray(_ITERATIONS)
    inputs = (call.as_tensor(limit), call.as_tensor(np.ones((), np.bool_)), start, matrix)
    return call.builder.nest(LOOP, inputs, (body,), (), carried=1)[0]


def _improved(call: Call, before: str, matrix: str, classes: int) -> tuple[str, str]:
    """Whether a row goes on, and the probabilities after one more round."""

    def column(x: Operand, at: int) -> str:
        return call.take(x, np.array([at]), axis=1)

    moved = call.add("mul", matrix, call.add("unsqueeze", before, axes=(1,)))
    slopes = call.add("reduce_sum", moved, axes=(2,), keepdims=False)
    products = call.add("mul", before, slopes)
    total = call.add("reduce_sum", products, axes=(1,), keepdims=True)
    far = call.add("abs", call.add("sub", slopes, total))
    worst = call.add("reduce_max", far, axes=(1,), keepdims=True)
    goes_on = call.add("greater_or_equal", worst, f32(0.005 / classes))
    after = before
    for at in range(classes):
        row = call.take(matrix, at, 1)
        own, slope = column(row, at), column(slopes, at)
        step = call.add("div", call.add("sub", total, slope), own)
        scale = call.add("add", step, f32(1))
        more = call.add("add", call.add("mul", step, own), call.add("mul", slope, f32(2)))
        total = call.add("add", total, call.add("mul", step, more))
        total = call.add("div", total, call.add("mul", scale, scale))
        slopes = call.add("div", call.add("add", slopes, call.add("mul", step, row)), scale)
        here = call.add("mul", step, np.eye(classes, dtype=np.float32)[at])
        after = call.add("div", call.add("add", after, here), scale)
    some = call.add("reduce_max", call.add("cast", goes_on, to=DType.I32), axes=(), keepdims=False)
    return call.add("greater", some, np.asarray(0, np.int32)), call.add(
        "where", goes_on, after, before
    )


SUPPORT_VECTORS: Table = (
    ("SVMClassifier", _vector_classifier),
    ("SVMRegressor", _vector_regressor),
)
