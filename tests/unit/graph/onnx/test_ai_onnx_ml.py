"""Operators of `ai.onnx.ml`, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper
from tests.unit.graph.onnx.onnx_models import by_onnxruntime, node_cases, node_model

import tensorwright
from tensorwright.base import UnsupportedError
from tensorwright.graph import interpret, simplify, verify
from tensorwright.graph.imports import load_onnx
from tensorwright.graph.imports.ai_onnx_ml import AI_ONNX_ML
from tensorwright.graph.onnx_export import to_onnx
from tensorwright.ops import Array

pytestmark = pytest.mark.usefixtures("by_rule")

RANDOM = np.random.default_rng(5)
POSTS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT")
MODES = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ")
FEATURES = 5
model_of = partial(node_model, domain="ai.onnx.ml")


def normal(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


def coarse(*shape: int, dtype: Any = np.float32) -> Array:
    """Numbers that often equal each other, 0 and a limit among them, and some NaN."""
    x = (RANDOM.integers(-3, 4, shape) / 2).astype(dtype)
    if x.dtype.kind == "f":
        x[RANDOM.random(shape) < 0.1] = np.nan
    return x


def check(model: ModelProto, inputs: Mapping[str, Array], tolerance: float = 1e-5) -> None:
    graph = verify(simplify(load_onnx(model)))
    same(list(interpret(graph, inputs).values()), by_onnxruntime(model, inputs), tolerance)


def same(ours: Sequence[Array], theirs: Sequence[Array], tolerance: float) -> None:
    for own, expected in zip(ours[-len(theirs) :], theirs, strict=True):
        assert (own.dtype, own.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(own, expected, rtol=tolerance, atol=tolerance)


class Trees:
    """Random trees, of which some end early: the attributes of both ways to write them."""

    def __init__(
        self,
        trees: int,
        depth: int,
        modes: Sequence[str],
        missing: float = 0.0,
        chance: float = 0.1,
    ) -> None:
        self.nodes: list[tuple[int, int, int, str, float, int, int, int]] = []
        self.leaves: list[tuple[int, int]] = []
        self.modes, self.missing, self.chance = modes, missing, chance
        for tree in range(trees):
            self._grow(tree, 0, depth, [0])

    def _grow(self, tree: int, node: int, depth: int, last: list[int]) -> None:
        if not depth or RANDOM.random() < self.chance:
            self.leaves.append((tree, node))
            self.nodes.append((tree, node, 0, "LEAF", 0.0, 0, 0, 0))
            return
        last[0] += 2
        yes, no = last[0] - 1, last[0]
        mode = f"BRANCH_{RANDOM.choice(self.modes)}"
        limit = float(np.round(RANDOM.uniform(-2, 2) * 2) / 2)
        missing = int(RANDOM.random() < self.missing)
        feature = int(RANDOM.integers(FEATURES))
        self.nodes.append((tree, node, feature, mode, limit, yes, no, missing))
        self._grow(tree, yes, depth - 1, last)
        self._grow(tree, no, depth - 1, last)

    def attributes(self, dtype: Any = np.float32) -> dict[str, Any]:
        """The nodes, as classifiers and regressors have them."""
        trees, nodes, features, modes, limits, yes, no, missing = map(
            list, zip(*self.nodes, strict=True)
        )
        values = {"nodes_values": limits}
        if dtype == np.float64:
            tensor = numpy_helper.from_array(np.array(limits, dtype), "limits")
            values = {"nodes_values_as_tensor": tensor}
        return {
            "nodes_treeids": trees,
            "nodes_nodeids": nodes,
            "nodes_featureids": features,
            "nodes_modes": modes,
            "nodes_truenodeids": yes,
            "nodes_falsenodeids": no,
            "nodes_missing_value_tracks_true": missing,
            **values,
        }

    def votes(
        self, role: str, targets: Sequence[int], each: int = 1, *, positive: bool = False
    ) -> dict[str, Any]:
        """Votes of each leaf for some of the targets, the same ones in all of a tree."""
        count = len(targets)
        rows = [
            (tree, node, targets[(tree + k) % count])
            for tree, node in self.leaves
            for k in range(each)
        ]
        weights = RANDOM.uniform(0 if positive else -1, 1, len(rows)) / len(self.leaves) * 4
        trees, nodes, ids = map(list, zip(*rows, strict=True))
        return {
            f"{role}_treeids": trees,
            f"{role}_nodeids": nodes,
            f"{role}_ids": ids,
            f"{role}_weights": weights.tolist(),
        }


@pytest.mark.parametrize("missing", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("modes", [*((mode,) for mode in MODES), MODES], ids="-".join)
def test_branches(modes: Sequence[str], missing: float) -> None:
    trees = Trees(4, 4, modes, missing)
    attributes = {**trees.attributes(), **trees.votes("target", [0])}
    check(*model_of("TreeEnsembleRegressor", coarse(60, FEATURES), n_targets=1, **attributes))


@pytest.mark.parametrize("missing", [0.0, 1.0])
@pytest.mark.parametrize("mode", MODES)
def test_limits_next_to_zero(mode: str, missing: float) -> None:
    """Kernels take the least numbers for 0, ONNX Runtime does not: features are 0 or normal."""
    least = np.finfo(np.float32).smallest_normal
    x = np.array([0.0, -0.0, least, -least, 1.0, -1.0, np.nan], np.float32)
    for limit in (0.0, 1e-45, -1e-45, 1e-39, -1e-39, float(least), -float(least)):
        trees = Trees(1, 1, (mode,), missing, chance=0.0)
        trees.nodes = [(*node[:2], 0, node[3], limit, *node[5:]) for node in trees.nodes]
        attributes = {**trees.attributes(), **trees.votes("target", [0])}
        model, inputs = model_of("TreeEnsembleRegressor", x[:, None], n_targets=1, **attributes)
        check(model, inputs)


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.int32])
def test_features_of_other_types(dtype: Any) -> None:
    trees = Trees(4, 4, ("LEQ", "GT"), 0.5)
    attributes = {**trees.attributes(dtype), **trees.votes("class", range(3))}
    attributes |= {"outputs": 2, "classlabels_int64s": [0, 1, 2]}
    x = coarse(30, FEATURES, dtype=dtype)
    check(*model_of("TreeEnsembleClassifier", x, **attributes))


@pytest.mark.parametrize("post", POSTS)
@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize(("targets", "each"), [(1, 1), (3, 1), (4, 2)])
def test_regressors(targets: int, each: int, aggregate: str, post: str) -> None:
    trees = Trees(5, 3, ("LEQ",))
    attributes = {**trees.attributes(), **trees.votes("target", range(targets), each)}
    attributes |= {"aggregate_function": aggregate, "post_transform": post}
    for base in ({}, {"base_values": [0.25] * targets}):
        more = {"n_targets": targets, **base, **attributes}
        x = coarse(40, FEATURES)
        check(*model_of("TreeEnsembleRegressor", x, **more), tolerance=1e-4)


@pytest.mark.parametrize("post", POSTS[:4])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize(
    ("labels", "of", "each", "bases"),
    [
        ([3, 1, 7], (0, 1, 2), 3, (0, 3)),
        ([0, 1, 2], (0, 1, 2), 1, (0, 3)),
        ([0, 1, 2], (0, 2), 1, (0,)),
        ([5, 9], (0,), 1, (0, 1, 2)),
        ([0, 1], (1,), 1, (0,)),
        ([5, 9], (0, 1), 2, (0, 1, 2)),
        ([4], (0,), 1, (0,)),
    ],
)
def test_classifiers(
    labels: list[int], of: Sequence[int], each: int, bases: Sequence[int], positive: bool, post: str
) -> None:
    trees = Trees(6, 3, ("LEQ", "LT"))
    votes = trees.votes("class", of, each, positive=positive)
    for count in bases:
        attributes = {**trees.attributes(), **votes, "post_transform": post}
        attributes |= {"classlabels_int64s": labels, "outputs": 2}
        attributes |= {"base_values": [0.1, 0.3, -0.2][:count]} if count else {}
        check(*model_of("TreeEnsembleClassifier", coarse(40, FEATURES), **attributes))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("aggregate", range(4))
def test_ensembles_of_the_newest_form(aggregate: int, dtype: Any) -> None:
    """Memberships, leaves that are children of a root, leaves with two parents."""
    members = [1.0, 3.0, 2.0, np.nan, 1.0, np.nan]

    def tensor(values: Sequence[float], kind: Any = dtype) -> Any:
        return numpy_helper.from_array(np.array(values, kind), "t")

    model, inputs = model_of(
        *("TreeEnsemble", 2 * coarse(60, FEATURES, dtype=dtype)),
        ml=5,
        n_targets=2,
        aggregate_function=aggregate,
        tree_roots=[0, 3],
        nodes_modes=tensor([0, 6, 5, 6, 2], np.uint8),
        nodes_featureids=[0, 1, 2, 1, 3],
        nodes_splits=tensor([0.5, 0, 1, 0, -0.5]),
        nodes_truenodeids=[1, 0, 2, 4, 3],
        nodes_trueleafs=[0, 1, 1, 0, 1],
        nodes_falsenodeids=[2, 1, 1, 3, 4],
        nodes_falseleafs=[0, 1, 1, 1, 1],
        nodes_missing_value_tracks_true=[0, 1, 0, 0, 1],
        membership_values=tensor(members),
        leaf_targetids=[0, 1, 0, 1, 0],
        leaf_weights=tensor([0.5, -0.25, 1.0, 0.125, 2.0]),
    )
    check(model, inputs)


def test_exported_trees_are_the_same() -> None:
    trees = Trees(3, 3, MODES)
    attributes = {**trees.attributes(), **trees.votes("target", [0])}
    x = np.nan_to_num(coarse(9, FEATURES))
    model, given = model_of("TreeEnsembleRegressor", x, n_targets=1, **attributes)
    same(by_onnxruntime(to_onnx(load_onnx(model)), given), by_onnxruntime(model, given), 1e-5)


def test_a_compiled_forest_takes_any_number_of_rows() -> None:
    trees = Trees(7, 5, MODES, 0.3)
    attributes = {**trees.attributes(), **trees.votes("class", range(3), 3)}
    model, _ = model_of(
        *("TreeEnsembleClassifier", coarse(1, FEATURES)),
        outputs=2,
        classlabels_int64s=[0, 1, 2],
        post_transform="SOFTMAX",
        **attributes,
    )
    executable = tensorwright.compile(model)
    for rows in (0, 1, 2, 33, 200):
        inputs = {"x0": coarse(rows, FEATURES)}
        same(list(executable.run(inputs).values()), by_onnxruntime(model, inputs), 1e-5)


PLAIN = """
scaler: Scaler(normal(6, 3), offset=[0.5, -1.0, 0.0], scale=[2.0, 1.0, 0.25])
one scale: Scaler(RANDOM.integers(-9, 9, (6, 3)), offset=[0.5], scale=[2.0])
imputer: Imputer(coarse(20, 3), imputed_value_floats=[1.0, 2.0, 3.0], replaced_value_float=np.nan)
imputer of integers: Imputer(RANDOM.integers(0, 3, (20, 3)), imputed_value_int64s=[7],
    replaced_value_int64=1)
binarizer: Binarizer(normal(20, 2), threshold=0.25)
columns: ArrayFeatureExtractor(normal(3, 4), np.array([3, 0, 2]))
vectorizer: FeatureVectorizer(normal(6, 2), normal(6, 3), inputdimensions=[2, 3])
one-hot: OneHotEncoder(RANDOM.integers(0, 5, (6,)), cats_int64s=[3, 1, 0])
encoder: LabelEncoder(RANDOM.integers(0, 5, (6, 2)), keys_int64s=[3, 1, 0],
    values_floats=[0.5, 1.5, 2.5], default_float=-7.0)
encoder of floats: LabelEncoder(coarse(30, 2), keys_floats=[0.5, -1.5, 1.0],
    values_int64s=[4, 8, 5])
norm {norm}: Normalizer(np.append(normal(5, 4), np.zeros((1, 4), np.float32), 0), norm="{norm}")
    for norm in ("MAX", "L1", "L2")
linear regressor {post}: LinearRegressor(normal(6, 3), coefficients=normal(6).tolist(),
    intercepts=[0.5, -0.25], targets=2, post_transform="{post}")
    for post in POSTS
support vectors, {kernel}: SVMRegressor(normal(6, 3), kernel_type="{kernel}",
    kernel_params=[0.5, 0.25, 2.0], support_vectors=normal(12).tolist(), n_supports=4,
    coefficients=normal(4).tolist(), rho=[0.25], one_class=int("{kernel}" == "LINEAR"))
    for kernel in ("LINEAR", "POLY", "RBF", "SIGMOID")
linear scores of a regressor: SVMRegressor(normal(6, 3), coefficients=normal(3).tolist(),
    rho=[0.25], kernel_type="LINEAR", kernel_params=[0.0, 0.0, 0.0])
"""
CASES = node_cases(PLAIN, globals(), domain="ai.onnx.ml")


@pytest.mark.parametrize("case", CASES)
def test_one_result(case: str) -> None:
    check(*CASES[case])


@pytest.mark.parametrize("post", POSTS)
@pytest.mark.parametrize("count", [1, 3])
def test_linear_classifiers(count: int, post: str) -> None:
    if (count, post) == (1, "PROBIT"):
        return  # which ONNX Runtime answers with memory that nothing was written to
    attributes = {
        "coefficients": normal(3 * count).tolist(),
        "intercepts": normal(count).tolist(),
        "classlabels_ints": [5, 9, 4][: max(count, 2)],
        "post_transform": post,
    }
    check(*model_of("LinearClassifier", normal(20, 3), outputs=2, **attributes))


@pytest.mark.parametrize("post", ["NONE", "LOGISTIC", "SOFTMAX"])
@pytest.mark.parametrize("has_probabilities", [False, True])
@pytest.mark.parametrize("vectors", [(2, 3), (2, 1, 3), (0,)])
def test_support_vectors(vectors: tuple[int, ...], has_probabilities: bool, post: str) -> None:
    count, classes = sum(vectors), max(len(vectors), 2)
    pairs = classes * (classes - 1) // 2
    attributes = {"classlabels_ints": [5, 9, 4][:classes], "post_transform": post}
    attributes |= {"rho": normal(pairs).tolist(), "kernel_params": [0.5, 0.0, 3.0]}
    if count:
        attributes |= {
            "vectors_per_class": vectors,
            "support_vectors": normal(count * 3).tolist(),
            "coefficients": normal(count * (classes - 1)).tolist(),
            "kernel_type": "RBF",
        }
    else:
        attributes["coefficients"] = normal(3 * classes).tolist()
    if has_probabilities and count:
        attributes |= {each: normal(pairs).tolist() for each in ("prob_a", "prob_b")}
    check(*model_of("SVMClassifier", normal(20, 3), outputs=2, **attributes), tolerance=1e-4)


def test_each_operator_has_a_case() -> None:
    tried = {model.graph.node[0].op_type for model, _ in CASES.values()} | set(REFUSED)
    tried |= {"TreeEnsemble", "TreeEnsembleRegressor", "TreeEnsembleClassifier"}
    assert tried | {"LinearClassifier", "SVMClassifier"} == AI_ONNX_ML.keys()


REFUSED = {"ZipMap": "zipmap", "DictVectorizer": "columns", "CastMap": "columns"} | {
    "CategoryMapper": "codes"
}


@pytest.mark.parametrize("operator", REFUSED)
def test_maps_and_text_are_refused(operator: str) -> None:
    with pytest.raises(UnsupportedError, match=REFUSED[operator]):
        load_onnx(model_of(operator, normal(2, 3))[0])


def test_probabilities_of_classes_that_are_text() -> None:
    trees = Trees(3, 2, ("LEQ",))
    attributes = {**trees.attributes(), **trees.votes("class", range(3), 3)}
    model, inputs = model_of(
        *("TreeEnsembleClassifier", normal(4, FEATURES)),
        outputs=2,
        classlabels_strings=["a", "b", "c"],
        **attributes,
    )
    with pytest.raises(UnsupportedError, match="labels are text"):
        load_onnx(model)
    del model.graph.output[0]
    check(model, inputs)
