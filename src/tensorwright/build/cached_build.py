"""Build through the kernel cache, without doing the passes and the code again.

The cache of `runtime` is keyed by the text of the code; here an entry is keyed by what that text
comes from: workload, trace, target and this compiler's own sources.  A hit costs one lowering, for
the packings of the constants.
"""

from __future__ import annotations

import functools
import hashlib
import json
import struct
import time
from pathlib import Path

from tensorwright.base import Target, knobs
from tensorwright.build.backend import backend_of
from tensorwright.build.kernel import Kernel, build_kernel
from tensorwright.codegen import Signature
from tensorwright.loop import lower
from tensorwright.runtime import default_cache
from tensorwright.schedule import Trace, Workload, format_trace, replay, state_of

_HEAD = struct.Struct("<I")
_SOURCES = ("base", "expr", "schedule", "loop", "codegen", "build")


def build_cached(workload: Workload, trace: Trace, target: Target) -> Kernel:
    """As `build_kernel`, from the cache on the disk if it is there (knob `kernel_cache`)."""
    if not knobs.KERNEL_CACHE.get():
        return build_kernel(workload, trace, target)
    cache = default_cache()
    key = _key(workload, trace, target)
    found = cache.get(key)
    if found is not None:
        return _restore(workload, trace, found)
    built = build_kernel(workload, trace, target)
    cache.put(key, _pack(built))
    return built


@functools.cache
def compiler_digest() -> str:
    """A digest of the sources that turn a trace into code."""
    digest = hashlib.sha256()
    root = Path(__file__).parent.parent
    for folder in _SOURCES:
        for path in sorted((root / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _key(workload: Workload, trace: Trace, target: Target) -> str:
    parts = (
        compiler_digest(),
        backend_of(target).key(),
        target.key,
        workload.key,
        format_trace(trace),
    )
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _pack(built: Kernel) -> bytes:
    head = json.dumps(
        {
            "symbol": built.symbol,
            "workspace": built.signature.workspace_bytes,
            "local_workspace": built.signature.local_workspace_bytes,
        }
    ).encode()
    return _HEAD.pack(len(head)) + head + built.object_code


def _restore(workload: Workload, trace: Trace, data: bytes) -> Kernel:
    start = time.perf_counter()
    (size,) = _HEAD.unpack_from(data)
    head = json.loads(data[_HEAD.size : _HEAD.size + size])
    state = replay(state_of(workload), trace)
    parameters = lower(state).parameters
    signature = Signature(head["symbol"], parameters, head["workspace"], head["local_workspace"])
    return Kernel(data[_HEAD.size + size :], signature, time.perf_counter() - start)
