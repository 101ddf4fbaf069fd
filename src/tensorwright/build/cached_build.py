"""Build through the kernel cache: a kernel that was built before is only read.

The key of an entry consists of everything that determines a kernel: workload and trace, or a
program; the target, the back end's compiler and this package's sources.  The entry holds the
kernel's signature as JSON and its object code.
"""

from __future__ import annotations

import hashlib
import json
import struct
import time
from collections.abc import Callable

from tensorwright.base import (
    Grid,
    Target,
    Threads,
    dump_subject,
    from_data,
    is_dumped,
    kinds_of,
    knobs,
    source_digest,
    to_data,
)
from tensorwright.build.backend import backend_of
from tensorwright.build.kernel import Kernel, build_kernel, build_program
from tensorwright.codegen import Signature
from tensorwright.expr import EXPRESSION_KINDS
from tensorwright.loop import Buffer, LoopProgram, Packing, Parameter, Role
from tensorwright.runtime import default_cache
from tensorwright.schedule import LayoutKind, MemoryLayout, Scope, Trace, Workload, format_trace

_HEAD = struct.Struct("<I")
_KINDS = {
    **EXPRESSION_KINDS,
    **kinds_of(Signature, Threads, Grid, Parameter, Buffer, Packing, Role, Scope),
    **kinds_of(MemoryLayout, LayoutKind),
}
SOURCES = ("base", "machine_code", "expr", "schedule", "loop", "codegen", "build")
"""The folders whose code turns a trace into object code."""


def build_cached(workload: Workload, trace: Trace, target: Target) -> Kernel:
    """As `build_kernel`, from the cache on the disk if it is there (knob `kernel_cache`).

    If the knob `dump` asks for a stage of the kernel, it is built again.
    """
    with dump_subject(workload.name):
        key = _key_of(workload, trace, target)
        return _cached(key, target, lambda: build_kernel(workload, trace, target))


def build_program_cached(program: LoopProgram, target: Target) -> Kernel:
    """As `build_program`, through the cache in the same way."""
    with dump_subject(program.name):
        key = _key(target, str(program))
        return _cached(key, target, lambda: build_program(program, target))


def _cached(key: str, target: Target, make: Callable[[], Kernel]) -> Kernel:
    if not knobs.KERNEL_CACHE.get() or is_dumped("schedule", "loop", "source", "asm"):
        return make()
    start = time.perf_counter()
    cache = default_cache()
    entry = cache.get(key)
    if entry is not None:
        signature, object_code = _unpack(entry)
        return Kernel(object_code, signature, time.perf_counter() - start, target)
    kernel = make()
    cache.put(key, _pack(kernel))
    return kernel


def keep_kernel(workload: Workload, trace: Trace, target: Target, kernel: Kernel) -> None:
    """Let `build_cached` find a kernel that was built elsewhere (knob `kernel_cache`)."""
    if knobs.KERNEL_CACHE.get():
        default_cache().put(_key_of(workload, trace, target), _pack(kernel))


def compiler_digest() -> str:
    """A digest of the sources that turn a trace into code."""
    return source_digest(*SOURCES)


def _key_of(workload: Workload, trace: Trace, target: Target) -> str:
    return _key(target, workload.key, format_trace(trace))


def _key(target: Target, *subject: str) -> str:
    parts = (compiler_digest(), backend_of(target).key(), target.key, *subject)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _pack(kernel: Kernel) -> bytes:
    head = json.dumps(to_data(kernel.signature)).encode()
    return _HEAD.pack(len(head)) + head + kernel.object_code


def _unpack(entry: bytes) -> tuple[Signature, bytes]:
    (size,) = _HEAD.unpack_from(entry)
    end = _HEAD.size + size
    signature: Signature = from_data(json.loads(entry[_HEAD.size : end]), _KINDS)
    return signature, entry[end:]
