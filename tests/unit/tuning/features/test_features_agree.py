"""Features of columns of candidates are those of the loop nests lowered from their decisions."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.targets import AVX512

from tensorwright.graph import Graph, GraphBuilder, Workload
from tensorwright.pipeline import prepare
from tensorwright.schedule import state_of
from tensorwright.tuning.features import FEATURE_NAMES, Featurizer, feature_set
from tensorwright.tuning.space import space_of

Features = NDArray[np.float32]

TARGET = AVX512
ZEROS = np.zeros


def _conv(channels: int, outputs: int, size: int, kernel: int, **attributes: object) -> Graph:
    """A convolution among others, so that its tensors are blocked, and ReLU."""
    b = GraphBuilder("conv")
    x = b.input("x", (1, channels, size, size))
    groups = attributes.get("groups", 1)
    assert isinstance(groups, int)
    shape = (outputs, channels // groups, kernel, kernel)
    x = b.add("conv", x, b.constant(ZEROS(shape, np.float32)), **attributes)
    return b.finish([b.add("relu", x)])


def _chain() -> Graph:
    b = GraphBuilder("chain")
    x = b.input("x", (1, 32, 14, 14))
    for _ in range(3):
        weight = b.constant(ZEROS((32, 32, 3, 3), np.float32))
        x = b.add("relu", b.add("conv", x, weight, pads=(1, 1, 1, 1)))
    return b.finish([x])


def _matmul(rows: int, inner: int, columns: int) -> Graph:
    b = GraphBuilder("matmul")
    x = b.add("matmul", b.input("x", (rows, inner)), b.input("y", (inner, columns)))
    return b.finish([b.add("relu", x)])


def _softmax() -> Graph:
    b = GraphBuilder("softmax")
    return b.finish([b.add("softmax", b.input("x", (48, 100)))])


def _pool() -> Graph:
    b = GraphBuilder("pool")
    x = b.input("x", (1, 5, 39, 39))
    return b.finish([b.add("max_pool", x, kernel=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1))])


def _elementwise() -> Graph:
    b = GraphBuilder("elementwise")
    x = b.input("x", (64, 300))
    return b.finish([b.add("add", x, b.add("relu", x))])


GRAPHS: dict[str, Callable[[], Graph]] = {
    "blocked convolutions": _chain,
    "depthwise": lambda: _conv(32, 32, 28, 3, pads=(1, 1, 1, 1), groups=32),
    "strided": lambda: _conv(3, 16, 33, 7, strides=(2, 2), pads=(3, 3, 3, 3)),
    "grouped": lambda: _conv(32, 32, 14, 3, pads=(1, 1, 1, 1), groups=4),
    "matmul": lambda: _matmul(64, 96, 128),
    "odd matmul": lambda: _matmul(37, 100, 75),
    "softmax": _softmax,
    "pool": _pool,
    "elementwise": _elementwise,
}
BLOCKS_INSIDE = {"grouped", "strided"}
"""Stored in plain layout from a product in blocks: how many of them a tile of channels touches is
bounded where the tile is open, and counted where it is taken."""


def _is_too_large(name: str, decisions: dict[str, int]) -> bool:
    """Whether a band is larger than its axis: lowered, it is computed whole in every band."""
    return name == "pool" and decisions.get("band", 1) * decisions.get("more_rows", 1) > 5


def _workload(name: str) -> Workload:
    """The one workload, or that in the middle, whose neighbours are blocked as it is."""
    found = prepare(GRAPHS[name](), TARGET).workloads
    return found[len(found) // 2]


@pytest.mark.parametrize("name", GRAPHS)
def test_columns_are_what_is_lowered(name: str) -> None:
    drawn = random.Random(3)
    compared = 0
    workload = _workload(name)
    state = state_of(workload)
    featurizer = Featurizer(state, TARGET)
    for sketch in space_of(state, TARGET).sketches:
        if name in BLOCKS_INSIDE and sketch.name.startswith("tile"):
            continue
        genes = np.array([sketch.genes_of(sketch.sample(drawn)) for _ in range(5)], np.int64)
        genes = genes.reshape(5, len(sketch.choices))
        columns = featurizer.of_sketch(sketch, genes)
        assert columns.dtype == np.float32
        assert columns.shape[::2] == (5, len(FEATURE_NAMES))
        assert np.isfinite(columns).all()
        for row in (0, 4):
            decisions = sketch.decisions_of(tuple(genes[row].tolist()))
            if _is_too_large(name, decisions):
                continue
            lowered = featurizer.of_trace(sketch.bound(decisions))[0]
            assert not _differing(columns[row], lowered), f"{sketch.name} {decisions}"
            compared += 1
    assert compared


def _differing(one: Features, other: Features) -> dict[tuple[int, str], tuple[float, float]]:
    """The features in which the statements of two programs differ."""
    apart = np.abs(one - other) > 1e-6 * (1 + np.abs(other))
    return {
        (statement, FEATURE_NAMES[n]): (float(one[statement, n]), float(other[statement, n]))
        for statement, n in zip(*map(np.ndarray.tolist, np.nonzero(apart)), strict=True)
    }


def test_features_do_not_depend_on_the_company() -> None:
    """A candidate alone has the features that it has among others."""
    workload = _workload("matmul")
    state = state_of(workload)
    sketch = space_of(state, TARGET).sketches[-1]
    drawn = random.Random(0)
    genes = np.array([sketch.genes_of(sketch.sample(drawn)) for _ in range(9)], np.int64)
    featurizer = Featurizer(state, TARGET)
    together = featurizer.of_sketch(sketch, genes)
    for n in range(len(genes)):
        assert np.array_equal(featurizer.of_sketch(sketch, genes[n : n + 1])[0], together[n])


def test_there_are_173() -> None:
    assert len(FEATURE_NAMES) == len(set(FEATURE_NAMES)) == 173


LOOP_SETS = (
    "itervar",
    "context",
    "loop-tree",
    "curve-fix@8",
    "curve-paired@8:count/reuse,count/topdown,reuse>bottomup",
)


@pytest.mark.parametrize("name", GRAPHS)
def test_loops_of_columns_are_what_is_lowered(name: str) -> None:
    drawn = random.Random(5)
    workload = _workload(name)
    state = state_of(workload)
    space = space_of(state, TARGET)
    sets = [feature_set(each) for each in LOOP_SETS]
    sources = [each.open(state, TARGET, space) for each in sets]
    compared = 0
    for sketch in space.sketches[:6]:
        if name in BLOCKS_INSIDE and sketch.name.startswith("tile"):
            continue
        genes = np.array([sketch.genes_of(sketch.sample(drawn)) for _ in range(3)], np.int64)
        genes = genes.reshape(3, len(sketch.choices))
        for each, source in zip(sets, sources, strict=True):
            columns = source.of_sketch(sketch, genes)
            assert columns.dtype == np.float32
            assert columns.shape[::2] == (3, len(each.columns))
            assert np.isfinite(columns).all()
            for row in (0, 2):
                decisions = sketch.decisions_of(tuple(genes[row].tolist()))
                if _is_too_large(name, decisions):
                    continue
                lowered = source.of_trace(sketch.bound(decisions))[0]
                apart = np.argwhere(~np.isclose(columns[row], lowered, rtol=1e-5, atol=1e-5))
                assert not len(apart), [
                    (s, each.columns[n], columns[row][s, n], lowered[s, n]) for s, n in apart[:5]
                ]
                compared += 1
    assert compared
