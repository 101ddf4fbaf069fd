"""NVIDIA's card that runs kernels: the first one that the driver of CUDA shows."""

from __future__ import annotations

import ctypes
import functools
from ctypes import c_int, c_size_t
from dataclasses import dataclass, replace

from tensorwright.base import TARGETS, GpuApi, GpuTarget, MachineError
from tensorwright.runtime.device import DeviceFacts, Missing
from tensorwright.runtime.native.cuda_driver import (
    LIBRARY,
    NO_DEVICE,
    Attribute,
    Driver,
    DriverError,
    open_driver,
)

_NAME_BYTES = 256
_INSTALL = "install NVIDIA's driver of the card, and run nvidia-smi to check it"


@dataclass(frozen=True, slots=True)
class Card:
    """The driver's description of a card.

    capability   major and minor number of its architecture
    """

    number: int
    capability: tuple[int, int]
    facts: DeviceFacts

    @property
    def arch(self) -> str:
        """The name of its architecture, with the suffix of architecture-specific instructions."""
        plain = "sm_{}{}".format(*self.capability)
        return f"{plain}a" if self.capability >= (9, 0) else plain

    def runs(self, arch: str) -> bool:
        """Whether it runs an architecture's machine code: one of its family that is not newer.

        Source:  NVIDIA, CUDA C++ Programming Guide 13.0, binary compatibility and
                 architecture-specific feature sets.
        """
        number = arch.removeprefix("sm_").rstrip("af")
        if not number.isdigit():
            return False
        major, minor = divmod(int(number), 10)
        if arch.endswith("a"):
            return (major, minor) == self.capability
        return major == self.capability[0] and minor <= self.capability[1]


def cuda_devices() -> tuple[DeviceFacts, ...]:
    """The driver's description of the card that runs kernels; () without a driver."""
    card, _ = find_card()
    return () if card is None else (card.facts,)


def why_no_card() -> Missing | None:
    """What this machine lacks to run code by CUDA; None if nothing."""
    return find_card()[1]


def detect_target() -> GpuTarget:
    """The card that runs kernels, as a target.

    Its rates are scaled by multiprocessors from those of the nearest named target.
    Raises:  MachineError if there is no card.
    """
    driver, card = card_here()
    ask = functools.partial(driver.attribute, card.number)
    base = _nearest(card)
    count = ask(Attribute.MULTIPROCESSORS)
    bandwidth = 2e3 * ask(Attribute.MEMORY_CLOCK) * ask(Attribute.MEMORY_BUS) / 8
    return replace(
        base,
        name="cuda",
        arch=card.arch,
        multiprocessors=count,
        warp=ask(Attribute.WARP),
        threads_per_block=ask(Attribute.THREADS_PER_BLOCK),
        registers=ask(Attribute.REGISTERS_PER_BLOCK),
        static_shared_bytes=ask(Attribute.SHARED_PER_BLOCK),
        opt_in_shared_bytes=ask(Attribute.SHARED_OPT_IN),
        shared_bytes=ask(Attribute.SHARED_PER_MULTIPROCESSOR),
        blocks_per_multiprocessor=ask(Attribute.BLOCKS_PER_MULTIPROCESSOR)
        or base.blocks_per_multiprocessor,
        l2_bytes=ask(Attribute.L2_BYTES) or base.l2_bytes,
        bandwidth=bandwidth or base.bandwidth,
        flops=tuple((dtype, rate * count / base.multiprocessors) for dtype, rate in base.flops),
    )


def _nearest(card: Card) -> GpuTarget:
    """The newest named target that is not newer than the card; the oldest if all are newer."""
    named = [each for each in TARGETS if isinstance(each, GpuTarget) and each.api is GpuApi.CUDA]

    def number(target: GpuTarget) -> int:
        return int(target.arch.removeprefix("sm_").rstrip("a"))

    own = card.capability[0] * 10 + card.capability[1]
    older = [each for each in named if number(each) <= own]
    return max(older, key=number) if older else min(named, key=number)


def _describe(driver: Driver) -> Card:
    """The first card.  Raises: DriverError."""
    number = driver.number("cuDeviceGet", c_int, 0)
    name = ctypes.create_string_buffer(_NAME_BYTES)
    driver.call("cuDeviceGetName", name, _NAME_BYTES, number)
    ask = functools.partial(driver.attribute, number)
    capability = ask(Attribute.MAJOR), ask(Attribute.MINOR)
    version = "sm_{}{}, driver of CUDA {}.{}".format(*capability, *driver.version)
    facts = DeviceFacts(
        name=name.value.decode(errors="replace"),
        platform="NVIDIA CUDA",
        version=version,
        compute_units=ask(Attribute.MULTIPROCESSORS),
        memory_bytes=driver.number("cuDeviceTotalMem_v2", c_size_t, number),
        shared_bytes=ask(Attribute.SHARED_OPT_IN),
        threads_per_block=ask(Attribute.THREADS_PER_BLOCK),
    )
    return Card(number, capability, facts)


@functools.cache
def find_card() -> tuple[Card | None, Missing | None]:
    """The first card, or what is missing."""
    try:
        driver = open_driver()
        if driver is None:
            return None, Missing(f"the CUDA driver is not installed: no {LIBRARY}", _INSTALL)
        if not driver.number("cuDeviceGetCount", c_int):
            return None, _no_card()
        return _describe(driver), None
    except DriverError as error:
        if error.result == NO_DEVICE:
            return None, _no_card()
        return None, Missing(f"the CUDA driver does not start: {error.name}", _INSTALL)


def _no_card() -> Missing:
    return Missing(
        "the CUDA driver shows no card",
        "run nvidia-smi, and check the variable CUDA_VISIBLE_DEVICES",
    )


def card_here() -> tuple[Driver, Card]:
    """The driver and its first card.  Raises: MachineError if there is none."""
    card, lack = find_card()
    driver = None if card is None else open_driver()
    if card is None or driver is None:
        assert lack is not None
        raise MachineError(stage="runtime", where="CUDA", reason=lack.reason, remedy=lack.remedy)
    return driver, card
