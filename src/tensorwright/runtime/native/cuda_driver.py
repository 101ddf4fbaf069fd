"""The driver of NVIDIA's cards, by ctypes: the calls for devices, memory, code and clocks.

Source:  NVIDIA, CUDA Driver API 13.0; the numbers are those of `CUdevice_attribute`,
         `CUfunction_attribute` and `CUresult`.
"""

from __future__ import annotations

import ctypes
import functools
from ctypes import POINTER, byref, c_char_p, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

LIBRARY = "libcuda.so.1"

_ADDRESS = c_uint64
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cuInit": (c_uint,),
    "cuDriverGetVersion": (POINTER(c_int),),
    "cuGetErrorName": (c_int, POINTER(c_char_p)),
    "cuDeviceGetCount": (POINTER(c_int),),
    "cuDeviceGet": (POINTER(c_int), c_int),
    "cuDeviceGetName": (c_char_p, c_int, c_int),
    "cuDeviceGetAttribute": (POINTER(c_int), c_int, c_int),
    "cuDeviceTotalMem_v2": (POINTER(c_size_t), c_int),
    "cuDevicePrimaryCtxRetain": (POINTER(c_void_p), c_int),
    "cuCtxSetCurrent": (c_void_p,),
    "cuMemGetInfo_v2": (POINTER(c_size_t), POINTER(c_size_t)),
    "cuMemAlloc_v2": (POINTER(_ADDRESS), c_size_t),
    "cuMemFree_v2": (_ADDRESS,),
    "cuMemcpyHtoDAsync_v2": (_ADDRESS, c_void_p, c_size_t, c_void_p),
    "cuMemcpyDtoHAsync_v2": (c_void_p, _ADDRESS, c_size_t, c_void_p),
    "cuMemcpyDtoDAsync_v2": (_ADDRESS, _ADDRESS, c_size_t, c_void_p),
    "cuStreamCreate": (POINTER(c_void_p), c_uint),
    "cuStreamSynchronize": (c_void_p,),
    "cuEventCreate": (POINTER(c_void_p), c_uint),
    "cuEventRecord": (c_void_p, c_void_p),
    "cuEventDestroy_v2": (c_void_p,),
    "cuEventElapsedTime": (POINTER(c_float), c_void_p, c_void_p),
    "cuModuleLoadData": (POINTER(c_void_p), c_char_p),
    "cuModuleUnload": (c_void_p,),
    "cuModuleGetFunction": (POINTER(c_void_p), c_void_p, c_char_p),
    "cuFuncSetAttribute": (c_void_p, c_int, c_int),
    "cuLaunchKernel": (c_void_p, *(c_uint,) * 7, c_void_p, c_void_p, c_void_p),
}
_GRAPH_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cuStreamBeginCapture_v2": (c_void_p, c_int),
    "cuStreamEndCapture": (c_void_p, POINTER(c_void_p)),
    "cuGraphInstantiateWithFlags": (POINTER(c_void_p), c_void_p, c_uint64),
    "cuGraphUpload": (c_void_p, c_void_p),
    "cuGraphLaunch": (c_void_p, c_void_p),
    "cuGraphDestroy": (c_void_p,),
    "cuGraphExecDestroy": (c_void_p,),
    "cuEventRecordWithFlags": (c_void_p, c_void_p, c_uint),
}
"""The functions of graphs, which drivers before CUDA 11.4 lack."""

CAPTURE_RELAXED = 2
"""The mode in which memory may be freed while the calls of a stream are captured."""


IN_GRAPH = 1
"""The flag of a captured event that has a time at each launch of its graph."""


class Attribute(IntEnum):
    """Attributes of a device; sizes in bytes, clock rates in kHz, the width of the bus in bits."""

    THREADS_PER_BLOCK = 1
    SHARED_PER_BLOCK = 8
    WARP = 10
    REGISTERS_PER_BLOCK = 12
    MULTIPROCESSORS = 16
    MEMORY_CLOCK = 36
    MEMORY_BUS = 37
    L2_BYTES = 38
    MAJOR = 75
    MINOR = 76
    SHARED_PER_MULTIPROCESSOR = 81
    SHARED_OPT_IN = 97
    BLOCKS_PER_MULTIPROCESSOR = 106


DYNAMIC_SHARED_BYTES = 8
"""The attribute of a function that allows more shared memory than the default limit."""

OUT_OF_MEMORY = 2
NO_DEVICE = 100
REFUSED_IMAGES = frozenset((200, 209, 218, 222, 223))
"""Results for code that a driver refuses: an image of another architecture or version."""


class DriverError(Exception):
    """A failed call of the driver."""

    def __init__(self, function: str, result: int, name: str) -> None:
        super().__init__(f"{function} gives {name}")
        self.function = function
        self.result = result
        self.name = name


@dataclass(frozen=True, slots=True)
class Driver:
    """The library, started.

    version      the newest CUDA whose code it accepts
    has_graphs   whether it can capture launches as a graph
    """

    library: Any
    version: tuple[int, int]
    has_graphs: bool = True

    def call(self, function: str, *arguments: Any) -> None:
        """Call a function.  Raises: DriverError."""
        result = getattr(self.library, function)(*arguments)
        if result:
            raise DriverError(function, result, _name_of(self.library, result))

    def number(self, function: str, kind: Any, *arguments: Any) -> int:
        """The number that a function writes to its first argument.  Raises: DriverError."""
        number = kind()
        self.call(function, byref(number), *arguments)
        return int(number.value or 0)

    def attribute(self, device: int, attribute: Attribute) -> int:
        """An attribute of a device; 0 if the driver does not tell."""
        try:
            return self.number("cuDeviceGetAttribute", c_int, int(attribute), device)
        except DriverError:
            return 0


@functools.cache
def open_driver(path: str = LIBRARY) -> Driver | None:
    """Load and start the driver; None if there is none.

    Raises:  DriverError if it does not start, for example because there is no card.
    """
    try:
        library = ctypes.CDLL(path)
    except OSError:
        return None
    has_graphs = all(hasattr(library, name) for name in _GRAPH_SIGNATURES)
    signatures = _SIGNATURES | (_GRAPH_SIGNATURES if has_graphs else {})
    for name, arguments in signatures.items():
        getattr(library, name).argtypes = arguments
    driver = Driver(library, (0, 0))
    driver.call("cuInit", 0)
    number = driver.number("cuDriverGetVersion", c_int)
    return Driver(library, (number // 1000, number % 1000 // 10), has_graphs)


def _name_of(library: Any, result: int) -> str:
    """The name of a result, as in the headers."""
    name = c_char_p()
    library.cuGetErrorName(result, byref(name))
    return name.value.decode() if name.value else f"CUDA error {result}"
