"""Machines that can be assumed: what is otherwise read and measured of this machine, as data.

The knob `assume` names one (`TENSORWRIGHT_ASSUME=avx512-halves`): the target "native", the number
of threads and all rates are then those of that machine, on every machine. So a choice can be
repeated where it was not made. Code for instructions that this machine lacks is compiled, and
refused when it would run. What is timed, is timed here.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AssumedMachine:
    """A machine by its name; caches in KiB, rates of a core in bytes per second.

    target          the name of the target with its instructions
    fused_bytes     of the vectors that a core multiplies and adds in a cycle
    l2, l3, memory  its caches and its memory: what a core reads from each
    """

    name: str
    target: str
    fused_bytes: int
    l1_kib: int
    l2_kib: int
    l3_kib: int
    l2_bytes_per_s: float
    l3_bytes_per_s: float
    memory_bytes_per_s: float
    cores: int = 2


ASSUMED: tuple[AssumedMachine, ...] = (
    # A Xeon of 2023: two units of 64 bytes; the third cache is hardly faster than the memory.
    AssumedMachine(
        "avx512-wide",
        "x86-64-avx512+avx512vnni+avx512bf16",
        fused_bytes=128,
        l1_kib=48,
        l2_kib=2048,
        l3_kib=107_520,
        l2_bytes_per_s=100e9,
        l3_bytes_per_s=15e9,
        memory_bytes_per_s=12e9,
    ),
    # An EPYC of 2022: its units are half as long as its vectors.
    AssumedMachine(
        "avx512-halves",
        "x86-64-avx512+avx512vnni+avx512bf16",
        fused_bytes=64,
        l1_kib=32,
        l2_kib=1024,
        l3_kib=32_768,
        l2_bytes_per_s=100e9,
        l3_bytes_per_s=60e9,
        memory_bytes_per_s=30e9,
    ),
    # A desktop of 2019.
    AssumedMachine(
        "avx2",
        "x86-64-avx2",
        fused_bytes=64,
        l1_kib=32,
        l2_kib=512,
        l3_kib=16_384,
        l2_bytes_per_s=80e9,
        l3_bytes_per_s=50e9,
        memory_bytes_per_s=25e9,
    ),
    # What every x86-64 processor has.
    AssumedMachine(
        "sse2",
        "x86-64-sse2",
        fused_bytes=32,
        l1_kib=32,
        l2_kib=256,
        l3_kib=8192,
        l2_bytes_per_s=40e9,
        l3_bytes_per_s=25e9,
        memory_bytes_per_s=12e9,
    ),
    # An ARM server of 2020.
    AssumedMachine(
        "neon",
        "aarch64-neon+fullfp16+dotprod",
        fused_bytes=32,
        l1_kib=64,
        l2_kib=1024,
        l3_kib=32_768,
        l2_bytes_per_s=50e9,
        l3_bytes_per_s=25e9,
        memory_bytes_per_s=20e9,
    ),
)
