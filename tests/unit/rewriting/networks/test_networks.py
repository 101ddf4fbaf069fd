"""Networks as terms: read, rewritten, chosen and written they compute the same."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, pairwise

import numpy as np
import pytest

from tensorwright.base import DType
from tensorwright.graph import Graph, GraphBuilder, interpret, random_inputs, simplify
from tensorwright.rewriting import networks, parse_rule, parse_rules
from tensorwright.rewriting.egraph import Applies, BudgetSpent, Saturated, Scope
from tensorwright.rewriting.library import load_library
from tensorwright.rewriting.local_search import cheap_selections
from tensorwright.rewriting.networks.network_analysis import CALL
from tensorwright_lab.judging.searched_graphs import in_double
from tensorwright_lab.zoo import build

RULES = networks.network_rules(each.rule for each in load_library())
MERGE = next(each.rule for each in load_library() if each.rule.name == "merge-matmuls")


def weights(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    drawn = np.random.default_rng(sum(shape)).standard_normal(shape)
    return (drawn / np.sqrt(shape[-1])).astype(np.float32)


def chosen(network: networks.Network) -> Graph:
    extraction = networks.NetworkExtraction(network, networks.Roofline())
    return networks.write_network(
        network, extraction.choice(cheap_selections(extraction.problem, 1)[0])
    )


def mixed() -> Graph:
    """Operators with counterparts of all kinds, and some without."""
    b = GraphBuilder("mixed")
    x, ids = b.input("x", (2, 5, 8)), b.input("ids", (2, 5), DType.I64)
    x = b.add("add", x, b.add("gather", b.constant(weights(11, 8)), ids))
    y = b.add("add", b.add("matmul", x, b.constant(weights(8, 12))), b.constant(weights(12)))
    parts = b.apply("split", (y,), sizes=(4, 3, 5), axis=2)
    joined = b.add("concat", parts[2], parts[0], parts[1], axis=2)
    scaled = b.add("mul", joined, b.constant(np.float32([0.5])))
    turned = b.add("transpose", scaled, perm=(0, 2, 1))
    scores = b.add("softmax", b.add("matmul", scaled, turned))
    rows = b.add("reshape", scores, shape=(10, 5))
    last = b.add("gemm", rows, b.constant(weights(7, 5)), b.constant(weights(7)), trans_b=True)
    top, places = b.apply("topk", (last,), k=2)
    same = b.add("identity", top)
    return b.finish((same, places, "ids", b.add("relu", last)))


@pytest.mark.parametrize("name", ["squeezenet", "nasrnn", "taso_bert", "mobilenet_v2"])
def test_what_is_not_rewritten_is_written_with_the_same_operators(name: str) -> None:
    graph = simplify(build(name))
    network = networks.read_network(graph)
    extraction = networks.NetworkExtraction(network, networks.Roofline())
    selection = cheap_selections(extraction.problem, 1)[0]
    back = simplify(networks.write_outline(network, extraction.choice(selection)).graph)
    own, its = (Counter(node.operator for node in each.nodes) for each in (graph, back))
    assert own == its
    assert (graph.inputs, graph.outputs) == (back.inputs, back.outputs)
    assert graph.output_types == back.output_types


def test_every_operator_can_be_read() -> None:
    graph = simplify(mixed())
    back = chosen(networks.read_network(graph))
    assert (graph.inputs, graph.outputs) == (back.inputs, back.outputs)
    inputs = random_inputs(graph)
    for want, found in zip(
        interpret(graph, inputs).values(), interpret(back, inputs).values(), strict=True
    ):
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)


def volumes() -> Graph:
    """Convolutions of one volume, with bias, groups, strides and paddings, and a pool."""
    b = GraphBuilder("volumes")
    x = b.input("x", (1, 4, 3, 6, 5))
    point, other = (
        b.add("conv", x, b.constant(weights(n, 4, 1, 1, 1)), b.constant(weights(n))) for n in (3, 5)
    )
    wide = b.constant(weights(4, 2, 1, 3, 2))
    window = {"strides": (1, 2, 1), "pads": (0, 1, 0, 0, 0, 1), "dilations": (1, 2, 1)}
    grouped = b.add("conv", x, wide, groups=2, **window)
    pooled = b.add("max_pool", grouped, kernel=(3, 1, 2), pads=(1, 0, 0, 1, 0, 0))
    return b.finish((b.add("relu", point), b.add("relu", other), pooled))


def test_convolutions_of_volumes_are_read_merged_and_written() -> None:
    graph = simplify(volumes())
    network = networks.read_network(graph)
    read = {name: len(network.terms.with_operator(name)) for name in ("conv3d", "max_pool3d", CALL)}
    assert read == {"conv3d": 3, "max_pool3d": 1, CALL: 0}
    networks.saturate_network(network, RULES)
    extraction = networks.NetworkExtraction(network, networks.Roofline(start_s=1.0))
    choice = extraction.choice(cheap_selections(extraction.problem, 1)[0])
    back = simplify(networks.write_network(network, choice))
    assert [node.operator for node in back.nodes].count("conv") == 2
    for want, found in zip(in_double(graph), in_double(back), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-12, atol=1e-12)


def test_constants_of_an_outline_are_told_apart() -> None:
    """Convolutions with equal weights would be one, and cost half."""
    b = GraphBuilder("alike")
    x = b.input("x", (8, 300))
    products = [b.add("matmul", x, b.constant(weights(300, 300) + n)) for n in range(2)]
    small = [b.add("mul", y, b.constant(weights(300) + n)) for n, y in enumerate(products)]
    network = networks.read_network(b.finish((b.add("add", *small),)))
    extraction = networks.NetworkExtraction(network, networks.Roofline())
    choice = extraction.choice(cheap_selections(extraction.problem, 1)[0])
    outline = simplify(networks.write_outline(network, choice).graph)
    assert [node.operator for node in outline.nodes].count("matmul") == 2


def shared_products(count: int) -> Graph:
    """Products of one matrix with several, each an output."""
    b = GraphBuilder("shared")
    x = b.input("x", (8, 16))
    return b.finish(tuple(b.add("matmul", x, b.constant(weights(16, 4 + n))) for n in range(count)))


@pytest.mark.parametrize("count", [2, 3, 5, 8])
def test_groups_are_merged_by_neighbours_and_by_chain(count: int) -> None:
    network = networks.read_network(shared_products(count), with_proofs=True)
    only = networks.NetworkRules((), networks.network_rules([MERGE]).merges)
    found = networks.saturate_network(network, only, networks.SaturationLimits(merges=1, rounds=0))
    products = network.terms.with_operator("matmul")
    widths = sorted(network.terms.data(name).shape[1] for name in products)
    own = [4 + n for n in range(count)]
    pairs = [one + other for one, other in pairwise(own)]
    chain = [sum(own[:n]) for n in range(3, count + 1)]
    assert widths == sorted([*own, *pairs, *chain])
    extraction = networks.NetworkExtraction(network, networks.Roofline(start_s=1.0))
    choice = extraction.choice(cheap_selections(extraction.problem, 1)[0])
    graph = simplify(networks.write_network(network, choice))
    assert [node.operator for node in graph.nodes].count("matmul") == 1
    steps = networks.steps_between(found, networks.chosen_outputs(network, choice))
    assert {step.rewrite.name for step in steps} == {"merge-matmuls"}


def test_the_steps_are_those_that_the_outputs_need() -> None:
    b = GraphBuilder("chain")
    x = b.input("x", (8, 16))
    y = b.add("matmul", b.add("matmul", x, b.constant(weights(16, 64))), b.constant(weights(64, 4)))
    graph = b.finish((y, b.add("relu", b.add("relu", x))))
    network = networks.read_network(graph, with_proofs=True)
    found = networks.saturate_network(network, RULES)
    extraction = networks.NetworkExtraction(network, networks.Roofline(1e6, 1e6))
    choice = extraction.choice(cheap_selections(extraction.problem, 1)[0])
    back = simplify(networks.write_network(network, choice))
    assert sorted(node.operator for node in back.nodes) == ["matmul", "relu"]
    steps = networks.steps_between(found, networks.chosen_outputs(network, choice))
    assert {step.rewrite.name for step in steps} == {"associativity", "relu-relu-to-relu"}


def test_rules_speak_of_many_dimensions_where_these_merge() -> None:
    b = GraphBuilder("deep")
    x = b.input("x", (2, 1, 3, 2, 2))
    y = b.add("relu", b.add("relu", x))
    flat = b.add("relu", b.add("relu", b.add("reshape", y, shape=(2, 12))))
    graph = b.finish((b.add("concat", flat, flat, axis=1), y))
    network = networks.read_network(graph)
    networks.saturate_network(network, RULES)
    back = chosen(network)
    assert [node.operator for node in back.nodes].count("relu") == 2  # each pair became one
    merging, telling_apart = parse_rules(
        """
        relu(relu(?x)) == relu(?x)
        reshape[x.0*x.1, x.2, x.3, x.4](relu(?x)) == relu(reshape[x.0*x.1, x.2, x.3, x.4](?x))
        """.splitlines()
    )
    scope = Scope({}, {"x": networks.TensorData((2, 1, 3, 2, 2))})
    assert network.terms.analysis.admits(merging, scope) is Applies.YES
    assert network.terms.analysis.admits(telling_apart, scope) is Applies.UNKNOWN
    (sum_of_reshapes,) = parse_rules(
        ["ewadd(reshape[_s](?x), reshape[_s](?y)) == reshape[_s](ewadd(?x, ?y))"]
    )
    for shape, answer in (((4, 3, 2), Applies.NO), ((2, 1, 3, 2, 2), Applies.UNKNOWN)):
        both = {"x": networks.TensorData((2, 1, 3, 2, 2)), "y": networks.TensorData(shape)}
        asked = Scope({"_s": (24,)}, both)
        assert network.terms.analysis.admits(sum_of_reshapes, asked) is answer
    inputs = random_inputs(graph)
    for want, found in zip(
        interpret(graph, inputs).values(), interpret(back, inputs).values(), strict=True
    ):
        np.testing.assert_array_equal(found, want)


def test_constants_are_not_rewritten() -> None:
    b = GraphBuilder("constants")
    x = b.input("x", (4, 4))
    w = b.add("relu", b.add("relu", b.constant(weights(4, 4))))
    network = networks.read_network(b.finish((b.add("matmul", x, w),)))
    before = len(network.terms)
    assert isinstance(networks.saturate_network(network, RULES).stop, Saturated)
    assert len(network.terms) == before


def test_exact_rules_keep_the_order_of_sums() -> None:
    exact = networks.network_rules((each.rule for each in load_library()), is_exact=True)
    names = {each.name for each in exact.plain}
    assert "associativity" not in names
    assert "relu-relu-to-relu" in names
    assert len(exact.plain) < len(RULES.plain)


def test_terms_are_not_moved_there_and_back() -> None:
    (rule,) = parse_rules(
        ["twice: reshape[x.0*x.1](reshape[x.1, x.0](?x)) == reshape[x.0*x.1](?x)"]
    )
    (rewrite,) = networks.network_rules([rule]).plain
    assert [len(trigger.patterns) for trigger in rewrite.triggers] == [1]
    assert rewrite.triggers[0].patterns[0].term == rule.left[0]


def test_limits_are_named() -> None:
    network = networks.read_network(simplify(build("taso_bert")))
    stop = networks.saturate_network(network, RULES, networks.SaturationLimits(nodes=300)).stop
    assert isinstance(stop, BudgetSpent)
    assert stop.limit == "nodes"
    network = networks.read_network(simplify(build("taso_bert")))
    stop = networks.saturate_network(network, RULES, networks.SaturationLimits(seconds=0)).stop
    assert isinstance(stop, BudgetSpent)
    assert stop.limit == "seconds"


def test_merges_share_a_tensor() -> None:
    for one, other in combinations(RULES.merges, 2):
        assert one.rewrite.name != other.rewrite.name
    for merge in RULES.merges:
        assert set(merge.shared) & set(merge.root.variables.tensors)


def functions_and_folds() -> Graph:
    """Functions of elements with numbers, extremes, folds, softmax, reversal: all have terms."""
    b = GraphBuilder("functions")
    x, y = b.input("x", (2, 6, 5)), b.input("y", (2, 6, 5))
    for name, numbers in (
        ("leaky_relu", {"alpha": 0.01}),
        ("clip", {"min": -0.75, "max": 6.0}),
        ("hard_sigmoid", {"alpha": 1 / 6, "beta": 0.5}),
        ("gelu", {"approximate": "tanh"}),
        ("swish", {}),
    ):
        x = b.add(name, x, **numbers)
    x = b.add("max", x, b.add("min", y, b.constant(weights(5))))
    x = b.add("pow", b.add("abs", x), b.constant(np.full((2, 6, 5), 1.5, np.float32)))
    x = b.add("layer_norm", x, b.constant(weights(5)), b.constant(weights(5)), epsilon=1e-12)
    x = b.add("softmax", x, axis=1)
    turned = b.add("slice", x, axes=(-1,), starts=(-1,), ends=(-100,), steps=(-1,))
    second = b.add("slice", turned, axes=(1,), starts=(0,), ends=(6,), steps=(2,))
    folds = [
        b.add(name, second, axes=axes, keepdims=keepdims)
        for name, axes, keepdims in (
            ("reduce_max", (1, 2), False),
            ("reduce_mean", (0, 2), True),
            ("reduce_min", (), False),
        )
    ]
    return b.finish((turned, *folds))


def test_functions_and_folds_are_read_and_written_as_they_were() -> None:
    graph = simplify(functions_and_folds())
    network = networks.read_network(graph)
    heads = {network.terms.parts(network.terms.head_of(n)) for n in network.terms.nodes()}
    assert not any(operator == "call" for operator, _ in heads)
    wanted = {
        ("clip", ("fm0p75", "f6p0")),
        ("leaky_relu", ("f0p01",)),
        ("layer_norm", (2, "f1em12")),
        ("reverse", (2,)),
        ("strided", (1, 2)),
        ("reduce_max", (2,)),
    }
    assert wanted <= heads
    back = simplify(chosen(network))
    own, its = (Counter(node.operator for node in each.nodes) for each in (graph, back))
    assert own == its
    for one, other in zip(in_double(back), in_double(graph), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def choices() -> Graph:
    """What is larger, by comparison; scores where a mask says so."""
    b = GraphBuilder("choices")
    x, y = b.input("x", (4, 6)), b.input("y", (6,))
    mask = b.input("mask", (4, 1), DType.BOOL)
    larger = b.add("where", b.add("greater", x, y), x, y)
    scores = b.add("where", mask, larger, b.constant(np.float32(-1e9)))
    both = b.add("and", b.add("less", x, y), mask)
    return simplify(b.finish((scores, b.add("where", both, x, larger))))


def test_choices_are_read_and_written_as_they_were() -> None:
    graph = choices()
    network = networks.read_network(graph)
    assert len(network.terms.with_operator("select")) == 3
    assert len(network.terms.with_operator("less")) == 1
    back = simplify(chosen(network))
    own, its = (Counter(node.operator for node in each.nodes) for each in (graph, back))
    own["less"] += own.pop("greater")
    assert own == its
    inputs = random_inputs(graph)
    for want, found in zip(
        interpret(graph, inputs).values(), interpret(back, inputs).values(), strict=True
    ):
        np.testing.assert_array_equal(found, want)


def test_a_choice_by_comparison_is_an_extreme() -> None:
    b = GraphBuilder("larger")
    x, y = b.input("x", (4, 6)), b.input("y", (4, 6))
    graph = simplify(b.finish((b.add("where", b.add("less", x, y), y, x),)))
    network = networks.read_network(graph)
    rule = parse_rule("larger: select(less(?x, ?y), ?y, ?x) == ewmax(?x, ?y)")
    networks.saturate_network(network, networks.network_rules([rule]))
    assert [node.operator for node in chosen(network).nodes] == ["max"]


def signals() -> Graph:
    """Dilated causal convolutions with gates, pools, strides: all over one dimension."""
    b = GraphBuilder("signals")
    x = b.input("x", (2, 4, 33))
    for steps in (1, 2):
        window = {"dilations": (steps,), "pads": (2 * steps, 0)}
        gate, value = (b.add("conv", x, b.constant(weights(4, 4, 3) * n), **window) for n in (1, 2))
        x = b.add("add", x, b.add("mul", b.add("sigmoid", gate), b.add("tanh", value)))
    x = b.add(
        "conv", x, b.constant(weights(6, 2, 5)), b.constant(weights(6)), groups=2, strides=(2,)
    )
    x = b.add("max_pool", x, kernel=(3,), strides=(2,), pads=(1, 1))
    return simplify(b.finish((b.add("average_pool", b.add("relu", x), kernel=(2,)),)))


def test_what_slides_over_one_dimension_is_written_as_it_was() -> None:
    graph = signals()
    network = networks.read_network(graph)
    assert not network.terms.with_operator("call")
    back = simplify(chosen(network))
    own, its = (Counter(node.operator for node in each.nodes) for each in (graph, back))
    assert own == its
    for one, other in zip(in_double(back), in_double(graph), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_convolutions_over_one_dimension_of_one_tensor_are_merged() -> None:
    graph = signals()
    network = networks.read_network(graph, with_proofs=True)
    networks.saturate_network(network, RULES)
    extraction = networks.NetworkExtraction(network, networks.Roofline(start_s=1e-3))
    back = simplify(
        networks.write_network(
            network, extraction.choice(cheap_selections(extraction.problem, 1)[0])
        )
    )
    count = [[node.operator for node in each.nodes].count("conv") for each in (graph, back)]
    assert count == [5, 3]
    for one, other in zip(in_double(back), in_double(graph), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def look_up(ids: tuple[int, ...], count: int = 1) -> Graph:
    """Rows of matrices at positions, projected by others."""
    b = GraphBuilder("look-up")
    places = b.input("ids", ids, DType.I64)
    rows = [b.add("gather", b.constant(weights(11, 8) + n), places) for n in range(count)]
    wide = [b.add("matmul", each, b.constant(weights(8, 12) - n)) for n, each in enumerate(rows)]
    return simplify(b.finish((*wide, b.add("max", *rows) if count > 1 else rows[0])))


@pytest.mark.parametrize("ids", [(6,), (2, 5)])
def test_rows_at_positions_are_those_of_a_product_with_constants(ids: tuple[int, ...]) -> None:
    b = GraphBuilder("factors")
    places = b.input("ids", ids, DType.I64)
    rows = b.add("gather", b.constant(weights(11, 8)), places)
    graph = simplify(b.finish((b.add("matmul", rows, b.constant(weights(8, 12))),)))
    network = networks.read_network(graph, with_proofs=True)
    found = networks.saturate_network(network, RULES)
    extraction = networks.NetworkExtraction(network, networks.Roofline())
    choice = extraction.choice(cheap_selections(extraction.problem, 1)[0])
    back = simplify(networks.write_network(network, choice))
    assert [node.operator for node in back.nodes] == ["gather"]
    steps = networks.steps_between(found, networks.chosen_outputs(network, choice))
    assert "associativity" in {step.rewrite.name for step in steps}
    inputs = {"ids": np.random.default_rng(0).integers(-11, 11, ids)}
    for one, other in zip(
        interpret(back, inputs).values(), interpret(graph, inputs).values(), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("count", [1, 3])
def test_rows_at_positions_are_written_as_they_were(count: int) -> None:
    graph = look_up((2, 5), count)
    network = networks.read_network(graph)
    back = simplify(chosen(network))
    own, its = (Counter(node.operator for node in each.nodes) for each in (graph, back))
    own["max"], its["max"] = min(own["max"], 1), min(its["max"], 1)
    assert own == its
    inputs = {"ids": np.random.default_rng(0).integers(0, 11, (2, 5))}
    for one, other in zip(
        interpret(back, inputs).values(), interpret(graph, inputs).values(), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_what_selects_rows_is_computed_where_no_product_reads_them() -> None:
    """The sum of two row selectors is none: their product with a matrix is one of numbers."""
    b = GraphBuilder("sum")
    table = b.constant(weights(11, 8))
    rows = [b.add("gather", table, b.input(name, (6,), DType.I32)) for name in ("i", "j")]
    graph = simplify(b.finish((b.add("add", *rows),)))
    network = networks.read_network(graph)
    products = network.terms.with_operator("matmul")
    left = [network.terms.children(each)[0] for each in products]
    assert all(network.terms.data(each).selects_rows for each in left)
    total = network.terms.put(network.terms.head("ewadd", ()), tuple(left))
    assert total is not None
    assert not network.terms.data(total).selects_rows
    wide = network.terms.children(products[0])[1]
    joined = network.terms.put(network.terms.head("matmul", ()), (total, wide))
    assert joined is not None
    (output,) = network.outputs
    network.terms.union(output, joined, reason=0)
    every = {network.terms.find(each): each for each in network.terms.nodes()}
    every[network.terms.find(output)] = joined
    back = simplify(networks.write_network(network, every))
    assert [node.operator for node in back.nodes].count("one_hot") == 2
    inputs = {name: np.arange(n, n + 6, dtype=np.int32) for n, name in enumerate(("i", "j"))}
    for one, other in zip(
        interpret(back, inputs).values(), interpret(graph, inputs).values(), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
