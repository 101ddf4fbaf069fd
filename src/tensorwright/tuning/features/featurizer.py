"""Features of programs: of one whose decisions are taken, or of many candidates of a sketch.

Both use the formulas of `formulas.py`. For a program without open decisions these give numbers; for
one with open decisions they give a recording, which runs on columns of candidates.

The protocol for the features of the programs of one workload.

The feature sets by name: how programs are described to a cost model.

`statement` is 173 numbers of each statement, Ansor's and more (`groups.py`). All others are part of
the laboratory and are loaded by name: the raw configuration, the loops one after the other or as a
tree, curves of relations between quantities of loops.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from tensorwright import base
from tensorwright.loop import LoopProgram, lower
from tensorwright.schedule import ScheduleState, Trace, replay
from tensorwright.tuning.features.columns import (
    CellTable,
    ColumnGraph,
    ColumnProgram,
    Features,
    ResultNumbers,
)
from tensorwright.tuning.features.formulas import Level, StatementFormulas, formulas_of
from tensorwright.tuning.features.groups import (
    CPU_GROUPS,
    FEATURE_NAMES,
    GPU_FEATURE_NAMES,
    BufferGroup,
    CurveGroup,
    FeatureGroup,
    ScalarGroup,
    columns_of,
    groups_of,
)
from tensorwright.tuning.features.lanes import LaneGroup, LaneTable
from tensorwright.tuning.features.operations import BUFFER_FIELDS
from tensorwright.tuning.space.sketch import Sketch, Space

PlanT = TypeVar("PlanT")


class FeatureSource(Protocol):
    """Describes candidates, and single programs, in the same columns."""

    def of_sketch(self, sketch: Sketch, genes: NDArray[np.int64]) -> Features:
        """Shapes:  genes (candidates, choices) -> (candidates, rows, columns)

        Raises:  TensorwrightError for a sketch that cannot be described.
        """

    def of_trace(self, trace: Trace) -> Features:
        """A trace without open decisions.  Shapes:  (1, rows, columns).

        Raises:  TensorwrightError for a trace that cannot be described.
        """


class PlansBySketch(Generic[PlanT]):
    """The plans of sketches; mutable.

    Sketches of equal traces share a plan.  A lookup by identity comes first: comparing traces takes
    longer than describing a few candidates.
    """

    def __init__(self) -> None:
        self._by_trace: dict[Trace, PlanT] = {}
        self._by_identity: dict[int, tuple[Sketch, PlanT]] = {}  # it keeps them alive

    def get(self, sketch: Sketch, make: Callable[[Sketch], PlanT]) -> PlanT:
        """The plan of a sketch, made if it is the first of its trace."""
        pair = self._by_identity.get(id(sketch))
        if pair is None:
            if sketch.trace not in self._by_trace:
                self._by_trace[sketch.trace] = make(sketch)
            pair = self._by_identity[id(sketch)] = (sketch, self._by_trace[sketch.trace])
        return pair[1]


_FIELDS = {name: n for n, name in enumerate(BUFFER_FIELDS)}


Group = TypeVar("Group", BufferGroup, CurveGroup, LaneGroup)


class Plan:
    """Computes the features of a program's statements from columns of decisions.

    Building it is expensive; after that it runs on any number of candidates.

    graph    holds the formulas; those of similar programs cost less in one graph
    groups   the groups of columns
    speeds   of instructions that multiply short numbers, as of `statements_of`
    """

    program: LoopProgram

    def __init__(
        self,
        program: LoopProgram,
        graph: ColumnGraph | None = None,
        groups: tuple[FeatureGroup, ...] = CPU_GROUPS,
        speeds: base.Speeds = (),
    ) -> None:
        own = graph or ColumnGraph()
        scalars = [group.of for group in groups if isinstance(group, ScalarGroup)]
        nests, formulas = formulas_of(program, own, scalars, speeds)
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
    speeds: base.Speeds = (),
) -> Features:
    """The features of a program's statements, for columns of its open decisions.

    Shapes:  columns (candidates,) for each decision; without any, there is one candidate
             -> (candidates, statements, columns of the groups)
    Raises:  KeyError for a decision without a column.
    """
    given = columns or {}
    count = max((len(column) for column in given.values()), default=1)
    return Plan(program, groups=groups, speeds=speeds).run(given, count)


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

    def __init__(self, state: ScheduleState, target: base.Target) -> None:
        self.state = state
        self.target = target
        self._groups = groups_of(target)
        self._speeds = target.speeds if isinstance(target, base.CpuTarget) else ()
        self._plans: PlansBySketch[Plan] = PlansBySketch()
        self._graph = ColumnGraph()
        finalize(self, self._graph.clear)

    def plan(self, sketch: Sketch) -> Plan:
        """The formulas of a sketch, lowered once with its decisions open.

        The steps of a sketch have been checked when it was built.
        """
        return self._plans.get(sketch, self._make_plan)

    def _make_plan(self, sketch: Sketch) -> Plan:
        with base.without_collection():
            program = lower_sketch(self.state, sketch)
            return Plan(program, self._graph, self._groups, self._speeds)

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
        return features_of(program, groups=self._groups, speeds=self._speeds)


OpenSource = Callable[[ScheduleState, Any, Space], FeatureSource]


@dataclass(frozen=True, slots=True)
class FeatureSet:
    """A way to describe programs.

    columns   their names, in order; none if they depend on the space of the workload
    open      gives the source of the features of a workload's programs
    """

    name: str
    columns: tuple[str, ...]
    open: OpenSource

    @property
    def is_shared(self) -> bool:
        """Whether the columns are the same for all workloads: one model can serve them all."""
        return bool(self.columns)

    @property
    def digest(self) -> str:
        """A digest of the names of the columns in order; a model for other columns is refused."""
        return hashlib.sha256("\n".join(self.columns).encode()).hexdigest()[:16]


def _statement(state: ScheduleState, target: base.Target, space: Space) -> FeatureSource:
    return Featurizer(state, target)


STATEMENT = FeatureSet("statement", FEATURE_NAMES, _statement)
LAUNCH = FeatureSet("launch", GPU_FEATURE_NAMES, _statement)
STATEMENT_SETS: base.ByKind[FeatureSet] = {
    base.TargetKind.CPU: (STATEMENT,),
    base.TargetKind.GPU: (LAUNCH,),
}
"""How statements are described to models of a kind of machine."""
_OF_LABORATORY = (
    "knob",
    "itervar",
    "context",
    "loop-tree",
    "curve",
    "curve-fix",
    "curve-paired",
)
FEATURE_SETS = (STATEMENT.name, *_OF_LABORATORY)
"""The names that need no more; those of curves may be followed by samples and relations."""

_CURVE_NAME = re.compile(r"([a-z-]+)[@:].*")


def feature_set(name: str) -> FeatureSet:
    """The set of a name.  Raises: UsageError; MachineError for one of the laboratory without it."""
    for chosen in (STATEMENT, LAUNCH):
        if name == chosen.name:
            return chosen
    if _CURVE_NAME.sub(r"\1", name) not in _OF_LABORATORY:
        raise unknown_features(name)
    find = base.LaboratoryPart(f"features {name!r}", "feature_sets", "feature_set").load()
    named: FeatureSet = find(name)
    return named


def features_for(name: str, target: base.TargetProtocol) -> FeatureSet:
    """The set of a name, for a target: `statement` has other columns for each kind of machine.

    Raises:  as `feature_set`.
    """
    (own,) = base.of_kind(STATEMENT_SETS, target, "features of statements")
    chosen = feature_set(name)
    return own if describes_statements(chosen) else chosen


def describes_statements(features: FeatureSet) -> bool:
    """Whether analytic models can judge programs by these features."""
    return features in (STATEMENT, LAUNCH)


def unknown_features(
    name: str, reason: str = "there are no features of this name"
) -> base.UsageError:
    """The error for a name of no feature set; it lists the names."""
    names = "one of " + ", ".join(FEATURE_SETS) + "; curve-paired@20:count/reuse,count>bottomup"
    return base.UsageError(
        stage="features",
        where=f"features {name!r}",
        reason=reason,
        remedy=base.did_you_mean(name, FEATURE_SETS, names),
    )
