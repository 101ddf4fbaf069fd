"""Plans of a device with a memory of its own: copies bring each step the bytes that it reads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.unit.runtime.networks import CHAIN, KERNELS, SIZE, TENSOR, tensor

from tensorwright import runtime
from tensorwright.base import InternalError, parse_target
from tensorwright.ops import TensorType

Array = NDArray[np.float32]
CARD = parse_target("cuda:sm_90")
WIDE = TensorType(TENSOR.dtype, (2, *TENSOR.shape))


def network(*calls: Any, **changes: Any) -> runtime.Network:
    """Inputs x and y, constant w, output z, intermediates t0..t3."""
    fields: dict[str, Any] = {
        "outputs": (tensor("z"),),
        "kernels": KERNELS,
        "types": tuple((f"t{i}", TENSOR) for i in range(4)),
        **changes,
    }
    return runtime.Network(
        "net", CARD, 1, CHAIN.inputs, constants=CHAIN.constants, calls=calls, **fields
    )


def double(source: str, destination: str) -> runtime.KernelStep[str]:
    return runtime.KernelStep(0, (source, destination), "double")


def add(a: str, b: str, destination: str) -> runtime.KernelStep[str]:
    return runtime.KernelStep(1, (a, b, destination), "add")


def halve(source: str, destination: str) -> runtime.HostStep[str]:
    return runtime.HostStep("halve", (), (source,), (destination,), "halve")


class Machine:
    """Two memories; what no step wrote is NaN."""

    def __init__(
        self, plan: runtime.Plan, inputs: tuple[Array, ...], constants: tuple[Array, ...]
    ) -> None:
        sizes = [f"out{i}" for i in range(len(plan.outputs))]
        self._buffers: dict[tuple[str, bool], Array] = {}
        for is_device in (False, True):
            for n, array in enumerate(constants):
                self._buffers[f"const{n}", is_device] = array.copy().reshape(-1)
            for n, array in enumerate(inputs):
                empty = np.full(array.size, np.nan, np.float32)
                self._buffers[f"in{n}", is_device] = empty if is_device else array.reshape(-1)
            for n, name in enumerate(sizes):
                count = plan.outputs[n].size_bytes // 4
                self._buffers[name, is_device] = np.full(count, np.nan, np.float32)
            self._buffers["arena", is_device] = np.full(plan.arena_bytes // 4, np.nan, np.float32)

    def at(self, ref: runtime.BufferRef, size_bytes: int) -> Array:
        host = ref.copy_of if isinstance(ref, runtime.DeviceRef) else ref
        match host:
            case runtime.InputRef(index):
                name = f"in{index}"
            case runtime.OutputRef(index):
                name = f"out{index}"
            case runtime.ConstantRef(index):
                name = f"const{index}"
            case _:
                name = "arena"
        whole = self._buffers[name, isinstance(ref, runtime.DeviceRef)]
        return whole[host.offset_bytes // 4 :][: size_bytes // 4]


def run(plan: runtime.Plan, inputs: tuple[Array, ...], constants: tuple[Array, ...]) -> Array:
    """What the first output holds in the host's memory after all steps."""
    machine = Machine(plan, inputs, constants)
    for step in plan.steps:
        match step:
            case runtime.CopyStep(source, destination, size_bytes):
                machine.at(destination, size_bytes)[:] = machine.at(source, size_bytes)
            case runtime.KernelStep(kernel, arguments):
                assert all(isinstance(ref, runtime.DeviceRef) for ref in arguments)
                sizes = [spec.size_bytes for spec in plan.kernels[kernel].arguments]
                *read, written = (machine.at(r, s) for r, s in zip(arguments, sizes, strict=True))
                written[:] = read[0] * 2 if kernel == 0 else read[0] + read[1]
            case runtime.HostStep(_, _, (operand,), (made,)):
                halves = machine.at(operand.ref, operand.type.size_bytes) * np.float32(0.5)
                machine.at(made.ref, made.type.size_bytes)[:] = halves
    return machine.at(runtime.OutputRef(0), plan.outputs[0].size_bytes)


RANDOM = np.random.default_rng(5)
ARRAYS = tuple(RANDOM.standard_normal(TENSOR.shape).astype(np.float32) for _ in range(3))


def copies(plan: runtime.Plan) -> list[str]:
    return [f"{s.source} -> {s.destination}" for s in plan.steps if isinstance(s, runtime.CopyStep)]


def test_inputs_go_to_the_device_once_and_outputs_come_back() -> None:
    plan = runtime.make_plan(network(double("x", "t0"), add("t0", "x", "t1"), add("t1", "w", "z")))
    assert copies(plan) == ["in0 -> device in0", "device out0 -> out0"]
    x, y, w = ARRAYS
    expected = (x * 2 + x + w).reshape(-1)
    np.testing.assert_allclose(run(plan, (x, y), (w,)), expected, rtol=1e-6)
    assert runtime.plan_from_data(runtime.plan_to_data(plan)) == plan


def test_a_host_step_between_kernels_gets_its_bytes_and_gives_them_back() -> None:
    plan = runtime.make_plan(network(double("x", "t0"), halve("t0", "t1"), add("t1", "t0", "z")))
    x, y, w = ARRAYS
    assert len(copies(plan)) == 4  # x to the device, t0 from it, t1 to it, z from it
    np.testing.assert_allclose(run(plan, (x, y), (w,)), (x * 3).reshape(-1), rtol=1e-6)


def test_a_tensor_of_parts_is_copied_where_the_host_wrote_it() -> None:
    arguments = tuple(replace(each, size_bytes=2 * SIZE) for each in KERNELS[0].arguments)
    plan = runtime.make_plan(
        network(
            double("x", "t0"),
            halve("y", "t1"),
            runtime.KernelStep(len(KERNELS), ("pair", "z"), "double both"),
            outputs=(tensor("z", WIDE.shape),),
            kernels=(*KERNELS, replace(KERNELS[0], arguments=arguments)),
            types=(("t0", TENSOR), ("t1", TENSOR), ("pair", WIDE)),
            parts=(("t0", runtime.Inside("pair", 0)), ("t1", runtime.Inside("pair", SIZE))),
        )
    )
    moved = [step.size_bytes for step in plan.steps if isinstance(step, runtime.CopyStep)]
    assert moved == [SIZE, SIZE, 2 * SIZE]


MOVES = st.tuples(st.sampled_from("dah"), st.integers(0, 9), st.integers(0, 9))


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.sampled_from("dah"), st.integers(0, 9), st.integers(0, 9)), max_size=9)
)
def test_any_network_computes_what_one_memory_would(moves: list[tuple[str, int, int]]) -> None:
    x, y, w = ARRAYS
    values: dict[str, Array] = {"x": x, "y": y, "w": w}
    calls: list[Any] = []
    for number, (kind, a, b) in enumerate([*moves, ("a", 0, 1)]):
        names = list(values)
        one, two = names[-1 - a % len(names)], names[-1 - b % len(names)]
        result = "z" if number == len(moves) else f"t{number}"
        if kind == "d":
            calls.append(double(one, result))
            values[result] = values[one] * 2
        elif kind == "h":
            calls.append(halve(one, result))
            values[result] = values[one] * np.float32(0.5)
        else:
            calls.append(add(one, two, result))
            values[result] = values[one] + values[two]
    types = tuple((f"t{n}", TENSOR) for n in range(len(moves)))
    plan = runtime.make_plan(network(*calls, types=types))
    np.testing.assert_allclose(run(plan, (x, y), (w,)), values["z"].reshape(-1), rtol=1e-5)


def test_steps_in_the_wrong_memory_are_refused() -> None:
    plan = runtime.make_plan(network(double("x", "z")))
    step = next(s for s in plan.steps if isinstance(s, runtime.KernelStep))
    on_host = replace(step, arguments=(runtime.InputRef(0), runtime.OutputRef(0)))
    with pytest.raises(InternalError, match="in0 is in the host's memory"):
        runtime.verify_plan(replace(plan, steps=(on_host,)))
    with pytest.raises(InternalError, match="which no earlier step wrote"):
        runtime.verify_plan(replace(plan, steps=(step,)))
    with pytest.raises(InternalError, match="uses the host's memory alone"):
        runtime.host_ref(runtime.DeviceRef(runtime.InputRef(0)))
