"""A reduction and the stage that stores it: its operands, and the axes that move together.

A result in blocks of channels that is stored as rows of channels is read as y[i // 16, j, i % 16]:
the axis i moves two axes of the reduction, the second by ones.  Tiles along i that are part of a
block, or whole blocks, compute only stored elements.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tensorwright.expr import (
    Axis,
    Compute,
    FloorDiv,
    Index,
    IndexExpr,
    Load,
    Mod,
    Range,
    Var,
    free_vars,
    loads_of,
    simplify,
    substitute,
    terms_of,
)
from tensorwright.schedule import ScheduleState, SplitRelation, Stage
from tensorwright.tuning.space.axes.accesses import atoms_of, group_size, loads_from


@dataclass(frozen=True, slots=True)
class Operand:
    """A read of the reduction, with indices over the axes of the stored stage and its own."""

    load: Load
    is_constant: bool


@dataclass(frozen=True, slots=True)
class Anchor:
    """A reduction, `name`, and the stage that stores its result, `stored`; both may be one."""

    state: ScheduleState
    name: str
    stored: str

    @property
    def tensor(self) -> Compute:
        """The tensor of the reduction."""
        return self.state.stage(self.name).tensor

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axes of the stored stage."""
        return self.state.stage(self.stored).tensor.axes

    @property
    def link(self) -> tuple[Index, ...]:
        """The indices with which the stored stage reads the reduction, or its own axes."""
        if self.name == self.stored:
            return tuple(axis.var for axis in self.axes)
        return loads_from(self.state.stage(self.stored).tensor, self.name)[0].indices

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The reads, in terms of the stored element."""
        bounds = {a.var: Range.of_extent(a.extent) for a in (*self.axes, *self.tensor.reduce_axes)}
        mapping: dict[Var, Index] = {}
        if self.name != self.stored:
            mapping = dict(zip((a.var for a in self.tensor.axes), self.link, strict=True))
        seen: list[Operand] = []
        for load in loads_of(self.tensor.body):
            indices = tuple(simplify(substitute(i, mapping), bounds) for i in load.indices)
            is_constant = load.source.name in self.state.constants
            seen.append(Operand(Load(load.source, indices), is_constant))
        return tuple(seen)

    @property
    def own_axes(self) -> dict[str, tuple[str, ...]]:
        """For each stored axis the axes of the reduction that it moves, the fastest one last."""
        along: dict[str, list[str]] = {}
        fine: dict[str, str] = {}
        for axis, index in zip(self.tensor.axes, self.link, strict=True):
            for atom in atoms_of((index,)):
                for var in free_vars(atom):
                    names = along.setdefault(var.name, [])
                    names += [] if axis.name in names else [axis.name]
                    if not isinstance(atom, FloorDiv):
                        fine[var.name] = axis.name
        return {
            name: tuple(sorted(names, key=lambda own: own == fine.get(name, names[0])))
            for name, names in along.items()
        }

    def shares_axis(self, one: Axis, other: Axis) -> bool:
        """Whether two stored axes move one axis of the reduction, as its quotient and remainder.

        A tile of several of both would compute all elements between them.
        """
        own = self.own_axes
        return bool({*own.get(one.name, ())} & {*own.get(other.name, ())})

    def block_in(self, axis: Axis) -> int:
        """The blocks of a stored axis: b in y[.. i // b .. i % b]; 0 if none."""
        atoms = _parts(self.link, axis.var)
        digits = [atom for atom in atoms if isinstance(atom, FloorDiv | Mod)]
        sizes = {atom.divisor for atom in digits if atom.dividend == axis.var}
        size = sizes.pop() if len(sizes) == 1 and len(digits) == len(atoms) == 2 else 0
        return size if isinstance(size, int) and size and axis.length % size == 0 else 0

    @property
    def is_tangled(self) -> bool:
        """Whether some axis is read neither as it is nor in blocks, so tiles do not match."""
        for axis in self.axes:
            atoms = _parts(self.link, axis.var)
            is_plain = atoms <= {axis.var}
            is_repeated = len(atoms) == 1 and all(_is_quotient(atom, axis.var) for atom in atoms)
            if not is_plain and not is_repeated and not self.block_in(axis):
                return True
        return False

    def step_along(self, axis: Axis) -> int:
        """The steps of an axis of the reduction along a stored one; 0 if not constant."""
        block = self.block_in(axis)
        moving = (Mod(axis.var, block),) if block else (axis.var,)
        terms = (term for index in self.link for term in terms_of(index))
        steps = {coefficient for monomial, coefficient in terms if monomial == moving}
        return steps.pop() if len(steps) == 1 else 0


def only_fold(state: ScheduleState) -> Stage | None:
    """The reduction of a program of one reduction and one output; None for others."""
    folds = [stage for stage in state.stages if stage.tensor.reduction is not None]
    return folds[0] if len(folds) == len(state.outputs) == 1 else None


def common_group(operands: Iterable[Operand], var: Var) -> int:
    """The group size of all operands that read in groups along a variable; 0 if they differ."""
    sizes = {group_size(operand.load, var) for operand in operands} - {0}
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


def _parts(indices: tuple[Index, ...], var: Var) -> set[IndexExpr]:
    """The factors of terms of some indices that contain a variable."""
    return {atom for atom in atoms_of(indices) if var in free_vars(atom)}


def _is_quotient(atom: IndexExpr, var: Var) -> bool:
    return isinstance(atom, FloorDiv) and atom.dividend == var
