"""Linear models."""

from __future__ import annotations

from tensorwright.graph.onnx_import.ai_onnx_ml.scores import (
    added,
    label_of_greatest,
    label_of_two,
    labels_of,
    numbers,
    rows_of,
    transformed,
    two_scores,
)
from tensorwright.graph.onnx_import.call import Call, Results, Table


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
