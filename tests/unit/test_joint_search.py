"""Graphs and loop nests searched within one budget."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.unit.test_graph_search import chain_of_products

import tensorwright
from tensorwright import pipeline
from tensorwright.base import RecordError
from tensorwright.compile_options import USUAL
from tensorwright.drivers import graph_prices, graph_record
from tensorwright.drivers import optimize as joint_search
from tensorwright.expr import named_size
from tensorwright.graph import bind_sizes, interpret, random_inputs, simplify
from tensorwright.pipeline import record_graph, recorded_graph
from tensorwright.records import MemoryStore
from tensorwright.rewriting.networks import NO_STEPS

GRAPH_SEARCH = importlib.import_module("tensorwright.drivers.rewrite")


def rewriting_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is measured, the rewritten graph is faster: what the clock says is no test's matter.

    The search puts the source first, the comparison of what was tuned puts it last.
    """

    def first_loses(executables: list[object], *_: object, **__: object) -> list[float]:
        return [2.0, *[1.0] * (len(executables) - 1)]

    monkeypatch.setattr(graph_prices, "seconds_in_turns", first_loses)
    monkeypatch.setattr(joint_search, "seconds_in_turns", lambda *_, **__: [1.0, 2.0])


def test_the_graph_that_is_tuned_is_kept_and_compiled_from_then_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph, store = chain_of_products(), MemoryStore()
    rewriting_wins(monkeypatch)
    executable = tensorwright.optimize(graph, trials=8, records=store)
    inputs = random_inputs(graph)
    want = interpret(graph, inputs)["y"]
    np.testing.assert_allclose(executable.run(inputs)["y"], want, rtol=1e-4, atol=1e-5)
    kept = recorded_graph(store, simplify(graph), USUAL.machine, None)
    assert kept is not None
    assert [node.operator for node in kept.nodes] == ["matmul", "relu"]
    compiled = tensorwright.compile(graph, records=store)
    assert compiled.plan == executable.plan
    monkeypatch.setattr(joint_search, "rewrite", None)  # another run does not search again
    tensorwright.optimize(graph, trials=9, records=store)


def test_an_open_network_is_rewritten_and_tuned_for_some_sizes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = named_size("rows", greatest=96)
    graph, store = chain_of_products(rows=rows), MemoryStore()
    rewriting_wins(monkeypatch)
    executable = tensorwright.optimize(graph, trials=8, records=store)
    kept = recorded_graph(store, simplify(graph), USUAL.machine, None)
    assert kept is not None
    assert [node.operator for node in kept.nodes] == ["matmul", "relu"]
    compiled = tensorwright.compile(graph, records=store)
    assert compiled.plan == executable.plan
    for number in (1, 41, 96):
        inputs = random_inputs(bind_sizes(graph, {"rows": number}))
        want = interpret(graph, inputs)["y"]
        np.testing.assert_allclose(executable.run(inputs)["y"], want, rtol=1e-4, atol=1e-5)
    wider = simplify(chain_of_products(rows=named_size("rows", greatest=97)))
    assert recorded_graph(store, wider, USUAL.machine, None) is None


def test_without_rewriting_the_graph_stays() -> None:
    graph, store = chain_of_products(), MemoryStore()
    tensorwright.optimize(graph, trials=4, records=store, rewrite=False)
    assert recorded_graph(store, simplify(graph), USUAL.machine, None) is None


def test_a_graph_that_loses_as_tuned_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, store = chain_of_products(), MemoryStore()
    rewriting_wins(monkeypatch)
    monkeypatch.setattr(joint_search, "seconds_in_turns", lambda *_, **__: [2.0, 1.0])
    found = joint_search.search_jointly(simplify(graph), USUAL.machine, None, store, trials(4))
    assert [node.operator for node in found.graph.nodes] == ["matmul", "matmul", "relu"]
    assert recorded_graph(store, simplify(graph), USUAL.machine, None) is not None
    assert found.rewritten is not None
    assert found.rewritten.is_changed


def failing(fault: BaseException) -> Callable[..., object]:
    def search(*_: object, **__: object) -> object:
        raise fault

    return search


def test_a_fault_in_the_search_for_a_graph_is_told_once_and_the_network_is_tuned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(GRAPH_SEARCH, "find_candidates", failing(ZeroDivisionError("of ours")))
    graph, store = chain_of_products(), MemoryStore()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        executable = tensorwright.optimize(graph, trials=4, records=store)
    (text,) = [str(each.message) for each in told]
    assert text.startswith("the search for a faster graph failed, the network is tuned as it is: ")
    assert "the search for a faster graph (test_joint_search.py, line" in text
    assert "ZeroDivisionError: of ours" in text
    assert "please report it" in text
    inputs = random_inputs(graph)
    want = interpret(graph, inputs)["y"]
    np.testing.assert_allclose(executable.run(inputs)["y"], want, rtol=1e-4, atol=1e-5)
    assert recorded_graph(store, simplify(graph), USUAL.machine, None) is None


@pytest.mark.parametrize(
    "fault", [KeyboardInterrupt(), RecordError(stage="records", where="file", reason="locked")]
)
def test_interrupts_and_what_a_user_can_mend_end_it(
    fault: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GRAPH_SEARCH, "find_candidates", failing(fault))
    with pytest.raises(type(fault)):
        tensorwright.optimize(chain_of_products(), trials=4, records=MemoryStore())


def test_a_fault_while_a_kept_graph_is_followed_is_told_and_the_network_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph, store = simplify(chain_of_products()), MemoryStore()
    record_graph(store, graph, USUAL.machine, None, NO_STEPS.to_json())
    monkeypatch.setattr(graph_record, "replay", failing(IndexError("of ours")))
    with pytest.warns(RuntimeWarning, match=r"kept beside the records \(.*IndexError: of ours"):
        pipeline.compile(graph, records=store)


def trials(count: int) -> joint_search.Options:
    return joint_search.Options(trials=count)


@pytest.mark.parametrize("text", ["{}", '{"format": "of another version"}'])
def test_what_cannot_be_followed_is_not_used(text: str, tmp_path: Path) -> None:
    graph, store = simplify(chain_of_products()), MemoryStore()
    target = USUAL.machine
    record_graph(store, graph, target, None, text)
    assert recorded_graph(store, graph, target, None) is None
    pipeline.compile(graph, records=store)
    record_graph(store, graph, target, None, "")
    assert recorded_graph(store, graph, target, None) is graph
