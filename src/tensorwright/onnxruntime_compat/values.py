"""Tensors of sessions: what they are called, and arrays that a program keeps for them.

Arrays that a program binds to the inputs and outputs of a session.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorwright.base import Array, DType, did_you_mean
from tensorwright.onnxruntime_compat.options import BindingError, calling, refusal
from tensorwright.runtime import Executable, TensorSpec, empty

_TYPES = {
    DType.F16: ("float16", 10),
    DType.BF16: ("bfloat16", 16),
    DType.F32: ("float", 1),
    DType.F64: ("double", 11),
    DType.I8: ("int8", 3),
    DType.I16: ("int16", 5),
    DType.I32: ("int32", 6),
    DType.I64: ("int64", 7),
    DType.U8: ("uint8", 2),
    DType.U16: ("uint16", 4),
    DType.U32: ("uint32", 12),
    DType.U64: ("uint64", 13),
    DType.BOOL: ("bool", 9),
}
"""The name of each type, and its number in ONNX's TensorProto."""


@dataclass(frozen=True, slots=True)
class NodeArg:
    """An input or output: its name, extents (names for open ones), and type, "tensor(float)"."""

    name: str
    shape: list[int | str]
    type: str

    @classmethod
    def of(cls, spec: TensorSpec) -> NodeArg:
        """As a session says it."""
        shape: list[int | str] = [n if isinstance(n, int) else str(n) for n in spec.shape]
        return cls(spec.name, shape, _type_of(spec.dtype))


class OrtValue:
    """An array in the processor's memory."""

    __slots__ = ("_array",)

    def __init__(self, array: Array) -> None:
        self._array = array

    @classmethod
    def ortvalue_from_numpy(
        cls, numpy_obj: Any, device_type: str = "cpu", device_id: int = 0
    ) -> OrtValue:
        """The array itself, not a copy."""
        check_device(device_type, device_id)
        return cls(np.asarray(numpy_obj))

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: Array, onnx_element_type: int) -> OrtValue:
        """The array read as another type of the same size, by its number in ONNX: bf16, for one.

        Raises:  InvalidArgument for a type that tensors cannot have, or of another size.
        """
        chosen = [dtype for dtype, (_, number) in _TYPES.items() if number == onnx_element_type]
        if not chosen or chosen[0].size_bytes != data.dtype.itemsize:
            raise refusal(
                "argument onnx_element_type",
                f"elements of {data.dtype} cannot be read as type {onnx_element_type} of ONNX",
                "give the number of a type that has the same size",
            )
        return cls(data.view(chosen[0].numpy))

    @classmethod
    def from_dlpack(cls, data: Any, /) -> OrtValue:
        """The memory of another library's tensor, not a copy."""
        return cls(np.from_dlpack(data))

    @classmethod
    def ortvalue_from_shape_and_type(
        cls,
        shape: Sequence[int],
        element_type: Any,
        device_type: str = "cpu",
        device_id: int = 0,
    ) -> OrtValue:
        """A new array, which has any content."""
        check_device(device_type, device_id)
        return cls(empty(tuple(shape), DType.from_numpy(np.dtype(element_type))))

    def numpy(self) -> Array:
        """The array itself."""
        return self._array

    def update_inplace(self, np_arr: Any) -> None:
        """Copy another array of this shape into it."""
        given = np.asarray(np_arr)
        if given.shape != self._array.shape or given.dtype != self._array.dtype:
            raise refusal(
                "argument np_arr",
                f"it is {given.dtype}{given.shape}, and the value {self._array.dtype}"
                f"{self._array.shape}",
                "make a new value",
            )
        np.copyto(self._array, given)

    def shape(self) -> list[int]:
        """Its extents."""
        return list(self._array.shape)

    def data_type(self) -> str:
        """Its type: "tensor(float)"."""
        return _type_of(DType.from_numpy(self._array.dtype))

    def element_type(self) -> int:
        """The number of its type in ONNX's TensorProto."""
        return _TYPES[DType.from_numpy(self._array.dtype)][1]

    def data_ptr(self) -> int:
        """Its address."""
        return int(self._array.ctypes.data)

    def tensor_size_in_bytes(self) -> int:
        """The size of its elements."""
        return self._array.nbytes

    def device_name(self) -> str:
        """Where it is."""
        return "cpu"

    def has_value(self) -> bool:
        """Whether it has an array: always."""
        return True

    def is_tensor(self) -> bool:
        """Whether it is a tensor: always."""
        return True

    def is_tensor_sequence(self) -> bool:
        """Whether it is a sequence: never."""
        return False

    def is_sparse_tensor(self) -> bool:
        """Whether it is sparse: never."""
        return False

    def __dlpack__(self, **options: Any) -> Any:
        array: Any = self._array
        return array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


def array_of(value: Any) -> Any:
    """The array of a value; anything else as it is."""
    return value.numpy() if isinstance(value, OrtValue) else value


def array_at(address: int, element_type: Any, shape: Sequence[int]) -> Array:
    """A dense array of the program's, which keeps its memory."""
    dtype = np.dtype(element_type)
    count = int(np.prod(shape, dtype=np.int64))
    memory = (ctypes.c_uint8 * (count * dtype.itemsize)).from_address(address)
    return np.frombuffer(memory, dtype).reshape(tuple(shape))


def check_device(device_type: str, device_id: int = 0) -> None:
    """Raises:  InvalidArgument for another device than the processor."""
    if device_type != "cpu" or device_id:
        raise refusal(
            f"device {device_type}:{device_id}",
            "a session runs on the processor alone",
            "name the device cpu; for graphics processors see docs/gpu.md",
        )


def _type_of(dtype: DType) -> str:
    return f"tensor({_TYPES[dtype][0]})"


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
