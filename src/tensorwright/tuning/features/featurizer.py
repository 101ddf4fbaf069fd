"""Features of programs: of one whose decisions are taken, or of many candidates of a sketch.

Both use the formulas of `formulas.py`. For a program without open decisions these give numbers; for
one with open decisions they give a recording, which runs on columns of candidates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import Target, without_collection
from tensorwright.loop import LoopProgram, lower
from tensorwright.schedule import ScheduleState, Trace, replay
from tensorwright.tuning.features.cell_tables import CellTable, Features, ResultNumbers
from tensorwright.tuning.features.column_program import ColumnProgram
from tensorwright.tuning.features.columns import ColumnGraph
from tensorwright.tuning.features.formulas import Level, StatementFormulas, formulas_of
from tensorwright.tuning.features.grid import LaneGroup, LaneTable
from tensorwright.tuning.features.groups import (
    CPU_GROUPS,
    BufferGroup,
    CurveGroup,
    FeatureGroup,
    ScalarGroup,
    columns_of,
    groups_of,
)
from tensorwright.tuning.features.names import BUFFER_FIELDS
from tensorwright.tuning.features.source import PlansBySketch
from tensorwright.tuning.space.sketch import Sketch

_FIELDS = {name: n for n, name in enumerate(BUFFER_FIELDS)}


Group = TypeVar("Group", BufferGroup, CurveGroup, LaneGroup)


class Plan:
    """Computes the features of a program's statements from columns of decisions.

    Building it is expensive; after that it runs on any number of candidates.

    graph    holds the formulas; those of similar programs cost less in one graph
    groups   the groups of columns
    """

    program: LoopProgram

    def __init__(
        self,
        program: LoopProgram,
        graph: ColumnGraph | None = None,
        groups: tuple[FeatureGroup, ...] = CPU_GROUPS,
    ) -> None:
        own = graph or ColumnGraph()
        scalars = [group.of for group in groups if isinstance(group, ScalarGroup)]
        nests, formulas = formulas_of(program, own, scalars)
        self._groups, self._columns = groups, columns_of(groups)
        self.program = program
        self.statements = len(formulas)
        results = ResultNumbers()
        self._scalars = CellTable((self.statements, len(self._columns)))
        self._buffers = [CellTable((len(each.buffers), len(BUFFER_FIELDS))) for each in formulas]
        levels = max((len(each.levels) for each in formulas), default=0)
        self._levels = CellTable((len(Level._fields), levels, self.statements))
        for n, each in enumerate(formulas):
            self._enter(n, each, levels, results)
        self._lanes = {
            first: [LaneTable(group.of(nest), results) for nest in nests]
            for group, first in self._starts(LaneGroup)
        }
        self._program: ColumnProgram = own.program(list(results))
        if graph is None:
            own.clear()

    def _enter(
        self, n: int, formulas: StatementFormulas, levels: int, results: ResultNumbers
    ) -> None:
        first = n * len(self._columns)
        for name, cell in formulas.scalars.items():
            self._scalars.put(first + self._columns[name], cell, results)
        for row, fields in enumerate(formulas.buffers):
            first = row * len(BUFFER_FIELDS)
            for name, cell in fields.items():
                self._buffers[n].put(first + _FIELDS[name], cell, results)
        points = [formulas.levels[0]] * (levels - len(formulas.levels)) + list(formulas.levels)
        for level, cells in enumerate(points):
            for field, cell in enumerate(cells):
                offset = (field * levels + level) * self.statements + n
                self._levels.put(offset, cell, results)

    def __len__(self) -> int:
        return len(self._program)

    def run(self, columns: Mapping[str, NDArray[Any]], count: int) -> Features:
        """The features of `count` candidates.  Shapes:  (count, statements, columns) f32."""
        results = self._program.run(columns, count)
        features = self._scalars.filled(results, count)
        for group, first in self._starts(BufferGroup):
            for n, table in enumerate(self._buffers):
                rows = _ordered(table, results, count)[: group.buffers]
                features[n, first : first + rows.size // count] = rows.reshape(-1, count)
        for first, tables in self._lanes.items():
            for n, lanes in enumerate(tables):
                of_lanes = lanes.features(results, count)
                features[n, first : first + len(of_lanes)] = of_lanes
        np.log2(np.add(features, 1, out=features), out=features)
        levels = self._levels.filled(results, count)
        for curve, first in self._starts(CurveGroup):
            features[:, first : first + len(curve.columns)] = curve.of(levels)
        return np.ascontiguousarray(np.moveaxis(features, -1, 0))

    def _starts(self, kind: type[Group]) -> list[tuple[Group, int]]:
        """The groups of a kind, each with its first column."""
        return [
            (group, self._columns[group.columns[0]])
            for group in self._groups
            if isinstance(group, kind)
        ]


def _ordered(table: CellTable, results: NDArray[np.float64], count: int) -> Features:
    """The rows of the buffers: the stored one, then the others by bytes, most first."""
    rows = table.filled(results, count)
    field = _FIELDS["unique_bytes"]
    if len(rows) > 2:
        moving = any(offset % len(BUFFER_FIELDS) == field for offset in table.offsets)
        if moving:
            order = np.argsort(-rows[1:, field], axis=0, kind="stable")
            rows[1:] = np.take_along_axis(rows[1:], order[:, None, :], axis=0)
        else:
            rows[1:] = rows[1:][np.argsort(-rows[1:, field, 0], kind="stable")]
    return rows


def features_of(
    program: LoopProgram,
    columns: Mapping[str, NDArray[Any]] | None = None,
    groups: tuple[FeatureGroup, ...] = CPU_GROUPS,
) -> Features:
    """The features of a program's statements, for columns of its open decisions.

    Shapes:  columns (candidates,) for each decision; without any, there is one candidate
             -> (candidates, statements, columns of the groups)
    Raises:  KeyError for a decision without a column.
    """
    given = columns or {}
    count = max((len(column) for column in given.values()), default=1)
    return Plan(program, groups=groups).run(given, count)


def lower_sketch(state: ScheduleState, sketch: Sketch) -> LoopProgram:
    """The loop program of a checked sketch with its decisions open, without prefetches."""
    if sketch.state is not None:
        return _lowered(_without_prefetches(sketch.state))
    for step in sketch.trace:
        state = step.apply(state)
    return _lowered(_without_prefetches(state))


def _lowered(state: ScheduleState) -> LoopProgram:
    """The outline of a state.

    Features count barriers by the fills of shared memory, because needless ones cannot be proved
    with open decisions; fills of a pipeline count once.
    """
    return lower(state, is_outline=True)


def _without_prefetches(state: ScheduleState) -> ScheduleState:
    for stage in state.stages:
        if stage.prefetches:
            state = state.with_stage(replace(stage, prefetches=()))
    return state


class Featurizer:
    """Features of the schedules of one program; caches the plan of each sketch."""

    def __init__(self, state: ScheduleState, target: Target) -> None:
        self.state = state
        self.target = target
        self._groups = groups_of(target)
        self._plans: PlansBySketch[Plan] = PlansBySketch()
        self._graph = ColumnGraph()
        finalize(self, self._graph.clear)

    def plan(self, sketch: Sketch) -> Plan:
        """The formulas of a sketch, lowered once with its decisions open.

        The steps of a sketch have been checked when it was built.
        """
        return self._plans.get(sketch, self._make_plan)

    def _make_plan(self, sketch: Sketch) -> Plan:
        with without_collection():
            return Plan(lower_sketch(self.state, sketch), self._graph, self._groups)

    def of_sketch(self, sketch: Sketch, genes: NDArray[np.int64]) -> Features:
        """The features of candidates of a sketch.

        Shapes:  genes (candidates, choices) -> (candidates, statements, columns)
        """
        return self.plan(sketch).run(sketch.columns(genes), len(genes))

    def of_trace(self, trace: Trace) -> Features:
        """The features of a trace without open decisions.  Shapes:  (1, statements, columns)."""
        return self.of_program(_lowered(replay(self.state, trace)))

    def of_program(self, program: LoopProgram) -> Features:
        """The features of a trace that has been lowered, in outline."""
        return features_of(program, groups=self._groups)
