"""Build kernels through the kernel cache: a kernel that was built before is read from it.

The key of an entry consists of everything that determines a kernel: the workload and the trace, or
the program; the target; the back end's compiler; this package's sources.  The entry holds the
kernel's signature as JSON and its object code.
"""

from __future__ import annotations

import hashlib
import json
import struct
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache

from tensorwright import base, loop
from tensorwright.artifacts.kernel import Kernel, backend_of, build_kernel, build_program
from tensorwright.codegen import Signature
from tensorwright.expr import EXPRESSION_KINDS
from tensorwright.graph import Node, OpaqueCall, Partition, Tensors
from tensorwright.ops import AttributeValue, TensorType
from tensorwright.runtime import default_cache
from tensorwright.schedule import (
    LayoutKind,
    MemoryLayout,
    Schedule,
    Scope,
    Workload,
    format_schedule,
)

_HEAD = struct.Struct("<I")
_KINDS = {
    **EXPRESSION_KINDS,
    **base.kinds_of(
        Signature,
        base.Threads,
        base.Grid,
        loop.Parameter,
        loop.Buffer,
        loop.Packing,
        loop.Role,
        Scope,
    ),
    **base.kinds_of(MemoryLayout, LayoutKind),
}
SOURCES = ("base", "machine_code", "expr", "schedule", "loop", "codegen", "artifacts")
"""The folders whose code turns a trace into object code."""


def build_cached(workload: Workload, schedule: Schedule, target: base.Target) -> Kernel:
    """As `build_kernel`, but a kernel in the cache on the disk is read (knob `kernel_cache`).

    If the knob `dump` shows a stage of the build, the kernel is built again.
    """
    with base.dump_subject(workload.name):
        key = _key_of(workload, schedule, target)
        return _cached(key, target, lambda: build_kernel(workload, schedule, target))


def build_program_cached(program: loop.LoopProgram, target: base.Target) -> Kernel:
    """As `build_program`, through the cache as by `build_cached`."""
    with base.dump_subject(program.name):
        sizes = (f"{size}: {size.constraints}" for size in loop.sizes_of_program(program))
        key = _key(target, str(program), *sizes)
        return _cached(key, target, lambda: build_program(program, target))


def _cached(key: str, target: base.Target, make: Callable[[], Kernel]) -> Kernel:
    if not _is_used():
        return make()
    kept = _find(key, target)
    if kept is not None:
        return kept
    kernel = make()
    default_cache().put(key, pack_kernel(kernel))
    return kernel


def find_kernel(workload: Workload, schedule: Schedule, target: base.Target) -> Kernel | None:
    """The kernel from the cache; None if `build_cached` would build it."""
    return _find(_key_of(workload, schedule, target), target) if _is_used() else None


def _is_used() -> bool:
    """Whether kernels come from the cache; not if the knob `dump` shows a stage of a build."""
    return base.knobs.KERNEL_CACHE.get() and not base.is_dumped("schedule", "loop", "source", "asm")


def _find(key: str, target: base.Target) -> Kernel | None:
    start = time.perf_counter()
    entry = default_cache().get(key)
    if entry is None:
        return None
    return replace(unpack_kernel(entry, target), seconds=time.perf_counter() - start)


def keep_kernel(
    workload: Workload, schedule: Schedule, target: base.Target, kernel: Kernel
) -> None:
    """Put a kernel that was built elsewhere into the cache (knob `kernel_cache`)."""
    if base.knobs.KERNEL_CACHE.get():
        default_cache().put(_key_of(workload, schedule, target), pack_kernel(kernel))


def compiler_digest() -> str:
    """A digest of the sources that turn a trace into object code."""
    return base.source_digest(*SOURCES)


def _key_of(workload: Workload, schedule: Schedule, target: base.Target) -> str:
    return _key(target, workload.key, format_schedule(schedule))


def _key(target: base.Target, *subject: str) -> str:
    parts = (compiler_digest(), backend_of(target).key(), target.key, *subject)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def pack_kernel(kernel: Kernel) -> bytes:
    """A kernel as bytes, without its target."""
    head = json.dumps(base.to_data(kernel.signature)).encode()
    return _HEAD.pack(len(head)) + head + kernel.object_code


def unpack_kernel(entry: bytes, target: base.Target) -> Kernel:
    """The inverse of `pack_kernel`, for the target of the kernel."""
    (size,) = _HEAD.unpack_from(entry)
    end = _HEAD.size + size
    signature: Signature = base.from_data(json.loads(entry[_HEAD.size : end]), _KINDS)
    return Kernel(entry[end:], signature, 0.0, target)


def program_of(graph: Tensors, node: Node, kind: base.TargetKind) -> loop.LoopProgram | None:
    """The loop nest of an opaque node; None if only the host can run it."""
    types = tuple(graph.types[name] for name in node.inputs)
    return _program(node.operator, types, node.attributes, kind)


@lru_cache(maxsize=256)
def _program(
    operator: str,
    types: tuple[TensorType, ...],
    attributes: tuple[tuple[str, AttributeValue], ...],
    kind: base.TargetKind,
) -> loop.LoopProgram | None:
    try:
        program = loop.loop_algorithm(operator, types, dict(attributes), kind)
        return None if program is None else loop.run_passes(program)
    except base.UndecidedError:  # the loop algorithm needs sizes as numbers; NumPy takes all
        return None


def opaque_programs(partition: Partition, kind: base.TargetKind) -> Mapping[str, loop.LoopProgram]:
    """The different loop algorithms of a network by their texts, in the order of first use."""
    nodes = (step.node for step in partition.steps if isinstance(step, OpaqueCall))
    programs = (program_of(partition.tensors, node, kind) for node in nodes)
    return {str(program): program for program in programs if program is not None}


def build_opaque(partition: Partition, target: base.Target) -> dict[str, Kernel]:
    """The kernels of a network's loop algorithms by their texts, built through the cache."""
    programs = opaque_programs(partition, target.kind).items()
    return {
        text: build_program_cached(loop.run_target_passes(program, target), target)
        for text, program in programs
    }
