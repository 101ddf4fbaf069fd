"""A call with arrays in the memory of a device: its inputs, outputs and copies.

Steps on the host use arrays of the host, so the caller's arrays that they use are copied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorwright.base import DType
from tensorwright.runtime.buffers import is_kernel_ready
from tensorwright.runtime.device import Device
from tensorwright.runtime.device_frame import AnyArray, LoadedOnDevice, used_on_host
from tensorwright.runtime.dlpack import DeviceArray, is_on
from tensorwright.runtime.inputs import check_in_place
from tensorwright.runtime.plan.call_sizes import CallSizes
from tensorwright.runtime.plan.plan import InputRef, OutputRef, Plan


def has_arrays_on_device(loaded: object, given: Mapping[str, Any] | tuple[Any, ...]) -> bool:
    """Whether one of a call's arrays is in the memory of the device that runs the code."""
    if not isinstance(loaded, LoadedOnDevice) or not isinstance(given, Mapping | tuple):
        return False
    named = loaded.device.dlpack()
    arrays = given.values() if isinstance(given, Mapping) else given
    return any(is_on(named, array) for array in arrays)


def new_outputs(device: Device, sizes: CallSizes) -> tuple[DeviceArray, ...]:
    """An array on the device for each output.  Raises: MemoryError if the device has no room."""
    return tuple(
        DeviceArray.empty(device, maker.shape, DType.from_numpy(maker.dtype))
        for maker in sizes.makers
    )


@dataclass(frozen=True, slots=True)
class DeviceCall:
    """The arrays of a call, each on the device or the host.

    inputs    the caller's
    outputs   the caller's, for the results
    """

    device: Device
    plan: Plan
    inputs: tuple[AnyArray, ...]
    outputs: tuple[AnyArray, ...]
    sizes: CallSizes

    def read_arrays(self) -> tuple[AnyArray, ...]:
        """The inputs; those that steps on the host read are copied to it."""
        on_host = used_on_host(self.plan)
        return tuple(
            np.asarray(array) if InputRef(number) in on_host else array
            for number, array in enumerate(self.inputs)
        )

    def written_arrays(self) -> tuple[AnyArray, ...]:
        """For each output, the caller's array if a step can write into it; else a new one."""
        on_host = used_on_host(self.plan)
        return tuple(
            array if _is_written_directly(array, OutputRef(number) in on_host) else maker.make()
            for number, (maker, array) in enumerate(
                zip(self.sizes.makers, self.outputs, strict=True)
            )
        )

    def copy_results(self, written: Sequence[AnyArray]) -> None:
        """Copy the results that steps wrote into other arrays to the caller's arrays."""
        for array, result in zip(self.outputs, written, strict=True):
            if isinstance(array, DeviceArray) and isinstance(result, np.ndarray):
                self.device.copy_in(result, array.memory)
            elif isinstance(array, np.ndarray) and array is not result:
                np.copyto(array, result)

    def check_in_place(self, outputs: Sequence[AnyArray]) -> None:
        """Check that each step can read and write its arrays directly.  Raises: InputError."""
        on_host, plan = used_on_host(self.plan), self.plan
        for n, (spec, array) in enumerate(zip(plan.inputs, self.inputs, strict=True)):
            check_in_place("input", spec, array, is_here=InputRef(n) in on_host)
        for n, (spec, array) in enumerate(zip(plan.outputs, outputs, strict=True)):
            check_in_place("output", spec, array, is_here=OutputRef(n) in on_host)


def _is_written_directly(array: AnyArray, is_from_host: bool) -> bool:
    if isinstance(array, DeviceArray):
        return not is_from_host
    return is_kernel_ready(array)
