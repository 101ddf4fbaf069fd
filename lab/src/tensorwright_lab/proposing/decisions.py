"""The decisions of a space as rows of numbers that do not depend on the operator.

A schedule is taken decision by decision: first the structure, then the choices of its sketch in
order.  What can be taken next is a table, a row for each way, of so many columns (`COLUMNS`) in
these groups:

    kind       what is decided: a structure, a tile, an unroll depth, ...
    value      the row's numbers, innermost first, against the extent that they divide, the lanes of
               a vector, and what the rule would take
    choice     the loop that they split and what becomes of it, the place in the order
    taken      what was taken before: products of tiles, iterations left outside, room in limits
    sketch     how many steps of each kind, how many choices, its place in the space
    workload   extents, operations, bytes
    machine    lanes, registers, caches, threads

All are logarithms to base 2, but flags and shares.  So a model of such rows serves all workloads.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import log2, prod

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import InternalError
from tensorwright.expr import Compute, Decision, Index, Tensor, terms_of, topological_order
from tensorwright.machine import Machine
from tensorwright.schedule import Split, Workload
from tensorwright.tuning.space.sketch import Choice, Kind, Sketch, Space

Matrix = NDArray[np.float32]

_KINDS = (Kind.TILE, Kind.UNROLL, Kind.PARALLEL, Kind.OTHER)
_STEPS = (
    "Split", "Fuse", "Unroll", "Vectorize", "Parallel", "ComputeAt", "ReverseComputeAt",
    "CacheWrite", "CacheRead", "ComputeInline", "Rfactor", "UseAlgorithm", "PackConstant",
    "PrefetchNext", "Reorder",
)  # fmt: skip
_LEVELS = 3
_ROOMY = 20.0  # log2 of the room where nothing limits

_ROW = (
    *(f"value_{n}" for n in range(_LEVELS)), "product", "outside", "waste", "in_lanes",
    "is_whole_vectors", "is_by_rule", "inner_to_rule", "product_to_rule", "rank", "rows",
)  # fmt: skip
_CHOICE = (
    "position", "to_come", "names", "extent", "is_reduction", "is_last_axis", "is_vectorized",
    "is_unrolled", "is_parallel", "folds", "is_output",
)  # fmt: skip
_TAKEN = ("inner_spatial", "inner_reduced", "all_spatial", "all_reduced", "jobs", "before")
_ROOM = ("room", "room_to_rule")
_SKETCH = (*(f"steps_{name}" for name in _STEPS), "steps", "choices", "size", "place", "is_first")
_WORKLOAD = (
    "work", "elements", "input_bytes", "constant_bytes", "intensity", "stages", "reduced",
    "last_extent", "second_extent", "third_extent", "last_reduced", "reductions", "folds_most",
)  # fmt: skip
_MACHINE = ("lanes", "registers", "l1", "l2", "l3", "threads", "is_cold", "has_masks")
COLUMNS: tuple[str, ...] = (
    "is_structure",
    *(f"is_{kind.value}" for kind in _KINDS),
    *_ROW,
    *_CHOICE,
    *_TAKEN,
    *_ROOM,
    *_SKETCH,
    *_WORKLOAD,
    *_MACHINE,
)
COLUMN_DIGEST = hashlib.sha256("\n".join(COLUMNS).encode()).hexdigest()[:16]
"""Of the names in order: a model of others is refused."""

_AT = {name: n for n, name in enumerate(COLUMNS)}
_FIRST_TAKEN = _AT[_TAKEN[0]]
_FIRST_ROOM = _AT[_ROOM[0]]


@dataclass(frozen=True, slots=True, eq=False)
class ChoiceTable:
    """The rows of one choice of a sketch.

    rows    (rows, columns): all but what was taken
    adds    (rows, len(_TAKEN)): what taking a row adds to what was taken
    fills   (rows, limits): log2 of what it takes of each limit of the sketch
    """

    rows: Matrix
    adds: Matrix
    fills: Matrix


@dataclass(frozen=True, slots=True, eq=False)
class SketchTable:
    """The choices of one sketch in the order in which they are taken.

    limits   (limits,): log2 of the room in each of its limits
    rule     the number of the row by rule, of each choice
    """

    choices: tuple[ChoiceTable, ...]
    limits: Matrix
    rule: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Prefix:
    """The decisions that some candidates of a sketch have taken before their next choice.

    taken   (n, len(_TAKEN))        room   (n, limits): log2 of what is left of each limit
    """

    taken: Matrix
    room: Matrix

    @classmethod
    def begun(cls, table: SketchTable, count: int) -> Prefix:
        """Nothing is taken yet."""
        taken = np.zeros((count, len(_TAKEN)), np.float32)
        return cls(taken, np.repeat(table.limits[None], count, axis=0))

    def then(self, choice: ChoiceTable, genes: NDArray[np.int64]) -> Prefix:
        """After each candidate has taken one row (n,)."""
        taken = self.taken + choice.adds[genes]
        taken[:, -1] = choice.adds[genes, -1]
        return Prefix(taken, self.room - choice.fills[genes])


class DecisionTables:
    """The tables of a space, for one workload and machine."""

    def __init__(self, workload: Workload, space: Space, machine: Machine) -> None:
        self.space = space
        base = np.zeros(len(COLUMNS), np.float32)
        _put(base, _WORKLOAD, _workload_numbers(workload))
        _put(base, _MACHINE, _machine_numbers(machine))
        self._base = base
        self._lanes = machine.target.vector_bytes / 4.0
        self._axes = _AxisTable(workload)
        self._sketches: dict[int, SketchTable] = {}
        self.structures = np.stack(
            [self._structure(n, sketch) for n, sketch in enumerate(space.sketches)]
        )
        """(sketches, columns): the first decision."""

    def sketch(self, number: int) -> SketchTable:
        """The choices of a sketch, computed at the first request."""
        if number not in self._sketches:
            self._sketches[number] = self._table(number, self.space.sketches[number])
        return self._sketches[number]

    def rows(self, number: int, position: int, prefix: Prefix) -> Matrix:
        """The options of candidates' next choice.  Shapes:  (n, rows of the choice, columns)."""
        table = self.sketch(number)
        choice = table.choices[position]
        rows = np.repeat(choice.rows[None], len(prefix.taken), axis=0)
        rows[:, :, _FIRST_TAKEN : _FIRST_TAKEN + len(_TAKEN)] = prefix.taken[:, None]
        if len(table.limits):
            room = (prefix.room[:, None] - choice.fills[None]).min(axis=2)
            rows[:, :, _FIRST_ROOM] = room
            rows[:, :, _FIRST_ROOM + 1] = room - room[:, table.rule[position]][:, None]
        else:
            rows[:, :, _FIRST_ROOM] = _ROOMY
        return rows

    # Of one sketch

    def _structure(self, number: int, sketch: Sketch) -> Matrix:
        row = self._base.copy()
        _put(row, _SKETCH, self._sketch_numbers(number, sketch))
        row[_AT["is_structure"]] = 1.0
        return row

    def _sketch_numbers(self, number: int, sketch: Sketch) -> list[float]:
        steps = Counter(type(step).__name__ for step in sketch.trace)
        size = sum(log2(len(choice.values)) for choice in sketch.choices)
        counted = [float(steps[name]) for name in _STEPS]
        whole = (len(sketch.trace), len(sketch.choices), size, number, number == 0)
        return [*counted, *map(float, whole)]

    def _table(self, number: int, sketch: Sketch) -> SketchTable:
        base = self._base.copy()
        _put(base, _SKETCH, self._sketch_numbers(number, sketch))
        choices = tuple(
            self._choice(base, sketch, position, choice)
            for position, choice in enumerate(sketch.choices)
        )
        most = [room for _, room in _products(sketch)]
        rule = tuple(choice.values.index(choice.default) for choice in sketch.choices)
        return SketchTable(choices, np.array(most, np.float32), rule)

    def _choice(self, base: Matrix, sketch: Sketch, position: int, choice: Choice) -> ChoiceTable:
        split = _split_of(sketch, choice)
        extent, is_reduction, is_last = self._axes.of(split)
        logs = np.log2(np.maximum(choice.table.astype(np.float32), 2.0**-4))[:, ::-1]
        product, inner = logs.sum(axis=1), logs[:, 0]
        by_rule = choice.values.index(choice.default)
        rows = np.repeat(base[None], len(logs), axis=0)
        rows[:, _AT[f"is_{choice.kind.value}"]] = 1.0
        for level in range(min(_LEVELS, logs.shape[1])):
            rows[:, _AT[f"value_{level}"]] = logs[:, level]
        outside = log2(extent) - product if extent else -product
        whole = np.exp2(product)
        waste = np.ceil(extent / whole) * whole / extent - 1.0 if extent else np.zeros(len(logs))
        places = np.arange(len(logs)) / max(len(logs) - 1, 1)
        columns = (
            product, outside, waste, inner - log2(self._lanes),
            np.exp2(inner) % self._lanes == 0, np.arange(len(logs)) == by_rule,
            inner - inner[by_rule], product - product[by_rule], places,
            np.full(len(logs), log2(len(logs))),
        )  # fmt: skip
        for name, column in zip(_ROW[_LEVELS:], columns, strict=True):
            rows[:, _AT[name]] = column
        marks = _marks_of(sketch, split)
        stage = self._axes.stage_of(split)
        numbers = (
            position, len(sketch.choices) - position - 1, len(choice.names),
            log2(extent) if extent else -1.0, is_reduction, is_last, *marks,
            stage is not None and stage.reduction is not None, self._axes.is_output(split),
        )  # fmt: skip
        for name, number in zip(_CHOICE, numbers, strict=True):
            rows[:, _AT[name]] = float(number)
        none = np.zeros(len(logs))
        jobs = none if is_reduction else np.maximum(outside, 0.0)
        adds = np.stack(
            [
                none if is_reduction else inner, inner if is_reduction else none,
                none if is_reduction else product, product if is_reduction else none,
                jobs, inner,
            ],
            axis=1,
        )  # fmt: skip
        fills = np.zeros((len(logs), len(_products(sketch))), np.float32)
        for n, (names, _) in enumerate(_products(sketch)):
            for name in names & set(choice.names):
                fills[:, n] += logs[:, ::-1][:, choice.names.index(name)]
        return ChoiceTable(rows, adds.astype(np.float32), fills)


class _AxisTable:
    """The axes of a workload's stages, for loops that are split as they come."""

    def __init__(self, workload: Workload) -> None:
        tensors = topological_order(*workload.outputs)
        self._stages = {one.name: one for one in tensors if isinstance(one, Compute)}
        self._outputs = {stage.name for stage in workload.outputs}

    def stage_of(self, split: Split | None) -> Compute | None:
        """The stage that a split is about; of a copy of a stage, that stage."""
        if split is None:
            return None
        name = split.stage
        while name and name not in self._stages:
            name = name.rpartition("_")[0]
        return self._stages.get(name)

    def is_output(self, split: Split | None) -> bool:
        """Whether it is about a stage whose result leaves the program."""
        return split is not None and split.stage in self._outputs

    def of(self, split: Split | None) -> tuple[float, bool, bool]:
        """The extent that is split, 0 where unknown; whether it is folded, or contiguous."""
        stage = self.stage_of(split)
        if split is None or stage is None:
            return 0.0, False, False
        for axis in stage.reduce_axes:
            if axis.name == split.loop:
                return float(_number(axis.extent)), True, False
        for n, axis in enumerate(stage.axes):
            if axis.name == split.loop:
                return float(_number(axis.extent)), False, n == len(stage.axes) - 1
        return 0.0, False, False


def _split_of(sketch: Sketch, choice: Choice) -> Split | None:
    """The first split by the last of a choice's decisions."""
    for step in sketch.trace:
        if isinstance(step, Split):
            names = [each.name for each in step.factors if isinstance(each, Decision)]
            if choice.names[-1] in names:
                return step
    return None


def _marks_of(sketch: Sketch, split: Split | None) -> tuple[bool, bool, bool]:
    """Whether the innermost loop of a split becomes lanes, is written out; the outermost shared."""
    if split is None:
        return False, False, False
    inner, outer = split.children[-1], split.children[0]
    marks = {"Vectorize": False, "Unroll": False, "Parallel": False}
    for step in sketch.trace:
        kind = type(step).__name__
        if kind not in marks or getattr(step, "stage", "") != split.stage:
            continue
        loop = str(getattr(step, "loop", ""))
        wanted = outer if kind == "Parallel" else inner
        marks[kind] |= loop == wanted or (kind == "Parallel" and f"_{wanted}" in f"_{loop}")
    return marks["Vectorize"], marks["Unroll"], marks["Parallel"]


def _workload_numbers(workload: Workload) -> list[float]:
    tensors = topological_order(*workload.outputs)
    stages = [tensor for tensor in tensors if isinstance(tensor, Compute)]
    works = [
        prod(_number(axis.extent) for axis in (*stage.axes, *stage.reduce_axes)) for stage in stages
    ]
    largest = stages[int(np.argmax(works))]
    inputs = [tensor for tensor in tensors if not isinstance(tensor, Compute)]
    constant = sum(_size_bytes(each) for each in inputs if each.name in workload.constants)
    read = sum(map(_size_bytes, inputs))
    moved = read + sum(map(_size_bytes, workload.outputs))
    extents = [_log(_number(axis.extent)) for axis in reversed(largest.axes)] + [0.0, 0.0, 0.0]
    reduced = [_number(axis.extent) for axis in largest.reduce_axes]
    elements = prod(_number(axis.extent) for axis in largest.axes)
    work = sum(works)
    return [
        _log(work), _log(elements), _log(read), _log(constant), _log(work) - _log(moved),
        _log(len(stages)), _log(prod(reduced)), *extents[:3], _log(reduced[-1] if reduced else 1),
        float(len(reduced)), float(largest.reduction is not None),
    ]  # fmt: skip


def _size_bytes(tensor: Tensor) -> int:
    return prod(map(_number, tensor.shape)) * tensor.dtype.size_bytes


def _number(extent: Index) -> int:
    """Of a workload, extents are numbers."""
    if not isinstance(extent, int):
        raise InternalError(
            stage="proposing model",
            where=f"extent {extent}",
            reason="it is open",
            remedy="report it",
        )
    return extent


def _machine_numbers(machine: Machine) -> list[float]:
    target = machine.target
    return [
        log2(target.vector_bytes / 4), _log(target.vector_registers), _log(target.l1_bytes),
        _log(target.l2_bytes), _log(target.l3_bytes), _log(machine.threads),
        float(machine.is_cold), float(target.has_masks),
    ]  # fmt: skip


def _log(number: float) -> float:
    return log2(max(float(number), 1.0))


def _put(row: Matrix, names: Sequence[str], numbers: Sequence[float]) -> None:
    first = _AT[names[0]]
    row[first : first + len(names)] = np.array(numbers, np.float32)


def _products(sketch: Sketch) -> list[tuple[set[str], float]]:
    """The largest product of decisions in each limit by rule: their names, and log2 of its room."""
    products: list[tuple[set[str], float]] = []
    for limit in sketch.limits:
        if not limit.what:
            factors, scale = max(terms_of(limit.index), key=lambda term: len(term[0]))
            room = log2(max(limit.most, 1)) - log2(max(scale, 1))
            names = {each.name for each in factors if isinstance(each, Decision)}
            products.append((names, room))
    return products
