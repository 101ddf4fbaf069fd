"""The devices that OpenCL drives on this machine, and the one that runs kernels."""

from __future__ import annotations

import functools
import importlib
import os
import re
from dataclasses import replace
from typing import Any

from tensorwright import base
from tensorwright.runtime.device import DeviceFacts, Missing

_MOST_THREADS = 1024  # of a block; more do not help
_INSTALL = "install the package with its extra: pip install 'tensorwright[opencl]'"
_POCL = "pip install 'tensorwright[opencl,pocl]' has PoCL, which runs OpenCL on the processor"


def opencl_devices() -> tuple[DeviceFacts, ...]:
    """All OpenCL devices of this machine, the preferred one first; () without the package."""
    return tuple(
        DeviceFacts(
            name=str(each.name).strip(),
            platform=str(each.platform.name).strip(),
            version=str(each.version).strip(),
            compute_units=int(each.max_compute_units),
            memory_bytes=int(each.global_mem_size),
            shared_bytes=int(each.local_mem_size),
            threads_per_block=int(each.max_work_group_size),
            is_simulator=_is_simulator(each),
        )
        for each in _devices()
    )


def detect_target() -> base.GpuTarget:
    """The device that runs kernels, as a target.

    Numbers that drivers do not tell are those of the generic target.
    Raises:  MachineError if there is no such device.
    """
    device = device_here(base.knobs.OPENCL_DEVICE.get())
    generic = base.parse_target("opencl:generic")
    assert isinstance(generic, base.GpuTarget)
    shared_bytes = int(device.local_mem_size)
    is_processor = bool(device.type & opencl_driver().device_type.CPU)
    return replace(
        generic,
        name="opencl",
        arch=re.sub(r"[^A-Za-z0-9]+", "-", str(device.name)).strip("-"),
        multiprocessors=int(device.max_compute_units),
        threads_per_block=min(_MOST_THREADS, int(device.max_work_group_size)),
        static_shared_bytes=shared_bytes,
        opt_in_shared_bytes=shared_bytes,
        shared_bytes=shared_bytes,
        l2_bytes=int(device.global_mem_cache_size) or generic.l2_bytes,
        features=(base.ON_PROCESSOR,) if is_processor else (),
    )


@functools.cache
def opencl_driver() -> Any:
    """The package pyopencl; None if it is not installed.

    Its cache of compiled programs, in files of pickles, is turned off: drivers have caches.
    """
    os.environ.setdefault("PYOPENCL_NO_CACHE", "1")
    try:
        return importlib.import_module("pyopencl")
    except ImportError:
        return None


@functools.cache
def _devices() -> tuple[Any, ...]:
    """The devices of all drivers; graphics processors come first, simulators last."""
    driver = opencl_driver()
    if driver is None:
        return ()
    try:
        devices = [each for platform in driver.get_platforms() for each in platform.get_devices()]
    except driver.Error:  # there is no driver at all
        return ()
    card, processor = driver.device_type.GPU, driver.device_type.CPU
    order = (card, 0, processor)

    def rank(device: Any) -> int:
        return len(order) if _is_simulator(device) else order.index(device.type & sum(order))

    return tuple(sorted(devices, key=rank))


def _is_simulator(device: Any) -> bool:
    """Whether a device is a simulator: it claims to be a processor and a graphics processor."""
    both = opencl_driver().device_type.GPU | opencl_driver().device_type.CPU
    return bool(device.type & both == both)


@functools.cache
def find_device(wanted: str) -> tuple[Any, Missing | None]:
    """A device by a part of its name, or what is missing."""
    if opencl_driver() is None:
        return None, Missing("the package pyopencl is not installed", _INSTALL)
    devices = _devices()
    if not devices:
        return None, Missing(
            "no OpenCL driver is installed", f"install the driver of your card; {_POCL}"
        )
    for each in devices:
        if wanted.lower() in f"{each.platform.name} {each.name}".lower():
            return each, None
    listed = ", ".join(f"{str(each.name).strip()!r}" for each in devices)
    return None, Missing(
        f"no OpenCL device has {wanted!r} in its name",
        f"set the knob opencl_device to a part of one of {listed}",
    )


def device_here(wanted: str) -> Any:
    """A device by a part of its name.  Raises: MachineError if there is none."""
    device, lack = find_device(wanted)
    if lack is not None:
        raise base.MachineError(
            stage="runtime", where="OpenCL", reason=lack.reason, remedy=lack.remedy
        )
    return device
