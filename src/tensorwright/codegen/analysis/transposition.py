"""A transposed copy of a matrix, in blocks that are transposed in registers.

    for k in 0..n:  for i in 0..w @vectorize:  T[.., k, i] = S[.., i, k]

Each step reads w columns of a row of S for every lane i, transposes the w vectors in registers and
writes them. A gather would touch a cache line for each element, and every line w times.
"""

from __future__ import annotations

from dataclasses import dataclass

from tensorwright.base import CpuTarget
from tensorwright.codegen.analysis.facts import Facts
from tensorwright.codegen.analysis.indices import flat_index
from tensorwright.expr import Index, Load, Var, free_vars, terms_of
from tensorwright.loop import Buffer, For, Store
from tensorwright.schedule import ForKind


@dataclass(frozen=True, slots=True)
class Transposition:
    """A loop nest that copies a matrix transposed.

    along   the loop along the rows of the source      across  the vector loop, `width` long
    """

    along: For
    across: For
    store: Store
    load: Load
    width: int


def find_transposition(loop: For, facts: Facts, target: CpuTarget) -> Transposition | None:
    """The transposed copy that a serial loop is; None for other loops."""
    across = loop.body
    if not (isinstance(across, For) and isinstance(across.body, Store)):
        return None
    if facts.is_open(loop) or facts.is_open(across):
        return None
    store = across.body
    load = store.value
    if not isinstance(load, Load) or load.source == store.buffer:
        return None
    if facts.kind(across) is not ForKind.VECTOR or load.dtype.size_bytes not in (4, 8):
        return None
    width = target.vector_bytes // load.dtype.size_bytes
    if facts.extent(across) != width or facts.extent(loop) % width or width < 4:
        return None
    read = _steps(load.source, load.indices, loop.var, across.var)
    written = _steps(store.buffer, store.indices, loop.var, across.var)
    if read is None or written is None or read[0] != 1 or written[1] != 1:
        return None
    return (
        None
        if read[1] in (0, 1) or not written[0]
        else Transposition(loop, across, store, load, width)
    )


def _steps(
    buffer: Buffer, indices: tuple[Index, ...], along: Var, across: Var
) -> tuple[int, int] | None:
    """The distances of neighbours along two variables; None if one is not constant."""
    steps = {along: 0, across: 0}
    for monomial, coefficient in terms_of(flat_index(buffer, indices)):
        moving = [var for var in steps if var in free_vars(*monomial)]
        if moving and len(monomial) > 1:
            return None
        for var in moving:
            if monomial[0] != var:
                return None
            steps[var] = coefficient
    return steps[along], steps[across]
