"""Packed panels: the columns of an operand that a column of tiles reads, copied to lie together.

A product of two activations reads its wide operand one row after the other, each row in another
page, or many of them in one set of the first cache.  If several tiles of rows then use the same
columns, a thread copies these columns first and all its tiles read the copy.

Source:  the packing of B in Goto, van de Geijn: Anatomy of high-performance matrix multiplication,
ACM TOMS 2008.
"""

from __future__ import annotations

from tensorwright.base import CpuTarget
from tensorwright.expr import (
    Axis,
    Compute,
    Load,
    Value,
    Var,
    free_vars,
    loads_of,
    terms_of,
)
from tensorwright.schedule import (
    CacheRead,
    ComputeAt,
    ComputeInline,
    Scope,
    Split,
    Vectorize,
)
from tensorwright.tuning.space.axes.accesses import (
    bytes_along,
    dimension_last,
    elements_of,
    group_size,
    has_reuse,
    lanes_for,
    points,
    reads_along,
    stride_along,
)
from tensorwright.tuning.space.axes.anchor import Anchor
from tensorwright.tuning.space.axes.cache_sets import lines_held
from tensorwright.tuning.space.axes.roles import filled_lanes, find_roles
from tensorwright.tuning.space.sketch import SketchBuilder

_APART_BYTES = 2048  # rows further apart than that are copied; measured on Sapphire Rapids
_MANY = 128  # rows that need more pages than a first-level TLB holds
_FEW_RESULTS = 16  # of each element, for which it is not copied into another order
_USES = 24  # rows of the result that are worth the copy
_TIMES = 8  # the lines of a panel, as a multiple of those of the first cache
_WIDE = 64  # bytes of vectors that hide that; narrower ones lose a sixth of the speed, on Zen 4


def pack_operand(
    builder: SketchBuilder,
    anchor: str,
    stored: str,
    lanes: Axis,
    rows: Axis | None,
    target: CpuTarget,
) -> str:
    """Let the anchor read a copy of its wide operand; the name of the copy, "" if none pays.

    The operand is an input, contiguous along the lanes and the same for all rows.
    """
    state = builder.state
    stage = state.stage(anchor)
    loads = tuple(loads_of(stage.tensor.body))
    operands = Anchor(state, anchor, stored).operands
    if rows is None or rows.length < _USES:
        return ""
    folded = max(stage.tensor.reduce_axes, key=lambda axis: axis.length)
    for load, operand in zip(loads, operands, strict=True):
        name = load.source.name
        if operand.is_constant or state.has_stage(name):
            continue
        if stride_along(operand.load, lanes.var) != 1 or reads_along(operand.load, rows.var):
            continue
        apart_bytes = bytes_along(operand.load, folded.var)
        lines = folded.length
        is_crowded = target.vector_bytes < _WIDE and (
            _TIMES * lines_held(apart_bytes, target) < lines
        )
        is_read_once = sum(other.source.name == name for other in loads) == 1
        if (apart_bytes > _APART_BYTES or is_crowded) and is_read_once and lines >= _MANY:
            step = CacheRead(name, anchor, Scope.GLOBAL)
            builder.do(step)
            return step.copy
    return ""


def transpose_operands(builder: SketchBuilder, anchor: str, stored: str, width: int) -> None:
    """Make a transposed copy of an operand that is read across its rows along the last axis.

    The last axis here is the last one that fills half a vector, and no other axis may have better
    vectors already.
    """
    state = builder.state
    axes = state.stage(stored).tensor.axes
    long_axes = [axis for axis in axes if 2 * axis.length >= width]
    last = long_axes[-1] if long_axes else axes[-1]
    link = Anchor(state, anchor, stored)
    operands = link.operands
    if last.extent == 1 or len(operands) < 2 or _has_vectors(link, last, width):
        return
    links = dict(zip(loads_of(link.tensor.body), operands, strict=True))
    copied: set[str] = set()  # a copy serves all reads of the operand by the anchor
    for load, operand in links.items():
        if operand.is_constant or stride_along(operand.load, last.var) in (0, 1):
            continue
        if load.source.name in copied:
            continue
        if group_size(operand.load, last.var) or _is_folded_in_rows(load, link.tensor):
            continue
        across = [n for n, i in enumerate(operand.load.indices) if last.var in free_vars(i)]
        rank = len(load.indices)
        if (
            len(across) != 1
            or dict(terms_of(operand.load.indices[across[0]])).get((last.var,)) != 1
        ):
            continue  # neighbours would be apart in the copy, too
        if across[0] != rank - 1:
            order = dimension_last(rank, across[0])
            builder.do(CacheRead(load.source.name, anchor, Scope.GLOBAL, order))
            copied.add(load.source.name)


def _is_folded_in_rows(load: Load, tensor: Compute) -> bool:
    """Whether an operand is folded along its rows, for few results each: a copy takes longer.

    Whole rows are folded so: each of their elements is spread over few columns of the other
    operand.
    """
    elements = elements_of(load.source)
    axes = [axis for axis in tensor.reduce_axes if axis.extent != 1]
    folded = [axis for axis in axes if stride_along(load, axis.var) == 1]
    is_whole = any(load.indices[-1] == axis.var for axis in folded)
    return bool(folded) and points(tensor) < (_FEW_RESULTS if is_whole else 2) * elements


def _has_vectors(anchor: Anchor, last: Axis, width: int) -> bool:
    """Whether lanes along another axis than the last, stored across its rows, are better than a
    copy.

    They are better if the last axis fills fewer lanes, because its sums are under a mask.  If the
    result is stored across the axis of the copy as well, it must fill many more.
    """
    roles = find_roles(anchor, width)
    if roles is None or roles.lanes is last:
        return False
    is_across = last is not anchor.axes[-1]
    return (1 + is_across) * filled_lanes(roles, width) > min(last.length, width)


def inline_transposed(builder: SketchBuilder, anchor: str, stored: str, width: int) -> None:
    """Read the narrow operand of a product directly instead of a transposed copy of it.

    Its elements are spread over all lanes one by one, so their order costs nothing.
    """
    state = builder.state
    product = Anchor(state, anchor, stored)
    roles = find_roles(product, width)
    if roles is None or not has_reuse(product.tensor):
        return
    for operand in product.operands:
        name = operand.load.source.name
        is_narrow = not reads_along(operand.load, roles.lanes.var)
        if is_narrow and state.has_stage(name) and _permutes(state.stage(name).tensor.body):
            builder.do(ComputeInline(name))


def _permutes(body: Value) -> bool:
    """Whether a stage copies a tensor with its dimensions in another order."""
    return isinstance(body, Load) and all(isinstance(i, Var) or i == 0 for i in body.indices)


def place_packed_panel(
    builder: SketchBuilder, copy: str, host: str, loop: str, target: CpuTarget
) -> None:
    """Copy a panel at a loop of the stage that is stored, vector by vector."""
    stage = builder.state.stage(copy)
    last = stage.tensor.axes[-1].name
    builder.do(Split(copy, last, (lanes_for(target, stage),)))
    builder.do(Vectorize(copy, f"{last}_i"))
    builder.do(ComputeAt(copy, host, loop))
