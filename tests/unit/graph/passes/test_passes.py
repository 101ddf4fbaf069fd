"""Each pass: what it rewrites, what it leaves alone, and that values stay.

`graphs.txt` has small graphs, each as calls of operators that name their results; the golden file
has what they become. `norm` is a batch norm with drawn parameters, `rows` are positions of rows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from tests.unit.graph.onnx.onnx_models import assert_same_values
from tests.unit.graph.random_graphs import graphs

from tensorwright.base import DType, knobs
from tensorwright.graph import (
    PASSES,
    FoldedConstants,
    Graph,
    GraphBuilder,
    interpret,
    simplify,
    verify,
)
from tensorwright.graph.builder import frozen_array
from tensorwright.graph.passes.identities import remove_dead_code
from tensorwright.ops import infer_types
from tensorwright_lab.zoo import build as build_network

RANDOM = np.random.default_rng(7)
BLOCKS = Path(__file__).with_name("graphs.txt").read_text().split("== ")[1:]


def normal(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return RANDOM.normal(size=shape).astype(np.float32)


def positive(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return RANDOM.uniform(0.5, 2, shape).astype(np.float32)


def places(*shape: int) -> np.ndarray[Any, Any]:
    return RANDOM.integers(-9, 9, shape)


def rows(*shape: int) -> np.ndarray[Any, Any]:
    return np.broadcast_to(places(shape[0], *(1 for _ in shape[1:])), shape).copy()


class Names(dict[str, Any]):
    """What a block may call: what makes inputs and constants, and all operators."""

    def __init__(self, builder: GraphBuilder) -> None:
        super().__init__({str(dtype): dtype for dtype in DType}, inf=float("inf"))
        self.builder = builder
        self.update(input=self.input, const=self.const, norm=self.norm)
        self.update({each.__name__: self.drawn(each) for each in (normal, positive, rows, places)})

    def __missing__(self, operator: str) -> Callable[..., str]:
        return lambda *inputs, **attributes: self.builder.add(operator, *inputs, **attributes)

    def input(self, name: str, *shape: int, dtype: DType = DType.F32) -> str:
        return self.builder.input(name, shape, dtype)

    def const(self, value: object, dtype: DType = DType.F32) -> str:
        return self.builder.constant(np.array(value, dtype.numpy))

    def drawn(self, array: Callable[..., np.ndarray[Any, Any]]) -> Callable[..., str]:
        return lambda *shape: self.builder.constant(array(*shape))

    def norm(self, x: str) -> str:
        channels = self.builder.shape_of(x)[1]
        vectors = (positive(channels), normal(channels), normal(channels), positive(channels))
        parameters = (self.builder.constant(vector) for vector in vectors)
        return self.builder.add("batch_norm", x, *parameters, epsilon=1e-3)


def graph_of(text: str) -> Graph:
    """The graph of a block without its name; the last line has the outputs."""
    *steps, outputs = text.strip().splitlines()
    builder = GraphBuilder()
    names = Names(builder)
    exec("\n".join(steps), {"__builtins__": {}}, names)
    results = eval(outputs, {"__builtins__": {}}, names)
    return builder.finish([results] if isinstance(results, str) else results)


def test_what_graphs_become(golden: Callable[..., None]) -> None:
    found = []
    for block in BLOCKS:
        name, _, text = block.partition("\n")
        graph = graph_of(text)
        simple = verify(simplify(graph))
        assert_same_values(graph, simple)
        lines = re.sub(r" = sha256:\w+", "", str(simple)).splitlines()[1:]
        found += [f"== {name}", *(line.strip() for line in lines), ""]
    golden("\n".join(found))


def operators(graph: Graph) -> list[str]:
    return [node.operator for node in graph.nodes]


@given(graphs())
@settings(max_examples=25)
def test_values_and_signatures_stay(graph: Graph) -> None:
    simple = verify(simplify(graph))
    assert_same_values(graph, simple)
    assert len(simple.nodes) <= len(graph.nodes)
    assert str(simplify(simple)) == str(simple)


@pytest.mark.parametrize("each", PASSES, ids=lambda each: each.__name__)
@given(graphs())
@settings(max_examples=8)
def test_each_pass_alone(each: Callable[[Graph], tuple[Graph, int]], graph: Graph) -> None:
    changed, count = each(graph)
    assert_same_values(graph, verify(changed))
    if not count and each is not remove_dead_code:  # it may drop constants alone
        assert changed is graph


def test_types_are_inferred_of_what_changes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    inferred: list[str] = []

    def counted(name: str, *arguments: Any) -> Any:
        inferred.append(name)
        return infer_types(name, *arguments)

    graph = build_network("squeezenet", 0)
    monkeypatch.setattr("tensorwright.graph.infer.infer_types", counted)
    assert simplify(graph) is graph
    assert inferred == []
    monkeypatch.undo()
    graph = build_network("resnet18", 0)  # 20 convolutions, each with a batch norm
    monkeypatch.setattr("tensorwright.graph.infer.infer_types", counted)
    simplify(graph)
    made = {"mul": 20, "add": 20, "conv": 2 * 20}  # a norm becomes a mul and an add, absorbed
    assert Counter(inferred) == made


def test_the_dump_counts(tmp_path: Path) -> None:
    graph = graph_of('norm(conv(input("x", 1, 4, 2, 2), normal(4, 4, 1, 1)))')
    with knobs.override(dump="rules", dump_dir=str(tmp_path)):
        simplify(graph)
    (text,) = [path.read_text() for path in tmp_path.rglob("*simplify*")]
    made = ["lower_batch_norm 1", "absorb_scale 1", "absorb_shift 1"]
    assert [line.strip() for line in text.splitlines()[1:]] == made


def test_what_is_made_of_the_same_constants_is_computed_once_for_several_graphs() -> None:
    left, right, other = (frozen_array(normal(6, 6)) for _ in range(3))
    known = FoldedConstants()

    def product(first: np.ndarray[Any, Any], second: np.ndarray[Any, Any]) -> Any:
        b = GraphBuilder()
        x = b.input("x", (6, 6))
        made = b.add("matmul", b.constant(first, "a"), b.constant(second, "b"))
        simple = simplify(b.finish([b.add("add", x, made)]), known)
        (array,) = simple.constants.values()
        assert np.allclose(array, first @ second, atol=1e-5)
        return array

    assert product(left, right) is product(left, right)
    assert product(left, other) is not product(left, right)


@pytest.mark.parametrize(
    "zero", [None, np.array(7, np.uint8), np.array([-100], np.int8), np.array(300, np.uint16)]
)
def test_what_is_quantised_and_no_longer_so_is_rounded_in_floats(
    zero: np.ndarray[Any, Any] | None,
) -> None:
    b = GraphBuilder()
    wide = b.add("mul", b.input("x", (3, 40)), b.constant(30 * positive(40)))
    parameters = [b.constant(np.array(0.25, np.float32))]
    parameters += [] if zero is None else [b.constant(zero)]
    codes = b.add("quantize_linear", wide, *parameters)
    graph = b.finish([b.add("dequantize_linear", codes, *parameters)])
    simple = verify(simplify(graph))
    assert operators(simple) == ["mul", "div", "round", "clip", "mul"]
    inputs = {"x": normal(3, 40)}
    (expected,), (found,) = (interpret(each, inputs).values() for each in (graph, simple))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("rows", [512, 4096])
def test_codes_of_weights_become_numbers_unless_reading_them_is_the_work(rows: int) -> None:
    b = GraphBuilder()
    codes = b.constant(RANDOM.integers(-9, 9, (rows, 4096), np.int8))
    weights = b.add("dequantize_linear", codes, b.constant(np.array(0.5, np.float32)))
    product = b.finish([b.add("matmul", b.input("x", (1, rows)), weights)])
    stays = ("dequantize_linear", "matmul") if rows == 4096 else ("matmul",)
    assert operators(simplify(product)) == [*stays]
