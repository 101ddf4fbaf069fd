"""Arrays that a program binds to the inputs and outputs of a session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorwright.base import Array, did_you_mean
from tensorwright.onnxruntime_compat.errors import BindingError, calling
from tensorwright.onnxruntime_compat.values import OrtValue, array_at, array_of, check_device
from tensorwright.runtime import Executable


class IOBinding:
    """Inputs that a call reads, and where it writes outputs.

    Inputs are read in each call, so a program may write new data into them between. An output
    without memory of its own is new after each call.
    """

    __slots__ = ("_executable", "_inputs", "_outputs", "_results")

    def __init__(self, executable: Executable) -> None:
        self._executable = executable
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, Array | None] = {}
        self._results: list[OrtValue] = []

    def bind_cpu_input(self, name: str, arr_on_cpu: Any) -> None:
        """Read an array."""
        self._check(name, self._executable.inputs)
        self._inputs[name] = arr_on_cpu

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Read the array of a value."""
        self.bind_cpu_input(name, array_of(ortvalue))

    def bind_input(
        self,
        name: str,
        device_type: str,
        device_id: int,
        element_type: Any,
        shape: Sequence[int],
        buffer_ptr: int,
    ) -> None:
        """Read dense memory at an address."""
        check_device(device_type, device_id)
        self.bind_cpu_input(name, array_at(buffer_ptr, element_type, shape))

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: Any = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Compute an output; write it to dense memory at an address where one is given."""
        check_device(device_type, device_id)
        self._check(name, self._executable.outputs)
        self._outputs[name] = (
            None if buffer_ptr is None else array_at(buffer_ptr, element_type, shape or ())
        )

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Compute an output and write it into the array of a value."""
        self._check(name, self._executable.outputs)
        self._outputs[name] = ortvalue.numpy()

    def clear_binding_inputs(self) -> None:
        """Forget all inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Forget all outputs."""
        self._outputs.clear()
        self._results.clear()

    def synchronize_inputs(self) -> None:
        """Wait for nothing: they are in the processor's memory."""

    def synchronize_outputs(self) -> None:
        """Wait for nothing: a call has written them when it returns."""

    def get_outputs(self) -> list[OrtValue]:
        """The outputs of the last call, in the order in which they were bound."""
        return list(self._results)

    def copy_outputs_to_cpu(self) -> list[Array]:
        """The arrays of `get_outputs`."""
        return [value.numpy() for value in self._results]

    def run(self) -> None:
        """Call the session.

        Raises:  BindingError where an output is not bound, or an array does not fit.
        """
        if not self._outputs:
            raise BindingError(
                stage="session",
                where="a binding",
                reason="it has no output",
                remedy="bind_output(name) for at least one",
            )
        with calling(BindingError):
            arrays = self._computed()
        self._results = [OrtValue(arrays[name]) for name in self._outputs]

    def _computed(self) -> dict[str, Array]:
        executable, given = self._executable, dict(self._outputs)
        arrays = {name: array for name, array in given.items() if array is not None}
        if len(arrays) == len(executable.outputs):
            executable.run_into(self._inputs, arrays)
            return arrays
        results = executable.run(self._inputs)
        for name, array in arrays.items():
            if array.shape != results[name].shape or array.dtype != results[name].dtype:
                raise BindingError(
                    stage="session",
                    where=f"output {name}",
                    reason=f"it is {results[name].dtype}{results[name].shape}, and bound to "
                    f"{array.dtype}{array.shape}",
                    remedy="bind memory of its type and shape",
                )
            np.copyto(array, results[name])
        return {**results, **arrays}

    def _check(self, name: str, specs: Sequence[Any]) -> None:
        names = [spec.name for spec in specs]
        if name not in names:
            raise BindingError(
                stage="session",
                where=f"name {name}",
                reason="the model has nothing of this name here",
                remedy=did_you_mean(name, names, "name some of " + ", ".join(names)),
            )


SessionIOBinding = IOBinding
