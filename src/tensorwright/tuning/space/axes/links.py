"""How a stage that stores a reduction reads it: which axes of the two move together, in blocks.

A result in blocks of channels that is stored as rows of channels is read as y[i // 16, j, i % 16]:
the axis i runs through two axes of the reduction, the second by ones.  Tiles along i that are part
of a block, or whole blocks, compute only what is stored.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorwright.expr import (
    Axis,
    FloorDiv,
    Index,
    IndexExpr,
    Mod,
    Var,
    free_vars,
    loads_of,
    terms_of,
)
from tensorwright.schedule import ScheduleState, SplitRelation, Stage
from tensorwright.tuning.space.axes.accesses import extent_of


def link_of(state: ScheduleState, anchor: str, stored: str) -> tuple[Index, ...]:
    """The indices with which `stored` reads `anchor`, or its own axes where both are one stage."""
    tensor = state.stage(stored).tensor
    if anchor == stored:
        return tuple(axis.var for axis in tensor.axes)
    return next(x for x in loads_of(tensor.body) if x.source.name == anchor).indices


def own_axes(state: ScheduleState, anchor: str, stored: str) -> dict[str, tuple[str, ...]]:
    """For each axis of `stored` those of `anchor` that it reads along, the one that neighbours
    differ in last; both may be one stage.
    """
    found: dict[str, list[str]] = {}
    fine: dict[str, str] = {}
    indices = link_of(state, anchor, stored)
    for axis, index in zip(state.stage(anchor).tensor.axes, indices, strict=True):
        for atom in _atoms(index):
            for var in free_vars(atom):
                names = found.setdefault(var.name, [])
                names += [] if axis.name in names else [axis.name]
                if not isinstance(atom, FloorDiv):
                    fine[var.name] = axis.name
    return {
        name: tuple(sorted(names, key=lambda own: own == fine.get(name, names[0])))
        for name, names in found.items()
    }


def axis_of(stage: Stage, loop: str) -> str:
    """The axis of which a loop is a part after splits."""
    for relation in reversed(stage.relations):
        if isinstance(relation, SplitRelation) and loop in relation.children:
            loop = relation.parent
    return loop


def shares_axis(state: ScheduleState, anchor: str, stored: str, one: Axis, other: Axis) -> bool:
    """Whether two axes of `stored` run through the same axis of `anchor`, as a head and a place in
    it do: of several of both, all that lies between them would be computed.
    """
    own = own_axes(state, anchor, stored)
    return bool({*own.get(one.name, ())} & {*own.get(other.name, ())})


def block_in(state: ScheduleState, anchor: str, stored: str, axis: Axis) -> int:
    """The blocks that an axis of `stored` runs through: b in y[.. i // b .. i % b]; 0 if none."""
    atoms = _parts(link_of(state, anchor, stored), axis.var)
    digits = [atom for atom in atoms if isinstance(atom, FloorDiv | Mod)]
    sizes = {atom.divisor for atom in digits if atom.dividend == axis.var}
    size = sizes.pop() if len(sizes) == 1 and len(digits) == len(atoms) == 2 else 0
    return size if isinstance(size, int) and size and extent_of(axis.extent) % size == 0 else 0


def is_tangled(state: ScheduleState, anchor: str, stored: str) -> bool:
    """Whether tiles of `stored` are no tiles of `anchor`: some axis runs through it neither as it
    is nor in blocks.
    """
    indices = link_of(state, anchor, stored)
    for axis in state.stage(stored).tensor.axes:
        atoms = _parts(indices, axis.var)
        is_plain = atoms <= {axis.var}
        is_repeated = len(atoms) == 1 and all(_is_quotient(atom, axis.var) for atom in atoms)
        if not is_plain and not is_repeated and not block_in(state, anchor, stored, axis):
            return True
    return False


def step_of(state: ScheduleState, anchor: str, stored: str, axis: Axis) -> int:
    """How far apart in an axis of `anchor` neighbours along one of `stored` are; 0 if that is not
    the same everywhere.
    """
    block = block_in(state, anchor, stored, axis)
    moving = (Mod(axis.var, block),) if block else (axis.var,)
    steps = {
        coefficient
        for index in link_of(state, anchor, stored)
        for monomial, coefficient in terms_of(index)
        if monomial == moving
    }
    return steps.pop() if len(steps) == 1 else 0


def is_aligned(size: int, block: int) -> bool:
    """Whether tiles of a size are part of a block or whole blocks; any are without blocks (0)."""
    return not block or block % size == 0 or size % block == 0


def _parts(indices: tuple[Index, ...], var: Var) -> set[IndexExpr]:
    """The factors of terms of some indices that a variable is in."""
    return {atom for index in indices for atom in _atoms(index) if var in free_vars(atom)}


def _is_quotient(atom: IndexExpr, var: Var) -> bool:
    return isinstance(atom, FloorDiv) and atom.dividend == var


def _atoms(index: Index) -> Iterator[IndexExpr]:
    for monomial, _ in terms_of(index):
        yield from monomial
