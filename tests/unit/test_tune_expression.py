"""`tensorwright.tune(expression)`: from a tensor expression to a tuned function."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tensorwright
from tensorwright.base import UsageError
from tensorwright.expr import Compute, compute, max_of, placeholder, reduce_axis, sum_over
from tensorwright.records import open_store
from tensorwright.tuning.measuring import MeasureOptions

pytestmark = pytest.mark.usefixtures("by_rule")

N = 48
QUICK = MeasureOptions(repeats=2, min_sample_s=0.0005)


def layer() -> Compute:
    """relu(x @ w)."""
    x, w, k = placeholder("x", (8, N)), placeholder("w", (N, N)), reduce_axis("k", N)
    y = compute("y", (8, N), lambda i, j: sum_over(x[i, k] * w[k, j], k))
    return compute("z", (8, N), lambda i, j: max_of(y[i, j], 0.0))


def arrays() -> tuple[np.ndarray, np.ndarray]:
    source = np.random.default_rng(0)
    x, w = source.normal(size=(8, N)), source.normal(size=(N, N))
    return x.astype(np.float32), w.astype(np.float32)


def test_an_expression_is_tuned_and_called(tmp_path: Path) -> None:
    x, w = arrays()
    path = tmp_path / "records.sqlite"
    function = tensorwright.tune(
        layer(), trials=6, threads=1, records=path, measuring=QUICK, seed=1
    )
    assert [each.name for each in function.inputs] == ["x", "w"]
    np.testing.assert_allclose(function(x, w), np.maximum(x @ w, 0), rtol=1e-4, atol=1e-4)
    with open_store(path) as store:
        assert store.count() >= 6


def test_constants_are_packed_into_the_function(tmp_path: Path) -> None:
    x, w = arrays()
    path = tmp_path / "records.sqlite"
    expected = np.maximum(x @ w, 0)
    function = tensorwright.tune(
        layer(), constants={"w": w}, trials=6, threads=1, records=path, measuring=QUICK
    )
    assert [each.name for each in function.inputs] == ["x"]
    np.testing.assert_allclose(function(x), expected, rtol=1e-4, atol=1e-4)
    program = tensorwright.program(layer(), constants=("w",))
    again = tensorwright.compile(program, constants={"w": w}, threads=1, records=path)
    np.testing.assert_allclose(again(x), expected, rtol=1e-4, atol=1e-4)
    again.save(tmp_path / "layer.tw")
    loaded = tensorwright.load(tmp_path / "layer.tw", threads=1)
    np.testing.assert_allclose(loaded(x), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("constants", "reason"),
    [
        ({}, r"constant w: its value is not given\n  try: give constants={'w': ARRAY}"),
        (
            {"w": np.zeros((2, 2), np.float32)},
            r"constant w: float32 \(2, 2\) is given, f32\(48, 48\) is declared",
        ),
        (
            {"w": np.zeros((N, N), np.float32), "v": np.zeros(1)},
            "constant v: the program was made without this constant\n  try: leave it out",
        ),
    ],
)
def test_constants_that_do_not_fit(constants: dict[str, np.ndarray], reason: str) -> None:
    program = tensorwright.program(layer(), constants=("w",))
    with pytest.raises(UsageError, match=reason):
        tensorwright.compile(program, constants=constants)


def test_models_have_constants_of_their_own(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a model has its own constants"):
        tensorwright.compile(tmp_path / "model.onnx", constants={})
    with pytest.raises(UsageError, match="v is not one of its placeholders\n  try: its place"):
        tensorwright.program(layer(), constants=("v",))
