"""A workload has sizes of its own where formulas of the network's sizes say its extents."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from tensorwright import compile, expr
from tensorwright.graph import bind_workload, program, reference, with_own_sizes
from tensorwright.graph.workload import Workload

pytestmark = pytest.mark.usefixtures("by_rule")

SAMPLES = expr.named_size("samples", least=400)
BATCH = expr.named_size("batch")


def windows(length: expr.Index, rows: expr.Index = BATCH) -> Workload:
    """The sum of three neighbours, for each of `length` of them."""
    x = expr.placeholder("x", (rows, length + 2))
    k = expr.reduce_axis("k", 3)
    y = expr.compute("y", (rows, length), lambda b, i: expr.sum_over(x[b, i + k], k))
    return program((y,))


@pytest.mark.parametrize("length", [SAMPLES // 4 - 7, SAMPLES // 4 - 19, SAMPLES - 300, SAMPLES])
def test_the_program_is_the_same_for_its_numbers(length: expr.Index) -> None:
    """With the numbers that the formulas give, it is the workload of the network."""
    workload = windows(length)
    own = with_own_sizes(workload)
    for number in (400, 523):
        sizes = {"batch": 2, "samples": number}
        given = {size.name: expr.with_sizes(value, sizes) for size, value in own.values.items()}
        instances = bind_workload(workload, sizes), bind_workload(own.workload, sizes | given)
        assert instances[0].key == instances[1].key
        assert [each.shape for each in instances[0].inputs] == [
            each.shape for each in instances[1].inputs
        ]
        x = np.arange(2 * (expr.with_sizes(length, sizes) + 2), dtype=np.float32).reshape(2, -1)
        one, other = (reference(each, (x,))[0] for each in instances)
        assert np.array_equal(one, other)


def test_similar_layers_are_equal() -> None:
    """Layers whose extents differ by a number are one workload; its sizes have rounded bounds."""
    forms = [with_own_sizes(windows(SAMPLES // 4 - k)) for k in (7, 9, 19)]
    assert len({each.workload.key for each in forms}) == 1
    (size,) = forms[0].values
    assert size.constraints == "64 <= samples"
    assert str(forms[0].workload.outputs[0].shape[1]) == "samples"
    assert [str(value) for each in forms for value in each.values.values()] == [
        "samples // 4 - 7",
        "samples // 4 - 9",
        "samples // 4 - 19",
    ]


def test_other_bounds_and_other_numbers_are_other_workloads() -> None:
    """A least number of 1 is not one of 64, and a schedule for 3,000 windows not one for 100."""
    keys = {with_own_sizes(windows(SAMPLES // each)).workload.key for each in (1, 4, 128)}
    assert len(keys) == 3


def test_an_extent_that_shrinks_with_its_size_is_no_sum_of_it() -> None:
    """9 - k is a number of rows, and k - 9 is not: the size of its own is never below 0."""
    size = expr.named_size("k", least=0, greatest=9)
    x = expr.placeholder("x", (9,))
    rest = expr.compute("rest", (9 - size,), lambda i: x[i + size] * 2.0)
    workload = program((rest,))
    assert with_own_sizes(workload).workload is workload


def test_a_number_of_an_extent_that_other_sizes_empty_says_nothing_of_a_size() -> None:
    """batch * (k - 9) rows are 0 for a batch of 0, whatever k is."""
    size = expr.named_size("k", least=0)
    batch = expr.named_size("batch", least=0)
    x = expr.placeholder("x", (batch * (size - 9),))
    twice = expr.compute("twice", (batch * (size - 9),), lambda i: x[i] * 2.0)
    own = with_own_sizes(program((twice,)))
    assert all(isinstance(value, expr.NamedSize) for value in own.values.values())


def test_sizes_that_are_used_in_two_ways_stay() -> None:
    """Of two formulas of one size only a part that both have is a size; here it is the size."""
    x = expr.placeholder("x", (SAMPLES,))
    pooled = expr.compute("y", (SAMPLES // 2,), lambda i: x[2 * i] + x[2 * i + 1])
    workload = program((pooled,))
    assert with_own_sizes(workload).workload is workload


def test_bounded_sizes_keep_a_greatest_number() -> None:
    """It is rounded up, so that memory for it is enough."""
    n = expr.named_size("n", least=64, greatest=500)
    (size,) = with_own_sizes(windows(n // 2 - 3)).values
    assert size.constraints == "8 <= n <= 512"


def test_layers_share_code() -> None:
    """Four convolutions that shorten a signal are built once or twice, and their results right."""
    chance = np.random.default_rng(0)
    weights = [0.2 * chance.standard_normal((8, 8, 3)).astype(np.float32) for _ in range(4)]
    nodes = [helper.make_node("Conv", [f"x{k}", f"w{k}"], [f"x{k + 1}"]) for k in range(4)]
    graph = helper.make_graph(
        nodes,
        "shortening",
        [helper.make_tensor_value_info("x0", onnx.TensorProto.FLOAT, ("batch", 8, "time"))],
        [helper.make_tensor_value_info("x4", onnx.TensorProto.FLOAT, None)],
        [numpy_helper.from_array(each, f"w{k}") for k, each in enumerate(weights)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    executable = compile(model)
    for sizes in ((1, 9), (2, 60), (3, 1000)):
        x = chance.standard_normal((sizes[0], 8, sizes[1])).astype(np.float32)
        (wanted,) = ReferenceEvaluator(model).run(None, {"x0": x})
        (result,) = executable.run({"x0": x}).values()
        assert np.allclose(result, wanted, rtol=1e-4, atol=1e-4)
    codes = executable.contents.objects
    assert len(set(codes)) < len(codes)
