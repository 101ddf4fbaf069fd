"""The verifier of partitions: each kind of fault is found and named."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import MappingProxyType

import pytest

from tensorwright import graph
from tensorwright.base import DType, InternalError, override


def network() -> graph.Graph:
    """Two kernels side by side in a concat, a view of it, a host call."""
    b = graph.GraphBuilder("net")
    x = b.input("x", (2, 16))
    b.input("y", (1,), DType.I64)
    whole = b.add("concat", b.add("relu", x), b.add("tanh", x), output="whole", axis=0)
    flat = b.add("reshape", whole, output="flat", shape=(64,))
    values, _ = b.apply("topk", (flat,), ("best", "where"), k=3)
    return b.finish([flat, values])


PARTS = graph.partition(network())
RELU, TANH, CONCAT, VIEW, HOST = PARTS.steps
assert isinstance(RELU, graph.KernelCall)
assert isinstance(CONCAT, graph.ConcatInPlace)
assert isinstance(VIEW, graph.AliasCall)
assert isinstance(HOST, graph.OpaqueCall)
BLOCKED = replace(PARTS.graph, layouts=MappingProxyType({"flat": graph.Layout(0, 8)}))


def steps(*changed: object) -> graph.Partition:
    return replace(PARTS, steps=changed)


@pytest.mark.parametrize(
    ("parts", "where", "reason"),
    [
        (steps(RELU, TANH, CONCAT, VIEW), "node best (topk)", "it is in 0 steps"),
        (steps(RELU, RELU, TANH, CONCAT, VIEW, HOST), "node relu_0 (relu)", "it is in 2 steps"),
        (
            steps(RELU, CONCAT, TANH, VIEW, HOST),
            "step of whole",
            "it reads tanh_0, which no step before it writes",
        ),
        (
            steps(RELU, replace(TANH, outputs=("relu_0",)), CONCAT, VIEW, HOST),
            "step of relu_0",
            "relu_0 is written a second time",
        ),
        (
            steps(replace(RELU, inputs=("y",)), TANH, CONCAT, VIEW, HOST),
            "step of relu_0",
            "workload relu has f32(2, 16), the step i64(1)",
        ),
        (
            steps(RELU, TANH, replace(CONCAT, parts=CONCAT.parts[:1]), VIEW, HOST),
            "step of whole",
            "its parts fill 128 of 256 bytes",
        ),
        (
            steps(RELU, TANH, replace(CONCAT, parts=CONCAT.parts[1:]), VIEW, HOST),
            "step of whole",
            "tanh_0 begins at byte 128, not at 0",
        ),
        (
            steps(RELU, TANH, CONCAT, replace(VIEW, offset_bytes=64), HOST),
            "step of flat",
            "flat takes bytes 64 to 320 of 256 in whole",
        ),
        (replace(PARTS, graph=BLOCKED), "step of best", "flat has layout"),
    ],
)
def test_a_fault_is_named(parts: graph.Partition, where: str, reason: str) -> None:
    with pytest.raises(InternalError) as caught:
        graph.verify_partition(parts)
    assert caught.value.where == where
    assert caught.value.reason.startswith(reason)


def test_the_verify_knob_checks_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[graph.Partition] = []
    module = sys.modules["tensorwright.graph.partition.partition"]
    monkeypatch.setattr(module, "verify_partition", lambda x: checked.append(x) or x)
    graph.partition(network())
    assert checked == []
    with override(verify=True):
        parts = graph.partition(network())
    assert checked == [parts]
    assert graph.verify_partition(parts) is parts
