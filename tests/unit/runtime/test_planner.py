from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.runtime.networks import (
    CHAIN,
    KERNELS,
    NATIVE,
    SIZE,
    TENSOR,
    chain_inputs,
    executable,
    tensor,
    weights,
)

from tensorwright.base import DType, InternalError
from tensorwright.codegen import Signature
from tensorwright.codegen.llvm import emit
from tensorwright.expr import Load, Var
from tensorwright.loop import Buffer, For, LoopProgram, Parameter, Role, Store
from tensorwright.machine_code.compilation import compile_module
from tensorwright.ops import TensorType
from tensorwright.runtime import (
    ArenaRef,
    CollectStep,
    ConstantRef,
    CopyStep,
    CopyTensor,
    Executable,
    HostStep,
    InputRef,
    Inside,
    KernelStep,
    LoopStep,
    Network,
    OutputRef,
    TensorSpec,
    kernel_spec,
    make_plan,
)
from tensorwright.schedule import ForKind

WIDE = TensorType(DType.F32, (2, 96))


def network(*calls: Any, outputs: tuple[str, ...] = ("z",), **changes: Any) -> Network:
    """Inputs x and y, constant w, intermediates t0..t3 and a pair of them."""
    fields: dict[str, Any] = {
        "inputs": CHAIN.inputs,
        "outputs": tuple(tensor(name) for name in outputs),
        "types": (*((f"t{i}", TENSOR) for i in range(4)), ("pair", WIDE)),
        **changes,
    }
    return Network(
        "net", NATIVE, 1, constants=CHAIN.constants, kernels=KERNELS, calls=calls, **fields
    )


def double(source: str, destination: str) -> KernelStep[str]:
    return KernelStep(0, (source, destination), f"{destination}=2{source}")


def add(a: str, b: str, destination: str) -> KernelStep[str]:
    return KernelStep(1, (a, b, destination), f"{destination}={a}+{b}", 96, 1152)


def test_a_chain_takes_turns_in_the_arena() -> None:
    plan = make_plan(
        network(double("x", "t0"), double("t0", "t1"), add("t1", "y", "t2"), add("t2", "w", "z"))
    )
    assert plan.arena_bytes == 2 * SIZE
    assert plan.steps[3] == KernelStep(
        1, (ArenaRef(0, SIZE), ConstantRef(0), OutputRef(0)), "z=t2+w", 96, 1152
    )
    inputs = chain_inputs()
    expected = inputs["x"] * 4 + inputs["y"] + weights()
    np.testing.assert_allclose(executable(plan).run(inputs)["z"], expected, rtol=1e-6)


def test_producers_write_straight_into_a_concatenation() -> None:
    plan = make_plan(
        network(
            double("x", "t0"),
            double("y", "t1"),
            HostStep("total", (), ("pair",), ("z",), "total"),
            parts=(("t0", Inside("pair", 0)), ("t1", Inside("pair", SIZE))),
        )
    )
    assert plan.arena_bytes == 2 * SIZE
    inputs = chain_inputs()
    total = {"total": lambda arrays, _: (arrays[0].sum(axis=0),)}
    np.testing.assert_allclose(
        executable(plan, hosts=total).run(inputs)["z"], 2 * (inputs["x"] + inputs["y"]), rtol=1e-6
    )


def test_a_concatenation_that_is_an_output_needs_no_arena() -> None:
    plan = make_plan(
        replace(
            network(
                double("x", "t0"),
                double("y", "t1"),
                parts=(("t0", Inside("z", 0)), ("t1", Inside("z", SIZE))),
            ),
            outputs=(tensor("z", (2, 96)),),
        )
    )
    assert plan.arena_bytes == 0
    assert len(plan.steps) == 2
    inputs = chain_inputs()
    expected = 2 * np.stack([inputs["x"], inputs["y"]])
    np.testing.assert_array_equal(executable(plan).run(inputs)["z"], expected)


SCALARS = (TensorSpec("n", DType.I64, ()), TensorSpec("go", DType.BOOL, ()))


def looped(*calls: Any, **changes: Any) -> Network:
    """A network with a loop of `n` iterations."""
    types = (*((f"t{i}", TENSOR) for i in range(4)), ("turn", TensorType(DType.I64, ())))
    fields: dict[str, Any] = {"inputs": (*CHAIN.inputs, *SCALARS), "types": types, **changes}
    return network(*calls, **fields)


def run_loop(drawn: Network, count: int) -> dict[str, Any]:
    scalars = {"n": np.array(count), "go": np.array(True)}
    return executable(make_plan(drawn)).run({**chain_inputs(), **scalars})


def test_each_iteration_reads_what_was_made_before_the_loop() -> None:
    """The body's last tensor must not take the memory of what its first step reads again."""
    drawn = looped(
        double("x", "t0"),
        CopyTensor("x", "z"),
        LoopStep("n", "go", "turn", 3),
        double("t0", "t1"),
        double("t1", "t2"),
        add("t2", "y", "z"),
    )
    inputs = chain_inputs()
    for count in (1, 3):
        result = run_loop(drawn, count)["z"]
        np.testing.assert_allclose(result, 8 * inputs["x"] + inputs["y"], rtol=1e-6)


def test_rows_that_a_loop_collects_are_kept_until_they_are_read() -> None:
    """The next iteration must not write over the rows of earlier ones."""
    rows = TensorType(DType.F32, (4, 96))
    drawn = looped(
        CopyTensor("x", "t3"),
        LoopStep("n", "go", "turn", 4),
        double("t3", "t0"),
        double("t0", "t1"),
        CollectStep("t1", "turn", "rows"),
        CopyTensor("t1", "t3"),
        CopyTensor("rows", "z"),
        outputs=(),
        types=(*looped().types, ("rows", rows)),
    )
    result = run_loop(replace(drawn, outputs=(tensor("z", (4, 96)),)), 4)["z"]
    expected = [4.0**turn * chain_inputs()["x"] for turn in range(1, 5)]
    np.testing.assert_allclose(result, np.stack(expected), rtol=1e-6)


def test_a_reshape_costs_nothing() -> None:
    plan = make_plan(
        network(
            double("t0", "t1"),
            double("t2", "z"),
            parts=(("t0", Inside("x", 0)), ("t2", Inside("t1", 0))),
        )
    )
    assert plan.arena_bytes == SIZE
    assert plan.steps[0] == KernelStep(0, (InputRef(0), ArenaRef(0, SIZE)), "t1=2t0")
    inputs = chain_inputs()
    np.testing.assert_array_equal(executable(plan).run(inputs)["z"], 4 * inputs["x"])


def test_a_tensor_lies_in_an_output_that_shows_it_in_another_shape() -> None:
    plan = make_plan(
        network(double("x", "t0"), double("t0", "t1"), parts=(("z", Inside("t1", 0)),))
    )
    assert plan.steps[1] == KernelStep(0, (ArenaRef(0, SIZE), OutputRef(0)), "t1=2t0")
    assert len(plan.steps) == 2
    inputs = chain_inputs()
    np.testing.assert_array_equal(executable(plan).run(inputs)["z"], 4 * inputs["x"])


def test_the_condition_of_a_loop_is_kept_while_it_runs() -> None:
    """No tensor of the body takes the memory of a condition from before the loop."""
    drawn = looped(
        CopyTensor("go", "goes"),
        CopyTensor("x", "z"),
        LoopStep("n", "goes", "turn", 3),
        double("z", "t0"),
        double("t0", "t1"),
        CopyTensor("t1", "z"),
        types=(*looped().types, ("goes", TensorType(DType.BOOL, ()))),
    )
    result = run_loop(drawn, 3)["z"]
    np.testing.assert_allclose(result, 4.0**3 * chain_inputs()["x"], rtol=1e-6)


def test_outputs_that_nothing_writes_are_copied() -> None:
    plan = make_plan(
        network(
            double("x", "t0"),
            double("y", "t1"),
            HostStep("total", (), ("pair",), ("z",), "total"),
            outputs=("t0", "x", "w", "z", "again"),
            parts=(
                ("t0", Inside("pair", 0)),
                ("t1", Inside("pair", SIZE)),
                ("again", Inside("z", 0)),
            ),
        )
    )
    copies = [step for step in plan.steps if isinstance(step, CopyStep)]
    assert copies == [
        CopyStep(ArenaRef(0, SIZE), OutputRef(0), SIZE, "copy t0"),
        CopyStep(InputRef(0), OutputRef(1), SIZE, "copy x"),
        CopyStep(ConstantRef(0), OutputRef(2), SIZE, "copy w"),
        CopyStep(OutputRef(3), OutputRef(4), SIZE, "copy again"),
    ]
    inputs = chain_inputs()
    total = {"total": lambda arrays, _: (arrays[0].sum(axis=0),)}
    results = executable(plan, hosts=total).run(inputs)
    np.testing.assert_array_equal(results["t0"], 2 * inputs["x"])
    np.testing.assert_array_equal(results["w"], weights())
    np.testing.assert_array_equal(results["again"], results["z"])


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (network(double("x", "nothing"), double("nothing", "z")), "it has no type"),
        (network(double("t0", "z")), "reads arena[0:384], which no earlier step wrote"),
        (network(double("x", "t0")), "no step writes all of it"),
        (network(double("x", "w"), double("x", "z")), "const0 is written"),
        (
            network(double("x", "t0"), double("t0", "z"), parts=(("t0", Inside("t0", 0)),)),
            "it lies inside itself",
        ),
        (
            network(double("x", "t0"), double("pair", "z"), parts=(("t0", Inside("pair", 4)),)),
            "4 is not a multiple of 64 bytes",
        ),
        (
            network(double("x", "t0"), double("t1", "z"), parts=(("t0", Inside("t1", 64)),)),
            "it does not fit into t1",
        ),
        (
            network(double("x", "t0"), double("t0", "z"), parts=(("t0", Inside("gone", 0)),)),
            "it has no type",
        ),
    ],
    ids="type unwritten output constant itself aligned fits parent".split(),
)
def test_networks_that_cannot_be_planned(broken: Network, message: str) -> None:
    with pytest.raises(InternalError) as caught:
        make_plan(broken)
    assert caught.value.reason == message


def scaled(name: str, count: int) -> LoopProgram:
    x, y = (Buffer(each, (count,), DType.F32) for each in "xy")
    i = Var("i")
    body = For(i, count, ForKind.PARALLEL, Store(y, (i,), Load(x, (i,)) + Load(x, (i,))))
    return LoopProgram(name, (Parameter(x, Role.INPUT), Parameter(y, Role.OUTPUT)), body)


def test_emitted_kernels_run() -> None:
    sources = [emit(scaled(f"scale {i}", 96), NATIVE) for i in range(2)]
    plan = make_plan(
        Network(
            "emitted",
            NATIVE,
            2,
            (tensor("x"),),
            (tensor("y"),),
            (),
            tuple(kernel_spec(source.signature) for source in sources),
            (KernelStep(0, ("x", "t"), "first"), KernelStep(1, ("t", "y"), "second")),
            (("t", TENSOR),),
        )
    )
    objects = [compile_module(source.text, NATIVE) for source in sources]
    x = chain_inputs()["x"]
    np.testing.assert_array_equal(Executable(plan, objects, [], threads=2)(x), 4 * x)
    assert plan.kernels[0].arguments[0].size_bytes == SIZE


def test_an_unbound_kernel_has_no_size() -> None:
    free = Parameter(Buffer("x", (Var("n"),), DType.F32), Role.INPUT)
    with pytest.raises(InternalError, match="is not bound"):
        kernel_spec(Signature("s", (free,)))


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """Random sums: each call reads two earlier tensors; some results are outputs or parts."""
    names = ["x", "y", "w"]
    calls: list[KernelStep[str]] = []
    parts: list[tuple[str, Inside]] = []
    outputs = []
    types = []
    for number in range(draw(st.integers(1, 12))):
        a, b = draw(st.sampled_from(names)), draw(st.sampled_from(names))
        name = f"t{number}"
        calls.append(add(a, b, name))
        kind = draw(st.sampled_from(["plain", "plain", "pair", "output"]))
        if kind == "output":
            outputs.append(tensor(name))
        else:
            types.append((name, TENSOR))
        if kind == "pair":  # beside a tensor that nobody writes
            types.append((f"pair{number}", WIDE))
            parts.append((name, Inside(f"pair{number}", draw(st.sampled_from([0, SIZE])))))
        if draw(st.booleans()):
            alias = f"alias{number}"
            types.append((alias, TENSOR))
            parts.append((alias, Inside(name, 0)))
            name = alias
        names.append(name)
    for name in draw(st.lists(st.sampled_from(names), max_size=3, unique=True)):
        if all(spec.name != name for spec in outputs):
            outputs.append(tensor(name))
    return replace(
        network(*calls),
        outputs=tuple(outputs),
        types=tuple(types),
        parts=tuple(parts),
    )


@settings(max_examples=30)
@given(networks())
def test_random_networks_compute_what_they_say(drawn: Network) -> None:
    inputs = chain_inputs()
    values: dict[str, Any] = {**inputs, "w": weights()}
    for call in drawn.calls:
        assert isinstance(call, KernelStep)
        a, b, result = call.arguments
        values[result] = values[a] + values[b]
        values["alias" + result[1:]] = values[result]
    results = executable(make_plan(drawn)).run(inputs)
    assert list(results) == [spec.name for spec in drawn.outputs]
    for name, array in results.items():
        np.testing.assert_array_equal(array, values[name])
