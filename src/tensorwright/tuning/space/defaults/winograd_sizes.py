"""The roles of a convolution's axes in Winograd's algorithm.

The sizes that Winograd's sketches leave open, and the usual ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from tensorwright.base import CpuTarget
from tensorwright.expr import Axis, Index, Var, free_vars
from tensorwright.schedule import Convolution, ScheduleState, Stage
from tensorwright.tuning.space.accesses import bytes_of, count_of, lanes_for, loads_from
from tensorwright.tuning.space.defaults.tile_sizes import default_tile
from tensorwright.tuning.space.register_tile import CPU_LIMITS, accumulators
from tensorwright.tuning.space.roles import AxisRoles
from tensorwright.tuning.space.sketch import Kind, SketchBuilder, divisors


class Portion(Enum):
    """The portion that is computed at once of the stages between the data and the outputs."""

    BANDS = "bands"
    WHOLE = "whole"


@dataclass(frozen=True, slots=True)
class ConvolutionAxes:
    """Axes of the convolution by their roles, and the axes of the stored stage that they are.

    rows, columns  the directions in which the kernel slides
    lanes          the last axis: output channels
    blocks         blocks of output channels, if the layout has them
    slices         the last of the other axes along which there is more than one element: depth,
                   or images; they share the kernel
    is_sliding     whether the kernel goes over several slices, which then share data
    batch          all others
    """

    rows: Axis
    columns: Axis
    lanes: Axis
    blocks: Axis | None
    slices: Axis | None
    is_sliding: bool
    batch: tuple[Axis, ...]
    stored: dict[Var, str]


def find_axes(
    state: ScheduleState, anchor: Stage, convolution: Convolution
) -> ConvolutionAxes | None:
    """The axes; None if the stage that stores the output does not have those of the convolution."""
    stored = state.stage(state.outputs[0]).tensor
    axes = anchor.tensor.axes
    links = {axis.var: axis.var for axis in axes}
    if stored.name != anchor.name:
        loads = loads_from(stored, anchor.name)
        if len({load.indices for load in loads}) != 1:
            return None
        own = {axis.var for axis in stored.axes}
        pairs = zip(axes, loads[0].indices, strict=True)
        links = {axis.var: i for axis, i in pairs if isinstance(i, Var) and i in own}
        if len(set(links.values())) != len(own):
            return None
    rows, columns, lanes = convolution.rows.out, convolution.columns.out, axes[-1]
    if links.get(lanes.var) != stored.axes[-1].var:
        return None
    others = [axis for axis in axes if axis not in (rows, columns, lanes)]
    if any(axis.extent != 1 and axis.var not in links for axis in (rows, columns, *others)):
        return None
    if rows.var not in links or columns.var not in links:
        return None
    roles = AxisRoles.among(axes, lanes, (convolution.kernel,), (convolution.data,))
    blocks = [axis for axis in others if axis not in roles.rows and axis.extent != 1]
    if len(blocks) > 1:
        return None
    slices = [axis for axis in others if axis in roles.rows and axis.extent != 1][-1:]
    batch = tuple(axis for axis in others if axis not in (*blocks, *slices))
    names = {var: link.name for var, link in links.items()}
    block, piece = (each[0] if each else None for each in (blocks, slices))
    sliding = piece is not None and any(
        piece.var in free_vars(index) and index != piece.var for index in convolution.data.indices
    )
    return ConvolutionAxes(rows, columns, lanes, block, piece, sliding, batch, names)


@dataclass(frozen=True, slots=True)
class Case:
    """One way to compute one convolution, before its loops are arranged.

    name    the convolution              tile   outputs of a tile along each direction
    stored  what is stored at the end    width  elements of a vector
    """

    name: str
    tile: int
    portion: Portion
    roles: ConvolutionAxes
    stored: str
    width: int
    target: CpuTarget

    @classmethod
    def of(
        cls,
        state: ScheduleState,
        name: str,
        tile: int,
        portion: Portion,
        roles: ConvolutionAxes,
        target: CpuTarget,
    ) -> Case:
        """The case of a state in which the algorithm has replaced the tensor."""
        width = lanes_for(target, state.stage(f"{name}_product"))
        return cls(name, tile, portion, roles, state.outputs[0], width, target)

    @property
    def product(self) -> str:
        """The stage of the products."""
        return f"{self.name}_product"

    @property
    def tile_rows(self) -> int:
        """The number of rows of tiles."""
        return -(-self.roles.rows.length // self.tile)

    @property
    def tile_columns(self) -> int:
        """The number of columns of tiles."""
        return -(-self.roles.columns.length // self.tile)

    @property
    def slice_count(self) -> int:
        """The number of slices that share the kernel."""
        return 1 if self.roles.slices is None else self.roles.slices.length

    @property
    def has_many_lanes(self) -> bool:
        """Whether the last axis takes more than one vector."""
        return self.roles.lanes.length > self.width

    @property
    def vector_count(self) -> int:
        """The number of vectors of output channels."""
        lanes = -(-self.roles.lanes.length // self.width)
        blocks = self.roles.blocks
        return lanes if lanes > 1 or blocks is None else blocks.length


_MOST_BAND = 8
_MOST_MORE = 4
_MOST_ROWS = 7
_BANDS = 8  # bands that balance well among threads


Size = TypeVar("Size", bound=Index)


@dataclass(frozen=True, slots=True)
class Sizes(Generic[Size]):
    """Decisions, or plain numbers if there is no choice.

    slices, band              of slices and of rows of tiles that are taken through all stages
    vectors, length           of a register tile: vectors of channels, tiles along a row
    more_slices, more_rows    of a register tile: slices, and rows of tiles
    """

    slices: Size
    band: Size
    vectors: Size
    length: Size
    more_slices: Size
    more_rows: Size


def choose_sizes(builder: SketchBuilder, case: Case) -> Sizes[Index]:
    """Open the decisions of a case whose product has been cached."""
    usual = _by_heuristic(builder.state, case)
    node = case.product
    slices: Index = case.slice_count
    band: Index = case.tile_rows
    more_slices: Index
    more_rows: Index
    deep, tall = case.slice_count, case.tile_rows
    if case.portion is Portion.WHOLE:
        sizes = divisors(deep, _MOST_MORE)
        more_slices = builder.choose("more_slices", sizes, usual.more_slices, node=node)
        sizes = tuple(range(1, min(_MOST_ROWS, tall) + 1))
        more_rows = builder.choose("more_rows", sizes, usual.more_rows, node=node)
    else:
        pairs = tuple((n, more) for n in divisors(deep, deep) for more in divisors(n, _MOST_MORE))
        names, rule = ("slices", "more_slices"), (usual.slices, usual.more_slices)
        slices, more_slices = builder.choose_rows(names, pairs, rule, Kind.PARALLEL, node)
        bands = (n for n in range(1, min(_MOST_BAND, tall) + 1) if -(-tall // n) * n - tall <= 1)
        pairs = tuple((n, more) for n in bands for more in divisors(n, _MOST_MORE))
        names, rule = ("band", "more_rows"), (usual.band, usual.more_rows)
        band, more_rows = builder.choose_rows(names, pairs, rule, Kind.PARALLEL, node)
    counts = tuple(n for n in (1, 2, 3, 4) if n <= case.vector_count)
    vectors = builder.choose("columns", counts, usual.vectors, node=node)
    lengths = (*divisors(case.tile_columns, CPU_LIMITS.rows), usual.length)
    length = builder.choose("rows", lengths, usual.length, node=node)
    builder.limit(vectors * length * more_slices * more_rows, accumulators(case.target))
    return Sizes(slices, band, vectors, length, more_slices, more_rows)


def _by_heuristic(state: ScheduleState, case: Case) -> Sizes[int]:
    if case.portion is Portion.WHOLE:
        vectors, length, slices, rows = _whole_tile(case)
        return Sizes(case.slice_count, case.tile_rows, vectors, length, slices, rows)
    slices, band = _band_by_rule(state, case)
    if case.slice_count > 1:
        vectors, length, more = _tile(case, slices)
        return Sizes(slices, band, vectors, length, max(divisors(slices, more)), 1)
    vectors, length, _ = _tile(case, 1)
    more = 1 if band == 1 else _tile(case, band)[2]
    return Sizes(slices, band, vectors, length, 1, max(divisors(band, more)))


def _tile(case: Case, more: int) -> tuple[int, int, int]:
    return default_tile(case.vector_count, case.tile_columns, more, case.target)


def _whole_tile(case: Case) -> tuple[int, int, int, int]:
    """The register tile if stages are computed whole: vectors, length, slices, rows.

    All tiles at once if registers hold them: then each weight is read once.
    """
    area = case.tile_columns * case.tile_rows
    free = case.target.vector_registers - 4
    for slices in sorted(divisors(case.slice_count, _MOST_MORE), reverse=True):
        if area * slices <= free:
            vectors = min(free // (area * slices), 2, case.vector_count)
            return vectors, case.tile_columns, slices, case.tile_rows
    if case.slice_count > 1:
        vectors, length, more = _tile(case, case.slice_count)
        return vectors, length, max(divisors(case.slice_count, more)), 1
    vectors, length, more = _tile(case, case.tile_rows)
    return vectors, length, 1, more


def _band_by_rule(state: ScheduleState, case: Case) -> tuple[int, int]:
    """Slices and rows of tiles of a band.

    Weights that stay in the second cache allow bands of one row; others are read again for
    every band, which is then as high as that cache allows.  Slices share weights too.  Where the
    kernel goes over several, they also share their data's transform: then many in a band pay even
    if they take more than that cache, as long as there are enough bands for the threads.
    """
    name, l2_bytes = case.name, case.target.l2_bytes
    weights = weight_bytes(state, name)
    stages = (state.stage(f"{name}_{part}").tensor for part in ("columns", "product"))
    images = count_of(case.roles.batch)
    row_bytes = sum(map(bytes_of, stages)) // (images * case.slice_count * case.tile_rows)
    rows = l2_bytes // 2 // row_bytes
    is_small = weights <= l2_bytes // 2
    if is_small and not case.roles.is_sliding:
        return 1, 1
    most = 4 * rows if case.roles.is_sliding else rows
    enough = [
        n
        for n in divisors(case.slice_count, max(1, most))
        if (case.tile_rows * case.slice_count // n) >= _BANDS
    ]
    slices = max(enough, default=1)
    if is_small or slices > 1:
        return slices, 1
    return slices, max(1, min(_MOST_BAND, case.tile_rows // 2, rows))


def weight_bytes(state: ScheduleState, name: str) -> int:
    """The bytes of the transformed kernel of a convolution."""
    return bytes_of(next(each for each in state.inputs if each.name == f"{name}_kernel"))
