"""The search for a faster graph, from Python and from the command line."""

from __future__ import annotations

import importlib
import math

import numpy as np
import onnx
import pytest
from tests.unit.branching_models import loop

import tensorwright
from tensorwright.base import (
    InternalError,
    MachineError,
    UnsupportedError,
    UsageError,
    override,
)
from tensorwright.drivers import graph_prices
from tensorwright.drivers import rewrite as graph_search
from tensorwright.expr import Index, named_size
from tensorwright.graph import Graph, GraphBuilder, bind_sizes, interpret, random_inputs
from tensorwright.graph.imports import load_onnx
from tensorwright.graph.onnx_export import to_onnx
from tensorwright.rewriting import parse_rule
from tensorwright.rewriting.networks import NetworkRules
from tensorwright.tuning.session import Options

MODULE = importlib.import_module("tensorwright.drivers.rewrite")


def chain_of_products(width: int = 512, rows: Index = 64) -> Graph:
    """Two products that are one, of constants that are multiplied before."""
    b = GraphBuilder("chain")
    x = b.input("x", (rows, 16))
    y = b.add("matmul", x, b.constant(_weights(16, width)), output="wide")
    return b.finish(
        (b.add("relu", b.add("matmul", y, b.constant(_weights(width, 16))), output="y"),)
    )


def _weights(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    drawn = np.random.default_rng(sum(shape)).standard_normal(shape)
    return (drawn / np.sqrt(shape[0])).astype(np.float32)


def test_a_faster_graph_is_found_and_says_by_which_rules() -> None:
    graph = chain_of_products()
    found = tensorwright.rewrite(graph, measure=False)
    assert found.is_changed
    assert [node.operator for node in found.graph.nodes] == ["matmul", "relu"]
    assert (found.graph.inputs, found.graph.outputs) == (("x",), ("y",))
    assert set(found.rules) == {"associativity"}
    assert found.after_s < found.before_s
    inputs = random_inputs(graph)
    want, got = interpret(graph, inputs)["y"], interpret(found.graph, inputs)["y"]
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    onnx.checker.check_model(found.onnx, full_check=True)


def test_a_faster_graph_for_all_sizes_is_found_and_certified() -> None:
    rows = named_size("rows", greatest=96)
    graph = chain_of_products(rows=rows)
    found = tensorwright.rewrite(graph, measure=False)
    assert [node.operator for node in found.graph.nodes] == ["matmul", "relu"]
    assert found.certificate is not None
    assert found.certificate.sizes == {"rows": "rows <= 96"}
    for number in (1, 41, 96):
        inputs = random_inputs(bind_sizes(graph, {"rows": number}))
        want, got = interpret(graph, inputs)["y"], interpret(found.graph, inputs)["y"]
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    back = load_onnx(found.onnx)
    assert back.types["y"].shape == (rows, 16)
    graph_search.check_certificate(found.certificate, graph, back, lambda _: True)


def test_the_bounds_of_sizes_are_those_of_the_caller() -> None:
    model = to_onnx(chain_of_products(rows=named_size("rows")))
    found = tensorwright.rewrite(model, measure=False, sizes={"rows": "8..64 by 8"})
    assert found.source.sizes[0].constraints == "rows <= 64, rows % 8 == 0"


def test_sizes_that_a_loop_decides_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="is the number of its iterations"):
        tensorwright.rewrite(loop())


def test_a_graph_stays_where_nothing_is_faster() -> None:
    b = GraphBuilder("one")
    graph = b.finish((b.add("softmax", b.input("x", (4, 8))),))
    found = tensorwright.rewrite(graph, seconds=1)
    assert not found.is_changed
    assert found.graph is found.source
    assert not found.rules


def test_a_sum_of_reshapes_of_other_ranks_is_no_place_for_a_rule_of_one_rank() -> None:
    b = GraphBuilder("windows")
    x, image = b.input("x", (1, 784, 64)), b.input("image", (1, 28, 28, 64))
    product = b.add("matmul", x, b.constant(_weights(64, 64)))
    cut = b.add("reshape", product, shape=(1, 4, 4, 7, 7, 64))
    turned = b.add("transpose", cut, perm=(0, 1, 3, 2, 4, 5))
    flat = [b.add("reshape", each, shape=(1, 784, 64)) for each in (turned, image)]
    graph = b.finish((b.add("add", *flat, output="y"),))
    found = tensorwright.rewrite(graph, measure=False)
    inputs = random_inputs(graph)
    want, got = interpret(graph, inputs)["y"], interpret(found.graph, inputs)["y"]
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_exact_searches_keep_the_order_of_sums() -> None:
    assert not tensorwright.rewrite(chain_of_products(), exact=True, seconds=5).is_changed


def test_what_is_no_amount_or_no_shapes_is_refused() -> None:
    model = chain_of_products()
    for seconds in (-1.0, math.nan):
        with pytest.raises(UsageError, match="0 or more\n  try: seconds=30"):
            tensorwright.rewrite(model, seconds=seconds)
    with pytest.raises(UsageError, match="0 or more"):
        Options(minutes=-1.0)
    with pytest.raises(UsageError, match=r"minutes=a: it must be a number.*\n  try: minutes=10"):
        Options(minutes="a")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="it is not a mapping"):
        load_onnx(to_onnx(model), "N:3")  # type: ignore[arg-type]


def test_a_rule_that_is_never_tried_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = parse_rule("there-and-back: transpose[1, 0](transpose[1, 0](relu(?x))) == relu(?x)")
    monkeypatch.setattr(MODULE, "read_own_rules", lambda *_, is_trusted: (rule,))
    monkeypatch.setattr(MODULE.networks, "network_rules", lambda *_, is_exact: NetworkRules((), ()))
    with pytest.warns(UserWarning, match="rule there-and-back is never tried"):
        tensorwright.rewrite(chain_of_products(), rules=["mine.rules"], seconds=0)


def test_without_a_model_of_times_nothing_is_searched() -> None:
    with override(default_schedule="rule"), pytest.raises(MachineError, match="no time model"):
        tensorwright.rewrite(chain_of_products())


@pytest.mark.parametrize(("after_s", "is_kept"), [(1.0, True), (1.995, False), (3.0, False)])
def test_what_is_measured_decides(
    after_s: float, is_kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def timed(executables: list[object], *_: object, **__: object) -> list[float]:
        return [2.0, *[after_s] * (len(executables) - 1)]

    monkeypatch.setattr(graph_prices, "seconds_in_turns", timed)
    found = tensorwright.rewrite(chain_of_products())
    assert found.is_changed == is_kept
    assert found.trial == graph_search.Trial(2.0, after_s)
    assert (found.certificate is not None) == is_kept
    assert (found.after_s < found.before_s) == is_kept


def test_an_interrupt_keeps_the_best_so_far() -> None:
    asked = iter((False, False, False))
    found = tensorwright.rewrite(chain_of_products(), should_stop=lambda: next(asked, True))
    assert found.trial is None
    assert "interrupt" in found.stop_text


def test_a_fault_of_ours_is_named_and_no_graph_handed_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object, **__: object) -> object:
        raise IndexError("of ours")

    monkeypatch.setattr(MODULE, "find_candidates", failing)
    with pytest.raises(InternalError) as caught:
        tensorwright.rewrite(chain_of_products())
    assert caught.value.where.startswith("the search for a faster graph (test_graph_search.py, ")
    assert caught.value.reason == "IndexError: of ours"
    assert caught.value.remedy == "compile, tune and optimize take the model as it is"


@pytest.mark.parametrize("argument", ["search", "cost"])
def test_an_unknown_word_is_refused(argument: str) -> None:
    with pytest.raises(UsageError, match="there is no 'guess'"):
        tensorwright.rewrite(chain_of_products(), **{argument: "guess"})  # type: ignore[arg-type]
