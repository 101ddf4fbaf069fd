"""Check the caller's arrays against the declared tensors, and report what does not fit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from tensorwright import base
from tensorwright.runtime.buffers import is_kernel_ready, to_array
from tensorwright.runtime.device import Device
from tensorwright.runtime.dlpack import DeviceArray, is_on, room_for, stand_in, taken
from tensorwright.runtime.plan.plan import TensorSpec

_EXPORT_ERRORS = (BufferError, TypeError, ValueError, RuntimeError, OverflowError)


@dataclass(frozen=True, slots=True)
class Port:
    """A declared tensor, with precomputed data for the check of an array.

    rank    None if each call decides it
    shape   None if the check is of the rank alone: each call has its sizes, which are checked
            when they are not those of the call before
    """

    spec: TensorSpec
    name: str
    dtype: np.dtype[np.generic]
    rank: int | None
    shape: tuple[int, ...] | None

    @classmethod
    def of(cls, spec: TensorSpec, *, any_sizes: bool = False) -> Port:
        """The port of a declared tensor; with `any_sizes`, of all tensors of its rank."""
        shape = None if any_sizes or spec.type.is_open else spec.extents
        rank = len(spec.shape) if spec.has_rank else None
        return cls(spec, spec.name, spec.dtype.numpy, rank, shape)

    def fits(self, value: Any) -> bool:
        """Whether the value is a NumPy array of the declared type."""
        if type(value) is not np.ndarray or value.dtype != self.dtype:
            return False
        return self.rank in (value.ndim, None) if self.shape is None else value.shape == self.shape

    def take(self, value: Any) -> base.Array:
        """The value as an array.  Raises: as `check_array`."""
        return check_array("input", self.spec, value, any_sizes=self.shape is None)


def fits_shape(spec: TensorSpec, shape: tuple[int, ...]) -> bool:
    """Whether a shape agrees with the numbers of the declared one; named sizes may be anything."""
    return not spec.has_rank or (
        len(shape) == len(spec.shape)
        and all(
            wanted == given or not isinstance(wanted, int)
            for wanted, given in zip(spec.shape, shape, strict=True)
        )
    )


def check_inputs(ports: Sequence[Port], given: Mapping[str, Any]) -> tuple[base.Array, ...]:
    """The inputs as arrays of the declared types, in calling order, without copies if possible.

    Raises:  InputError for a name, shape or element type that is not declared.
    """
    if isinstance(given, dict) and len(given) == len(ports):
        arrays = tuple([given.get(port.name) for port in ports])
        if all(map(Port.fits, ports, arrays)):
            return cast(tuple[base.Array, ...], arrays)
    check_names("input", [port.spec for port in ports], given)
    return tuple([port.take(given[port.name]) for port in ports])


def check_positional(ports: Sequence[Port], given: Sequence[Any]) -> tuple[base.Array, ...]:
    """As `check_inputs`, for inputs given in calling order."""
    if len(given) == len(ports) and all(map(Port.fits, ports, given)):
        return tuple(given)
    check_count(ports, given)
    return tuple([port.take(value) for port, value in zip(ports, given, strict=True)])


def check_count(ports: Sequence[Port], given: Sequence[Any]) -> None:
    """Raise InputError unless there is a value for each input."""
    if len(given) != len(ports):
        specs = [port.spec for port in ports]
        reason = f"{len(specs)} arrays are needed, not {len(given)}"
        raise _refusal("inputs", reason, _give("input", specs))


def check_outputs(
    specs: Sequence[TensorSpec], given: Mapping[str, Any], inputs: Sequence[base.Array]
) -> tuple[base.Array, ...]:
    """The arrays for the results, in order; each has the declared type.

    Raises:  InputError if one does not fit, cannot be written, or shares memory with another.
    """
    check_names("output", specs, given)
    arrays = tuple([check_array("output", spec, given[spec.name]) for spec in specs])
    for position, (spec, array) in enumerate(zip(specs, arrays, strict=True)):
        where = f"output {spec.name}"
        others = (*inputs, *arrays[:position])
        if not isinstance(given[spec.name], np.ndarray) and not hasattr(
            given[spec.name], "__dlpack__"
        ):
            raise _refusal(where, "it is not an array that can be written", "")
        if not array.flags.writeable:
            raise _refusal(where, "it is read-only", "give an array that can be written")
        if any(np.may_share_memory(array, other) for other in others):
            raise _shared(where)
    return arrays


def take_inputs(
    device: Device, ports: Sequence[Port], given: Mapping[str, Any]
) -> tuple[base.Array | DeviceArray, ...]:
    """As `check_inputs`, if some are in the memory of a device.

    Raises:  InputError as `check_inputs`, and for an array that the device cannot read in place.
    """
    arrays = _take("input", device, given)
    checked = check_inputs(ports, {name: stand_in(each) for name, each in arrays.items()})
    return tuple(
        arrays[port.name] if isinstance(arrays[port.name], DeviceArray) else array
        for port, array in zip(ports, checked, strict=True)
    )


def take_outputs(
    device: Device,
    specs: Sequence[TensorSpec],
    given: Mapping[str, Any],
    inputs: Sequence[base.Array | DeviceArray],
) -> tuple[base.Array | DeviceArray, ...]:
    """As `check_outputs`, if some are in the memory of a device.

    Raises:  InputError as `check_outputs`, and for an array that the device cannot write in place.
    """
    arrays = _take("output", device, given)
    others = [each for each in inputs if not isinstance(each, DeviceArray)]
    there = [each.memory for each in inputs if isinstance(each, DeviceArray)]
    for name, array in arrays.items():
        if isinstance(array, DeviceArray):
            if any(array.memory.overlaps(other) for other in there):
                raise _shared(f"output {name}")
            there.append(array.memory)
    checked = check_outputs(specs, {name: room_for(each) for name, each in arrays.items()}, others)
    return tuple(
        arrays[spec.name] if isinstance(arrays[spec.name], DeviceArray) else array
        for spec, array in zip(specs, checked, strict=True)
    )


def _take(kind: str, device: Device, given: Mapping[str, Any]) -> dict[str, Any]:
    """The given arrays; those in the memory of the device become `DeviceArray`s."""
    named = device.dlpack()
    arrays = dict(given)
    for name, value in given.items():
        if named is not None and is_on(named, value):
            try:
                arrays[name] = taken(device, named, value)
            except _EXPORT_ERRORS as error:
                remedy = "make it contiguous, and detach it from the gradient"
                raise _refusal(f"{kind} {name}", str(error), remedy) from error
    return arrays


def _shared(where: str) -> base.InputError:
    reason = "it shares memory with an input or another output"
    return _refusal(where, reason, "give it separate memory")


def check_names(kind: str, specs: Sequence[TensorSpec], given: object) -> None:
    """Raise InputError unless exactly the declared names are given."""
    if not isinstance(given, Mapping):
        reason = f"they must be a mapping from name to array, not {type(given).__name__}"
        raise _refusal(f"{kind}s", reason, _give(kind, specs))
    names = [spec.name for spec in specs]
    missing = [name for name in names if name not in given]
    unknown = [name for name in given if name not in names]
    if unknown:
        hint = base.did_you_mean(str(unknown[0]), missing or names)
        remedy = f"{hint} {_give(kind, specs)}".lstrip()
        raise _refusal(f"{kind} {unknown[0]}", f"there is no such {kind}", remedy)
    if missing:
        raise _refusal(f"{kind} {missing[0]}", "it is not given", _give(kind, specs))


def check_array(kind: str, spec: TensorSpec, value: Any, *, any_sizes: bool = False) -> base.Array:
    """The value as an array of the declared type; with `any_sizes`, of its rank.

    Raises:  InputError with the expected and the given type.
    """
    where = f"{kind} {spec.name}"
    try:
        array = to_array(value, spec.dtype)
    except _EXPORT_ERRORS as error:
        given = type(value).__name__
        reason = f"a {given} cannot be read as an array of {spec.type_text} ({error})"
        raise _refusal(where, reason, _export_remedy(value)) from error
    has_rank = array.ndim == len(spec.shape) or not spec.has_rank
    fits = has_rank if any_sizes else fits_shape(spec, array.shape)
    if fits and array.dtype == spec.dtype.numpy:
        return array
    try:
        actual: object = base.TensorType(base.DType.from_numpy(array.dtype), array.shape)
    except base.UsageError:
        actual = f"{array.dtype}({', '.join(map(str, array.shape))})"
    reason = f"it must be {spec.type_text}, not {actual}"
    if not fits:
        remedy = "give an array of that shape" if kind == "output" else _reshape(spec, array)
        raise _refusal(where, reason, remedy)
    if array.dtype.newbyteorder("=") == spec.dtype.numpy:
        return array
    raise _refusal(where, reason, f"convert it: array.astype({spec.dtype.numpy.name!r})")


def check_ready(spec: TensorSpec, array: base.Array) -> None:
    """Raise InputError unless kernels may write the array in place."""
    if not is_kernel_ready(array):
        raise _refusal(
            f"output {spec.name}",
            "it is not dense, row-major and on a multiple of 64 bytes",
            "make it with tensorwright.runtime.empty(shape, dtype)",
        )


def check_in_place(kind: str, spec: TensorSpec, array: Any, *, is_here: bool) -> None:
    """Raise InputError unless each run of a call on a device may use the array in place.

    is_here   whether a step on the host uses it
    """
    if isinstance(array, np.ndarray) and kind == "output":
        check_ready(spec, array)
    if isinstance(array, DeviceArray) and is_here:
        reason = "it is in the memory of the device, and a step on the host uses it"
        raise _refusal(f"{kind} {spec.name}", reason, "give an array of NumPy, or call run_into")


def random_array(spec: TensorSpec, generator: np.random.Generator) -> base.Array:
    """Normal numbers, or whole numbers below 2, which every network accepts.

    Raises:  InputError for a tensor whose rank each call decides.
    """
    if not spec.has_rank:
        reason = f"random numbers need a shape, and it is {spec.type_text}"
        raise _refusal(f"input {spec.name}", reason, shape_advice(spec))
    if spec.dtype.is_float:
        return generator.standard_normal(spec.extents, np.float32).astype(spec.dtype.numpy)
    return generator.integers(0, 2, spec.extents).astype(spec.dtype.numpy)


def shape_advice(spec: TensorSpec) -> base.Advice:
    """The remedy for a tensor whose rank the model leaves open."""
    return base.Advice(
        f"give a shape: prepare({spec.name}=(1, 3, 224, 224)), or input_shapes of compile",
        f'give a shape: --input-shapes "{spec.name}:[1,3,224,224]"',
    )


def _export_remedy(value: Any) -> str:
    """A remedy for a tensor of another library that cannot be exported."""
    if getattr(value, "requires_grad", False):
        return "detach it from the gradient: tensor.detach()"
    device = getattr(value, "device", None)
    if device is not None and str(device) != "cpu":
        return f"copy it from {device} to the CPU first: tensor.cpu()"
    return "give a NumPy array"


def _reshape(spec: TensorSpec, array: base.Array) -> str:
    if spec.type.is_open:
        numbers = ", ".join(str(each) for each in spec.shape if not isinstance(each, int))
        return f"only {numbers} may change from call to call; give an array of that shape"
    if array.size == math.prod(spec.extents):
        return f"reshape it: array.reshape({spec.extents})"
    return "shapes are fixed when a model is compiled: compile it for this shape"


def _refusal(where: str, reason: str, remedy: str) -> base.InputError:
    return base.InputError(stage="run", where=where, reason=reason, remedy=remedy)


def _give(kind: str, specs: Sequence[TensorSpec]) -> str:
    return "give " + (", ".join(map(str, specs)) if specs else f"no {kind}s")
