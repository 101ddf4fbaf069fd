"""Refuse a program that a graphics processor has not enough threads, memory or instructions for."""

from __future__ import annotations

from math import prod

from tensorwright.base import GpuApi, GpuTarget, UnsupportedError
from tensorwright.expr import Index
from tensorwright.loop.addresses import room_of
from tensorwright.loop.ir import LaneFold, LoopProgram, StartCopy
from tensorwright.loop.launches import LaunchNest, launches_of
from tensorwright.loop.traversal import walk
from tensorwright.schedule import ForKind

_CUDA_EXTENTS = {
    ForKind.BLOCK_Y: 65_535,
    ForKind.BLOCK_Z: 65_535,
    ForKind.THREAD_Z: 64,
}
"""The most of some indices.

Source:  NVIDIA, CUDA C++ Programming Guide, technical specifications per compute capability.
"""
_FIRST_WITH_COPIES = 80
"""The compute capability from which copies into shared memory go on by themselves."""


def check_group_limits(program: LoopProgram, target: GpuTarget) -> LoopProgram:
    """The program, if each of its launches may run on the target.

    Raises:  UnsupportedError for too many threads in a group, too large an index, more shared
             memory than a group may have, lanes that are in no warp, and copies in flight where the
             target has none.
    """
    for nest in launches_of(program).nests:
        _check(program, nest, target)
    return program


def _check(program: LoopProgram, nest: LaunchNest, target: GpuTarget) -> None:
    threads = prod((loop.extent for loop in nest.threads), start=1)
    _need(program, target, "threads in a group", threads, target.threads_per_block)
    bytes_of = (room_of(buffer) * buffer.dtype.size_bytes for buffer in nest.shared)
    shared: Index = sum(bytes_of, start=0)
    most = target.opt_in_shared_bytes
    _need(program, target, "bytes of shared memory in a group", shared, most)
    if target.api is GpuApi.CUDA:
        for kind, extent in _CUDA_EXTENTS.items():
            _need(program, target, f"iterations of {kind.value}", nest.extent(kind), extent)
    for part in walk(nest.body):
        if isinstance(part, LaneFold):
            _need(program, target, "lanes that fold", part.lanes, target.warp)
        if isinstance(part, StartCopy) and not _copies_by_itself(target):
            reason = f"copies that go on by themselves are not in {target}"
            raise _refused(program, reason, "pipeline with registers")


def _copies_by_itself(target: GpuTarget) -> bool:
    number = "".join(filter(str.isdigit, target.arch))
    return target.api is GpuApi.CUDA and bool(number) and int(number) >= _FIRST_WITH_COPIES


def _need(program: LoopProgram, target: GpuTarget, what: str, count: Index, most: int) -> None:
    if isinstance(count, int) and count > most:
        reason = f"{count} {what} are more than the {most} of {target}"
        raise _refused(program, reason, "use smaller tiles")


def _refused(program: LoopProgram, reason: str, remedy: str) -> UnsupportedError:
    where = f"program {program.name}"
    return UnsupportedError(stage="loop", where=where, reason=reason, remedy=remedy)
