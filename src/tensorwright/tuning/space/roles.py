"""The role of each axis of a stored result in its reduction: lanes, columns, rows, batch.

One analysis for the register tiles of the heuristics, the derived sketches and Winograd's
stages: it follows from which operands move along which axis.

A reduction and the stage that stores it: its operands, and the axes that move together.

A result in blocks of channels that is stored as rows of channels is read as y[i // 16, j, i % 16]:
the axis i moves two axes of the reduction, the second by ones.  Tiles along i that are part of a
block, or whole blocks, compute only stored elements.

How many rows of a tile the first cache holds if their distance maps them to few of its sets.

A tile reads a line of each of its rows, and reads it again for every element of that line.  Rows
that are a multiple of 4096 bytes apart have their lines in one set, which has as many ways as the
cache has pages: with more rows than that every read misses. A concatenation along such an axis took
200 times as long as its transpose.

Source:  the index of a first cache lies within a page on x86-64 and most others, so that a set is
chosen while the address is translated; Drepper, What every programmer should know about memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from math import gcd

from tensorwright import expr
from tensorwright.base import LINE_BYTES, CpuTarget
from tensorwright.schedule import ScheduleState, SplitRelation, Stage
from tensorwright.tuning.space import accesses


@dataclass(frozen=True, slots=True)
class Operand:
    """A read of the reduction, with indices over the axes of the stored stage and its own."""

    load: expr.Load
    is_constant: bool


@dataclass(frozen=True, slots=True)
class Anchor:
    """A reduction, `name`, and the stage that stores its result, `stored`; both may be one."""

    state: ScheduleState
    name: str
    stored: str

    @property
    def tensor(self) -> expr.Compute:
        """The tensor of the reduction."""
        return self.state.stage(self.name).tensor

    @property
    def axes(self) -> tuple[expr.Axis, ...]:
        """The axes of the stored stage."""
        return self.state.stage(self.stored).tensor.axes

    @property
    def link(self) -> tuple[expr.Index, ...]:
        """The indices with which the stored stage reads the reduction, or its own axes."""
        if self.name == self.stored:
            return tuple(axis.var for axis in self.axes)
        return accesses.loads_from(self.state.stage(self.stored).tensor, self.name)[0].indices

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The reads, in terms of the stored element."""
        bounds = {
            a.var: expr.Range.of_extent(a.extent) for a in (*self.axes, *self.tensor.reduce_axes)
        }
        mapping: dict[expr.Var, expr.Index] = {}
        if self.name != self.stored:
            mapping = dict(zip((a.var for a in self.tensor.axes), self.link, strict=True))
        seen: list[Operand] = []
        for load in expr.loads_of(self.tensor.body):
            indices = tuple(
                expr.simplify(expr.substitute(i, mapping), bounds) for i in load.indices
            )
            is_constant = load.source.name in self.state.constants
            seen.append(Operand(expr.Load(load.source, indices), is_constant))
        return tuple(seen)

    @property
    def own_axes(self) -> dict[str, tuple[str, ...]]:
        """For each stored axis the axes of the reduction that it moves, the fastest one last."""
        along: dict[str, list[str]] = {}
        fine: dict[str, str] = {}
        for axis, index in zip(self.tensor.axes, self.link, strict=True):
            for atom in accesses.atoms_of((index,)):
                for var in expr.free_vars(atom):
                    names = along.setdefault(var.name, [])
                    names += [] if axis.name in names else [axis.name]
                    if not isinstance(atom, expr.FloorDiv):
                        fine[var.name] = axis.name
        return {
            name: tuple(sorted(names, key=lambda own: own == fine.get(name, names[0])))
            for name, names in along.items()
        }

    def shares_axis(self, one: expr.Axis, other: expr.Axis) -> bool:
        """Whether two stored axes move one axis of the reduction, as its quotient and remainder.

        A tile of several of both would compute all elements between them.
        """
        own = self.own_axes
        return bool({*own.get(one.name, ())} & {*own.get(other.name, ())})

    def block_in(self, axis: expr.Axis) -> int:
        """The blocks of a stored axis: b in y[.. i // b .. i % b]; 0 if none."""
        atoms = _parts(self.link, axis.var)
        digits = [atom for atom in atoms if isinstance(atom, expr.FloorDiv | expr.Mod)]
        sizes = {atom.divisor for atom in digits if atom.dividend == axis.var}
        size = sizes.pop() if len(sizes) == 1 and len(digits) == len(atoms) == 2 else 0
        return size if isinstance(size, int) and size and axis.length % size == 0 else 0

    @property
    def is_tangled(self) -> bool:
        """Whether some axis is read neither as it is nor in blocks, so tiles do not match."""
        for axis in self.axes:
            atoms = _parts(self.link, axis.var)
            is_plain = atoms <= {axis.var}
            is_repeated = len(atoms) == 1 and all(
                (isinstance(atom, expr.FloorDiv) and atom.dividend == axis.var) for atom in atoms
            )
            if not is_plain and not is_repeated and not self.block_in(axis):
                return True
        return False

    def step_along(self, axis: expr.Axis) -> int:
        """The steps of an axis of the reduction along a stored one; 0 if not constant."""
        block = self.block_in(axis)
        moving = (expr.Mod(axis.var, block),) if block else (axis.var,)
        terms = (term for index in self.link for term in expr.terms_of(index))
        steps = {coefficient for monomial, coefficient in terms if monomial == moving}
        return steps.pop() if len(steps) == 1 else 0


def only_fold(state: ScheduleState) -> Stage | None:
    """The reduction of a program of one reduction and one output; None for others."""
    folds = [stage for stage in state.stages if stage.tensor.reduction is not None]
    return folds[0] if len(folds) == len(state.outputs) == 1 else None


def common_group(operands: Iterable[Operand], var: expr.Var) -> int:
    """The group size of all operands that read in groups along a variable; 0 if they differ."""
    sizes = {accesses.group_size(operand.load, var) for operand in operands} - {0}
    return sizes.pop() if len(sizes) == 1 else 0


def axis_of(stage: Stage, loop: str) -> str:
    """The axis of which a loop is a part after splits."""
    for relation in reversed(stage.relations):
        if isinstance(relation, SplitRelation) and loop in relation.children:
            loop = relation.parent
    return loop


def is_aligned(size: int, block: int) -> bool:
    """Whether tiles of a size are part of a block or whole blocks; without blocks (0) all are."""
    return not block or block % size == 0 or size % block == 0


def _parts(indices: tuple[expr.Index, ...], var: expr.Var) -> set[expr.IndexExpr]:
    """The factors of terms of some indices that contain a variable."""
    return {atom for atom in accesses.atoms_of(indices) if var in expr.free_vars(atom)}


PAGE_BYTES = 4096
_OTHER_WAYS = 1  # ways for streamed vectors


def most_rows(anchor: Anchor, axis: expr.Axis, target: CpuTarget) -> int | None:
    """How many neighbours along an axis a tile may read without losing the first; None: any number.

    Constants do not count: they are packed in the order in which they are read.
    """
    limits: list[int] = []
    for operand in anchor.operands:
        apart = accesses.bytes_along(operand.load, axis.var)
        if apart > LINE_BYTES and not operand.is_constant:
            limits.append(lines_held(apart, target))
    return min(limits, default=None)


def lines_held(apart_bytes: int, target: CpuTarget) -> int:
    """The number of lines of such a distance that the first cache holds at once."""
    ways = max(2, target.l1_bytes // PAGE_BYTES - _OTHER_WAYS)
    sets = max(1, PAGE_BYTES // max(gcd(apart_bytes, PAGE_BYTES), LINE_BYTES))
    return ways * sets


class Role(Enum):
    """The role of an axis in a register tile, from the outermost loop of a tile inwards."""

    BATCH = "batch"  # every operand moves along it
    ROWS = "rows"  # the operand of the lanes is used again along it
    COLUMNS = "columns"  # more vectors
    LANES = "lanes"  # the vectors lie along it


@dataclass(frozen=True, slots=True)
class AxisRoles:
    """The axes of a stage by what they are, each group in the order of the stage.

    group        the neighbouring rows that share the vector operand; 0: all
    lanes_group  the neighbouring lanes that share the other operands; 0: all
    lanes_block  the neighbouring lanes that are neighbours in the reduction; 0: all
    """

    lanes: expr.Axis
    columns: tuple[expr.Axis, ...] = ()
    rows: tuple[expr.Axis, ...] = ()
    batch: tuple[expr.Axis, ...] = ()
    group: int = 0
    lanes_group: int = 0
    lanes_block: int = 0

    @classmethod
    def among(
        cls,
        axes: Sequence[expr.Axis],
        lanes: expr.Axis,
        wide: Sequence[expr.Load],
        narrow: Sequence[expr.Load],
    ) -> AxisRoles:
        """The roles of some axes: `wide` operands move along the lanes, `narrow` ones do not."""
        by_role: dict[Role, list[expr.Axis]] = {role: [] for role in Role}
        for axis in axes:
            by_wide = any(accesses.reads_along(load, axis.var) for load in wide)
            by_narrow = any(accesses.reads_along(load, axis.var) for load in narrow)
            role = Role.BATCH
            if axis is lanes:
                role = Role.LANES
            elif narrow and by_wide and not by_narrow:
                role = Role.COLUMNS
            elif not all(accesses.reads_along(load, axis.var) for load in wide):
                role = Role.ROWS
            by_role[role].append(axis)
        axes_of = {role: tuple(own) for role, own in by_role.items()}
        return cls(lanes, axes_of[Role.COLUMNS], axes_of[Role.ROWS], axes_of[Role.BATCH])

    @property
    def column(self) -> expr.Axis | None:
        """The innermost axis of columns; the lanes' own axis, split, may have columns too."""
        return self.columns[-1] if self.columns else None

    @property
    def row(self) -> expr.Axis | None:
        """The innermost axis of rows."""
        return self.rows[-1] if self.rows else None

    @property
    def second_row(self) -> expr.Axis | None:
        """The axis of rows around it; further ones have one element in a tile."""
        return self.rows[-2] if len(self.rows) > 1 else None


_FEW_ROWS = 6  # fewer rows do not hide the load of a vector


def is_scattered(anchor: Anchor, width: int) -> bool:
    """Whether a product is better stored along its own axes than along those of its reader.

    A transposed convolution is stored with its phases interleaved: along the reader's axes the
    kernel changes with every element, and no axis is left for the rows.  A product is read with
    gaps, which a tile would compute needlessly, if its columns become channels of a blocked layout,
    or if its channels and pixels are divided into other groups.  If images of a batch make rows but
    channels are few, lanes are among the rows that only the own axes have.  If they alone make
    rows, a tile uses one element of each line that it reads.
    """
    roles = find_roles(anchor, width)
    if roles is not None:
        tiled = [axis for axis in (roles.lanes, roles.row) if axis is not None]
        if any(anchor.step_along(axis) > 1 for axis in tiled):
            return True
    alone = Anchor(anchor.state, anchor.name, anchor.name)
    own = find_roles(alone, width)
    if own is None:
        return False
    if anchor.is_tangled:
        return True
    shares = accesses.has_reuse(anchor.tensor)
    if roles is None:
        return bool(own.rows) or not shares
    if not shares:
        return False
    rows, own_rows = (accesses.count_of(r.rows) for r in (roles, own))
    is_flat = rows < _FEW_ROWS and 2 * rows <= own_rows
    is_narrow = 2 * roles.lanes.length < width and len(roles.rows) < len(own.rows)
    if is_flat or is_narrow or 2 * filled_lanes(roles, width) <= filled_lanes(own, width):
        return True
    return _reads_lines(alone, own, width) and not _reads_lines(anchor, roles, width)


def _reads_lines(anchor: Anchor, roles: AxisRoles, width: int) -> bool:
    """Whether tiles and sums read all but constants along lines, at least a vector at a time."""
    tiled = (roles.lanes, *roles.columns, *roles.rows[-2:], *anchor.tensor.reduce_axes)
    along = [axis.var for axis in tiled if axis.length >= width]
    loads = [operand.load for operand in anchor.operands if not operand.is_constant]
    return all(
        any(abs(accesses.stride_along(load, var) or 0) == 1 for var in along) for load in loads
    )


def filled_lanes(roles: AxisRoles, width: int) -> int:
    """The number of lanes of a vector that compute stored elements."""
    return min(roles.lanes.length, accesses.vector_within(roles.lanes_block, width))


@lru_cache(maxsize=64)
def find_roles(anchor: Anchor, width: int) -> AxisRoles | None:
    """The roles of the axes of the stored stage in a tile of the anchor; None without lanes.

    width   how many elements fill a vector
    """
    operands = anchor.operands
    axes = [axis for axis in anchor.axes if axis.length > 1]
    lanes = find_lanes(axes, operands, _stride_in_group(operands, width), width)
    if lanes is None:
        return None
    grouped = common_group(operands, lanes.var)
    wide: list[expr.Load] = []
    narrow: list[expr.Load] = []
    for load in (operand.load for operand in operands):
        is_shared = not accesses.reads_along(load, lanes.var) or (
            grouped and accesses.group_size(load, lanes.var)
        )
        (narrow if is_shared else wide).append(load)
    roles = AxisRoles.among(axes, lanes, wide, narrow)
    roles = replace(roles, lanes_group=grouped, lanes_block=anchor.block_in(lanes))
    others = tuple(axis for axis in axes if axis is not lanes)
    if not roles.rows and not narrow:
        roles = replace(roles, rows=others, columns=(), batch=())
    if not roles.rows:
        for axis in others:
            along = [load for load in wide if accesses.reads_along(load, axis.var)]
            sizes = {accesses.group_size(load, axis.var) for load in along}
            if len(sizes) == 1 and 0 not in sizes:
                return replace(roles, rows=(axis,), group=sizes.pop())
    return roles


Stride = Callable[[expr.Load, expr.Axis], "int | None"]
_ACROSS = 16.0  # the cost of gathering a vector; a contiguous read costs one
_APART = 8.0  # that of gathering it from few adjacent vectors, as windows with a stride do
_SHORT = 16.0


def find_lanes(
    axes: Sequence[expr.Axis],
    operands: Sequence[Operand],
    stride_of: Stride,
    width: int,
    short: float = _SHORT,
) -> expr.Axis | None:
    """The axis with the cheapest vectors; None if every axis is read across rows.

    stride_of   the distance of neighbours of a vector; 0 for the same, None if not constant
    short       the cost of an axis of one element; longer axes cost less

    Reads across rows are expensive: they are in the inner loop.  A store across rows is cheap: it
    happens once.  The lanes of vectors that fill a group exactly read the same of the operand that
    the group shares.
    """
    is_alone = sum(not operand.is_constant for operand in operands) == 1

    def cost(axis: expr.Axis) -> tuple[float, int]:
        total = 0.0 if axis is axes[-1] else 4.0
        strides = [stride_of(operand.load, axis) for operand in operands]
        for operand, stride in zip(operands, strides, strict=True):
            if not operand.is_constant and stride not in (0, 1):
                near = is_alone and stride is not None and 0 < stride <= 4
                total += _APART if near else _ACROSS
        if all(stride == 0 for stride in strides):
            total += 8.0
        group = common_group(operands, axis.var)
        extent = accesses.vector_within(group, width) if group else axis.length
        return total + short / extent, -extent

    best = min(axes, key=cost, default=None)
    return best if best is not None and cost(best)[0] < _ACROSS else None


def _stride_in_group(operands: Sequence[Operand], width: int) -> Stride:
    """The strides of vectors that fill groups and blocks exactly."""

    def stride_of(load: expr.Load, axis: expr.Axis) -> int | None:
        is_grouped = common_group(operands, axis.var) and accesses.group_size(load, axis.var)
        return 0 if is_grouped else accesses.stride_in_vector(load, axis, width)

    return stride_of


def rows_inside_columns(
    state: ScheduleState, anchor: str, roles: AxisRoles, target: CpuTarget
) -> tuple[str, ...]:
    """The outer rows, if it is better to go through them with few columns of the constants.

    That is so if the constants do not stay in the second cache from one outer row to the next, and
    reading them again for each takes longer than reading everything else for each panel of columns.
    """
    stage = state.stage(anchor)
    bytes_read = {True: 0, False: 0}
    for load in expr.loads_of(stage.tensor.body):
        bytes_read[load.source.name in state.constants] += accesses.bytes_of(load.source)
    times = accesses.count_of(roles.rows[:-2])
    across = accesses.count_of((roles.lanes, *roles.columns))
    panels = max(1, across // (2 * accesses.lanes_for(target, stage)))
    stays = 2 * bytes_read[True] <= target.l2_bytes
    if stays or bytes_read[True] * times <= bytes_read[False] * panels:
        return ()
    return tuple(axis.name for axis in roles.rows[:-2])
