"""The roles of a convolution's axes in Winograd's algorithm."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tensorwright.base import CpuTarget
from tensorwright.expr import Axis, Var, free_vars
from tensorwright.schedule import Convolution, ScheduleState, Stage
from tensorwright.tuning.space.axes.accesses import lanes_for, loads_from
from tensorwright.tuning.space.axes.roles import AxisRoles


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
