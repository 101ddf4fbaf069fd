"""Arrays of a device's memory, exchanged with other libraries by DLPack, without copies.

Source:  DLPack 0.8, `dlpack.h`, and "Python Specification for DLPack": a capsule is named dltensor
         until a library takes it.
"""

from __future__ import annotations

import ctypes
import itertools
import weakref
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tensorwright.base import Array, DType
from tensorwright.runtime.device import Device, DlpackDevice, Memory

_NEW, _TAKEN = b"dltensor", b"used_dltensor"
_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}
_BFLOAT = 4


class _TensorStruct(ctypes.Structure):
    """`DLTensor`."""

    _fields_ = (
        ("data", c_void_p),
        ("device", c_int32),
        ("number", c_int32),
        ("rank", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("offset", c_uint64),
    )


class _ManagedStruct(ctypes.Structure):
    """`DLManagedTensor`."""

    _fields_ = (("tensor", _TensorStruct), ("manager", c_void_p), ("deleter", c_void_p))


_Deleter = ctypes.CFUNCTYPE(None, c_void_p)
_Destructor = ctypes.PYFUNCTYPE(None, c_void_p)


def _function(name: str, result: Any, *arguments: Any) -> Any:
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


_new_capsule = _function("PyCapsule_New", ctypes.py_object, c_void_p, c_char_p, _Destructor)
_is_valid = _function("PyCapsule_IsValid", ctypes.c_int, ctypes.py_object, c_char_p)
_pointer = _function("PyCapsule_GetPointer", c_void_p, ctypes.py_object, c_char_p)
_rename = _function("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, c_char_p)
_is_valid_at = _function("PyCapsule_IsValid", ctypes.c_int, c_void_p, c_char_p)
_pointer_at = _function("PyCapsule_GetPointer", c_void_p, c_void_p, c_char_p)

_exported: dict[int, tuple[Any, ...]] = {}  # the address of a struct -> what it points to


def _delete(address: int) -> None:
    """Forget an exported tensor."""
    _exported.pop(address, None)


def _destroy(capsule: int) -> None:
    """Forget the tensor of a capsule that no library has taken."""
    if _is_valid_at(capsule, _NEW):
        _exported.pop(_pointer_at(capsule, _NEW), None)


_deleter, _destructor = _Deleter(_delete), _Destructor(_destroy)


@dataclass(frozen=True, slots=True, eq=False)
class DeviceArray:
    """A dense, row-major array in a device's memory, which is freed with it.

    Libraries that know the device take it without a copy: `torch.from_dlpack(array)`. NumPy gets a
    copy: `numpy.asarray(array)`.
    """

    device: Device
    memory: Memory
    shape: tuple[int, ...]
    kind: DType

    @classmethod
    def empty(cls, device: Device, shape: tuple[int, ...], kind: DType) -> DeviceArray:
        """An array of undefined content.  Raises: MemoryError if there is not enough memory."""
        return cls(device, device.allocate(prod(shape) * kind.size_bytes), shape, kind)

    @classmethod
    def of(cls, device: Device, array: Array | DeviceArray) -> DeviceArray:
        """The array if it is on the device, else a copy there.  Raises: MemoryError."""
        if isinstance(array, DeviceArray):
            return array
        kind = DType.from_numpy(array.dtype)
        return cls(device, device.memory_of(array), array.shape, kind)

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """NumPy's element type."""
        return self.kind.numpy

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """A copy in the host's memory.  Raises: ValueError if no copy may be made."""
        if copy is False:
            raise ValueError("the array is in the memory of a device: NumPy needs a copy")
        array = np.empty(self.shape, self.dtype)
        self.device.copy_out(self.memory, array)
        return array if dtype is None else array.astype(dtype)

    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack's kind and number of the device."""
        named = self._named()
        return named.kind, named.number

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """A capsule.  The array is complete, so any stream may read it.

        Raises:  BufferError if a copy or another device is asked for.
        """
        if copy or dl_device not in (None, self.__dlpack_device__()):
            raise BufferError("the array is exported without a copy, on its own device")
        named, rank = self._named(), len(self.shape)
        extents = (c_int64 * max(1, rank))(*self.shape)
        code = _BFLOAT if self.kind is DType.BF16 else _CODES[self.dtype.kind]
        tensor = _TensorStruct(
            *(self.memory.address, named.kind, named.number, rank),
            *(code, 8 * self.kind.size_bytes, 1, extents, None, 0),
        )
        managed = _ManagedStruct(tensor, None, ctypes.cast(_deleter, c_void_p))
        address = ctypes.addressof(managed)
        _exported[address] = (managed, extents, self.memory)
        return _new_capsule(address, _NEW, _destructor)

    def _named(self) -> DlpackDevice:
        named = self.device.dlpack()
        if named is None:
            raise BufferError(
                "DLPack has no name for this device; numpy.asarray(array) makes a copy on the host"
            )
        return named


def is_on(named: DlpackDevice | None, value: Any) -> bool:
    """Whether a value is an array in the memory of a device."""
    if named is None or isinstance(value, np.ndarray) or not hasattr(value, "__dlpack_device__"):
        return False
    kind, number = value.__dlpack_device__()
    return (int(kind), int(number)) == (named.kind, named.number)


def stand_in(value: Any) -> Any:
    """For checks: an array of NumPy with the type and shape of one on a device; others unchanged.

    It has one element, which all indices share.
    """
    if not isinstance(value, DeviceArray):
        return value
    return np.broadcast_to(np.zeros((), value.dtype), value.shape)


def room_for(value: Any) -> Any:
    """As `stand_in`, but the array can be written."""
    return np.empty(value.shape, value.dtype) if isinstance(value, DeviceArray) else value


def taken(device: Device, named: DlpackDevice, value: Any) -> DeviceArray:
    """The array that a value of the device exports; it keeps the value's memory.

    Raises:  BufferError if it is not dense, or of a type that no kernel reads; the errors of the
             export.
    """
    if isinstance(value, DeviceArray):
        return value
    capsule = value.__dlpack__(stream=named.stream)
    if not _is_valid(capsule, _NEW):
        raise BufferError("its capsule is not a new tensor of DLPack")
    address = _pointer(capsule, _NEW)
    managed = _ManagedStruct.from_address(address)
    _rename(capsule, _TAKEN)
    owner = _Taken(next(_numbers))
    if managed.deleter:
        weakref.finalize(owner, _Deleter(managed.deleter), address)
    tensor = managed.tensor
    shape = tuple(tensor.shape[: tensor.rank])
    kind = _kind_of(tensor)
    if not _is_dense(tensor, shape):
        raise BufferError("its elements are not one after the other: make it contiguous")
    memory = Memory((tensor.data or 0) + tensor.offset, prod(shape) * kind.size_bytes, owner)
    return DeviceArray(device, memory, shape, kind)


class _Taken:
    """The owner of another library's tensor, which is given back with this object."""

    __slots__ = ("__weakref__", "number")

    def __init__(self, number: int) -> None:
        self.number = number


_numbers = itertools.count()


def _kind_of(tensor: _TensorStruct) -> DType:
    for kind in DType:
        code = _BFLOAT if kind is DType.BF16 else _CODES.get(kind.numpy.kind)
        if (code, 8 * kind.size_bytes, 1) == (tensor.code, tensor.bits, tensor.lanes):
            return kind
    what = f"{tensor.bits} bits of DLPack's code {tensor.code}"
    raise BufferError(f"no kernel reads elements of {what}")


def _is_dense(tensor: _TensorStruct, shape: tuple[int, ...]) -> bool:
    if not tensor.strides:
        return True
    wanted = 1
    for extent, stride in zip(reversed(shape), reversed(tensor.strides[: len(shape)]), strict=True):
        if extent != 1 and stride != wanted:
            return prod(shape) == 0
        wanted *= extent
    return True
