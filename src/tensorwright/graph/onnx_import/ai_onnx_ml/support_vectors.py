"""Support vectors: kernels, votes of pairs of classes, and the probabilities of their scores."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np

from tensorwright.base import DType
from tensorwright.graph.builder import GraphBuilder
from tensorwright.graph.nested import CONDITION, COUNT, LOOP
from tensorwright.graph.onnx_import.ai_onnx_ml.scores import (
    added,
    f32,
    label_of_greatest,
    label_of_two,
    labels_of,
    numbers,
    rows_of,
    transformed,
    two_scores,
)
from tensorwright.graph.onnx_import.call import Call, Operand, Results, Table
from tensorwright.ops import Array

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


def _regressor(call: Call) -> Results:
    count, weights = call.integer("n_supports", 0), numbers(call, "coefficients")
    x = rows_of(call)
    if count:
        vectors = numbers(call, "support_vectors").reshape(count, -1)
        x = _kernels(call, x, vectors)
    scores = added(call, call.add("matmul", x, weights.reshape(-1, 1)), numbers(call, "rho")[:1])
    if call.flag("one_class", default=False):
        is_inside = call.add("greater", scores, f32(0))
        return (call.add("where", is_inside, f32(1), f32(-1)),)
    return (transformed(call, scores, call.text("post_transform", "NONE")),)


def _classifier(call: Call) -> Results:
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
    shares = call.add("gather", both, order, axis=1)  # (rows, i, j): how often i wins of j
    apart = 1 - np.eye(classes, dtype=np.float32)
    shares = call.add("mul", shares, apart)
    mirrored = call.add("transpose", shares, perm=(0, 2, 1))
    crossed = call.add("neg", call.add("mul", shares, mirrored))
    squares = call.add("mul", mirrored, mirrored)
    own = call.add("reduce_sum", squares, axes=(2,), keepdims=True)
    matrix = call.add("add", crossed, call.add("mul", own, np.eye(classes, dtype=np.float32)))
    start = call.add(
        "full", shape=(call.sizes_of(scores)[0], classes), value=1 / classes, dtype=DType.F32
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
        return call.add("gather", x, np.array([at]), axis=1)

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


SUPPORT_VECTORS: Table = (("SVMClassifier", _classifier), ("SVMRegressor", _regressor))
