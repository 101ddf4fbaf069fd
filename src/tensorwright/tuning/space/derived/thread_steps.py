"""Steps that the generators for graphics processors share: loops become blocks and threads."""

from __future__ import annotations

from tensorwright.expr import Index
from tensorwright.schedule import Bind, ForKind, Fuse, Split
from tensorwright.tuning.space.sketch import SketchBuilder


def bind_fused(builder: SketchBuilder, name: str, loops: tuple[str, ...], kind: ForKind) -> str:
    """Make one loop of neighbouring ones and bind it; the name of the loop."""
    loop = fused(builder, name, loops)
    builder.do(Bind(name, loop, kind))
    return loop


def deal_out(builder: SketchBuilder, name: str, loops: tuple[str, ...], threads: Index) -> str:
    """Deal the iterations of outer loops out to blocks of so many threads; the threads' loop."""
    split = Split(name, fused(builder, name, loops), (threads,))
    builder.do(split)
    blocks, inner = split.children
    builder.do(Bind(name, blocks, ForKind.BLOCK_X))
    builder.do(Bind(name, inner, ForKind.THREAD_X))
    return inner


def fused(builder: SketchBuilder, name: str, loops: tuple[str, ...]) -> str:
    """Make one loop of neighbouring ones; its name."""
    if len(loops) == 1:
        return loops[0]
    fuse = Fuse(name, loops)
    builder.do(fuse)
    return fuse.fused
