"""Logs of other tuners and ours.

Records of schedules that came from templates, as AutoTVM's log lines.

The task is `tensorwright.<template>`, its arguments are the tensors of the program, and a keyword
names the workload.

Configurations of other tuners' templates as schedules of ours.

A line fits a template that has all of its knobs; knobs that only the template has are as the rule
chooses, or as small as they can be where tiles would not fit into registers.  AutoTVM's names for
the axes of its operators are ours under `SAME`, and a split into fewer parts is one with tiles of 1
between.  Templates for graphics processors have AutoTVM's own names.  A log may be of a larger
card: threads that a block cannot have here become virtual threads, or elements of a thread.

The programs that tasks of AutoTVM stand for, as graphs of one operator.

A task is a name, `conv2d_NCHWc.x86`, whose first word says the operator, and arguments: tensors,
then of convolutions strides, padding and dilation.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from math import prod

import numpy as np

from tensorwright.base import Target, TensorwrightError
from tensorwright.expr import Decision
from tensorwright.graph import Graph, GraphBuilder
from tensorwright.records import Record
from tensorwright.records.logs import Argument, AutoTvmLine, LoggedEntity, LoggedTensor, Result
from tensorwright.schedule import ScheduleState, Workload, state_of
from tensorwright.tuning.population import Candidate
from tensorwright.tuning.population.population import candidate_of
from tensorwright.tuning.space.derived.device_limits import THREADS_OF_BLOCK
from tensorwright.tuning.space.knobs import Entity, Knob
from tensorwright.tuning.space.sketch import Limit, Sketch, Space
from tensorwright.tuning.space.templates import TEMPLATES, template_sketches

TASK = "tensorwright"
_FAILED_S = 1e9  # AutoTVM's cost of a configuration that did not run
_FAILED = 4


class LineWriter:
    """Lines for the records of one workload."""

    def __init__(self, workload: Workload, target: Target) -> None:
        self._workload = workload
        self._target = target
        self._space = Space(tuple(template_sketches(state_of(workload), target)))

    def line_of(self, record: Record) -> AutoTvmLine | None:
        """The line of a record; None if no template makes its schedule."""
        located = self._space.locate(record.trace, dict(record.decisions))
        if located is None:
            return None
        return self._line(record, self._space.sketches[located[0]], located[1])

    def _line(self, record: Record, sketch: Sketch, genes: tuple[int, ...]) -> AutoTvmLine:
        decisions = dict(record.decisions)
        is_ok = record.status.is_timed
        when = datetime.fromisoformat(record.when).timestamp()
        return AutoTvmLine(
            self._target.name,
            f"{TASK}.{sketch.family}",
            tuple(
                LoggedTensor(tuple(int(str(n)) for n in tensor.shape), tensor.dtype.numpy.name)
                for tensor in self._workload.inputs
            ),
            json.dumps({"workload": self._workload.key}),
            self._number(sketch, genes),
            None,
            tuple(
                LoggedEntity(knob.name, knob.entity.value, knob.bound(decisions))
                for knob in sketch.knobs
            ),
            Result(
                record.times_s if is_ok else (_FAILED_S,),
                0 if is_ok else _FAILED,
                math.fsum(record.times_s),
                when,
            ),
            "",
        )

    def _number(self, sketch: Sketch, genes: tuple[int, ...]) -> int:
        """The number of a configuration among all of its template, ignoring limits."""
        number = 0
        for other in self._space.sketches:
            if other is sketch:
                break
            if other.family == sketch.family:
                number += math.prod(len(choice.values) for choice in other.choices)
        within = 0
        for choice, gene in zip(reversed(sketch.choices), reversed(genes), strict=True):
            within = within * len(choice.values) + gene
        return number + within


SAME = {
    "conv": {"tile_oh": "tile_h", "tile_ow": "tile_w", "unroll_kw": "unroll_taps"},
    "depthwise": {"tile_oh": "tile_h", "tile_ow": "tile_w", "unroll_kw": "unroll_taps"},
    "dense": {"tile_y": "tile_i", "tile_x": "tile_j"},
}
"""What a knob of a task of AutoTVM is called here, by the beginning of the task's name."""


_AT_MOST = "auto_unroll_max_step"  # with more steps, fewer loops are unrolled
_OF_TEXT = frozenset({"unroll_explicit"})  # who unrolls: here the compiler does


@dataclass(frozen=True, slots=True)
class Seed:
    """A schedule that a line stands for.

    change   what is not as in the line, and why, for a person; "" if nothing
    """

    candidate: Candidate
    change: str = ""


@dataclass(frozen=True, slots=True)
class _Misfit:
    """Why a sketch does not fit; `is_other` if another structure of its template may fit."""

    reason: str
    is_other: bool = False


def seed_of(line: AutoTvmLine, state: ScheduleState, target: Target) -> Seed | str:
    """The schedule that a line stands for, by the first template that it fits; or why none does."""
    is_cuda = line.task.endswith(".cuda")
    starts = {} if is_cuda else SAME
    names = next((names for start, names in starts.items() if line.task.startswith(start)), {})
    misfits: dict[str, _Misfit] = {}
    sketches = tuple(template_sketches(state, target))
    name = line.task.removesuffix(".cuda")
    own = [sketch for sketch in sketches if sketch.family == name]
    if not own and name in [each.name for each in TEMPLATES[target.kind]]:
        return f"{name}: it does not speak of this program for {target}"
    for entities in _variants(line.entities, own):
        for sketch in own or sketches:
            fitted = _fit(entities, names, sketch)
            if not isinstance(fitted, _Misfit):
                decisions, change = fitted
                return Seed(candidate_of(sketch, tuple(sorted(decisions.items()))), change)
            before = misfits.get(sketch.family)
            if before is None or (before.is_other and not fitted.is_other):
                misfits[sketch.family] = fitted
    told = "; ".join(f"{family}: {misfit.reason}" for family, misfit in misfits.items())
    return told or "no template speaks of this program"


def _variants(
    entities: Sequence[LoggedEntity], sketches: Iterable[Sketch]
) -> Iterator[tuple[LoggedEntity, ...]]:
    """The schedule of a line; then with less unrolling, as the other tuner's compiler does."""
    kept = tuple(entity for entity in entities if entity.name not in _OF_TEXT or not sketches)
    yield kept
    knobs = (knob for sketch in sketches for knob in sketch.knobs if knob.name == _AT_MOST)
    steps = sorted({knob.value for knob in knobs if isinstance(knob.value, int)}, reverse=True)
    said = next((each.value for each in kept if each.name == _AT_MOST), 0)
    for step in steps:
        if isinstance(said, int) and step < said:
            yield tuple(replace(x, value=step) if x.name == _AT_MOST else x for x in kept)


def _fit(
    entities: Iterable[LoggedEntity], names: Mapping[str, str], sketch: Sketch
) -> tuple[dict[str, int], str] | _Misfit:
    """The decisions of a sketch in which its knobs are as some entities say, and what is changed.

    names   what a knob is called here, where it is not as there
    """
    knobs = {knob.name: knob for knob in sketch.knobs}
    decisions = sketch.defaults
    named: set[str] = set()
    for entity in entities:
        knob = knobs.get(names.get(entity.name, entity.name))
        if knob is None:
            return _Misfit(f"no knob {entity.name}")
        taken = _taken(knob, entity)
        if taken is None:
            return _Misfit(f"{entity} is none of its values", is_other=not knob.is_open)
        decisions |= taken
        named |= taken.keys()
        choices = [choice for choice in sketch.choices if set(choice.names) & taken.keys()]
        rows = [tuple(decisions[name] for name in choice.names) for choice in choices]
        if any(row not in choice.values for row, choice in zip(rows, choices, strict=True)):
            return _Misfit(f"{entity} is none of its values")
    if sketch.is_valid(decisions):
        return decisions, ""
    others = decisions | _smallest(sketch, named)
    if sketch.is_valid(others):
        return others, ""
    fewer = _with_fewer_threads(sketch, decisions)
    if fewer is not None and sketch.is_valid(fewer[0]):
        return fewer
    broken = [limit for limit in sketch.limits if not limit.holds(decisions)]
    return _Misfit(next(map(_excess, broken, (decisions,) * len(broken))))


def _excess(limit: Limit, decisions: Mapping[str, int]) -> str:
    """What exceeds a limit, for a person."""
    if limit.what:
        return f"{limit.what}: {limit.value(decisions)}, more than {limit.most}"
    return "the tiles do not fit into registers"


def _with_fewer_threads(
    sketch: Sketch, decisions: Mapping[str, int]
) -> tuple[dict[str, int], str] | None:
    """Decisions with fewer threads, each of which does the work of several, and the change."""
    limit = next((each for each in sketch.limits if each.what == THREADS_OF_BLOCK), None)
    if limit is None:
        return None
    changed = dict(decisions)
    while not limit.holds(changed):
        name = max(limit.names, key=lambda each: changed[each])
        factor = next((n for n in range(2, changed[name] + 1) if changed[name] % n == 0), None)
        names = next(choice.names for choice in sketch.choices if name in choice.names)
        at = names.index(name)
        if factor is None or len(names) < 2:
            return None
        changed[name] //= factor
        changed[names[at - 1 if at else at + 1]] *= factor
    for choice in sketch.choices:
        if tuple(changed[name] for name in choice.names) not in choice.values:
            return None
    was, now = limit.value(decisions), limit.value(changed)
    return changed, f"{now} threads of a block for {was}"


def _smallest(sketch: Sketch, named: Set[str]) -> dict[str, int]:
    """The smallest tiles of the choices of a sketch that some decisions do not fix."""
    sizes: dict[str, int] = {}
    for choice in sketch.choices:
        if not named & set(choice.names):
            sizes |= dict(zip(choice.names, min(choice.values, key=prod), strict=True))
    return sizes


def _taken(knob: Knob, entity: LoggedEntity) -> dict[str, int] | None:
    """The decisions with which a knob has an entity's value; None if it cannot have it."""
    if knob.entity.value != entity.kind:
        return None
    wanted = entity.value if isinstance(entity.value, tuple) else (entity.value,)
    parts = knob.value if isinstance(knob.value, tuple) else (knob.value,)
    if knob.entity is Entity.SPLIT:
        wanted, parts = wanted[1:], parts[1:]
        wanted = (*(1 for _ in range(len(parts) - len(wanted))), *wanted)
    if len(wanted) != len(parts):
        return None
    decisions: dict[str, int] = {}
    for part, value in zip(parts, wanted, strict=True):
        if isinstance(part, Decision) and isinstance(value, int):
            decisions[part.name] = value
        elif part != value:
            return None
    return decisions


_Maker = Callable[[AutoTvmLine], Graph]


def graph_of_task(line: AutoTvmLine) -> Graph | str:
    """The program of a line, or why there is none."""
    operator = line.task.split(".")[0].split("_")[0]
    make = _MAKERS.get("depthwise" if line.task.startswith("depthwise_conv2d") else operator)
    if make is None:
        return f"no program is known for the task {line.task}"
    if any(tensor.dtype != "float32" for tensor in line.tensors):
        return "its tensors are not float32"
    try:
        return make(line)
    except (TensorwrightError, ValueError, IndexError) as error:
        return f"its arguments are none of {line.task}: {error}"


def _convolution(line: AutoTvmLine) -> Graph:
    """data (n, c, *spatial), weights (oc, c/groups, *kernel), strides, padding, dilation."""
    data, weights = line.tensors[:2]
    strides, padding, dilations = (_numbers(each) for each in line.arguments[2:5])
    count = len(data.shape) - 2
    if len(weights.shape) != len(data.shape) or len(strides) != count:
        raise ValueError("data and weights are not NCHW and OIHW")
    if len(padding) == count:
        padding = padding * 2
    groups = data.shape[1] // weights.shape[1]
    if line.task.startswith("depthwise"):  # weights (c, multiplier, *kernel)
        groups = data.shape[1]
        weights_shape = (weights.shape[0] * weights.shape[1], 1, *weights.shape[2:])
    else:
        weights_shape = weights.shape
    b = GraphBuilder(line.task)
    x, w = b.input("x", data.shape), b.constant(np.zeros(weights_shape, np.float32))
    y = b.add("conv", x, w, strides=strides, pads=padding, dilations=dilations, groups=groups)
    return b.finish((y,))


def _dense(line: AutoTvmLine) -> Graph:
    """data (m, k), weights (n, k), perhaps a bias."""
    data, weights = line.tensors[:2]
    if len(data.shape) != 2 or data.shape[1:] != weights.shape[1:]:
        raise ValueError("data and weights are not (m, k) and (n, k)")
    b = GraphBuilder(line.task)
    x = b.input("x", data.shape)
    w = b.constant(np.zeros(tuple(reversed(weights.shape)), np.float32))
    return b.finish((b.add("matmul", x, w),))


def _batched(line: AutoTvmLine) -> Graph:
    """x (batch, m, k), y (batch, n, k); the shape of the result, its type, which are transposed."""
    x_shape, y_shape = (each.shape for each in line.tensors[:2])
    transposed = [each for each in line.arguments if isinstance(each, bool)]
    if transposed not in ([], [False, True]):
        raise ValueError("its operands are not (batch, m, k) and (batch, n, k)")
    if len(x_shape) != 3 or x_shape[::2] != y_shape[::2]:
        raise ValueError("x and y are not (batch, m, k) and (batch, n, k)")
    b = GraphBuilder(line.task)
    batch, columns, terms = y_shape
    x, y = b.input("x", x_shape), b.input("y", (batch, terms, columns))
    return b.finish((b.add("matmul", x, y),))


_MAKERS: dict[str, _Maker] = {
    "conv1d": _convolution,
    "conv2d": _convolution,
    "conv3d": _convolution,
    "depthwise": _convolution,
    "group": _convolution,
    "dense": _dense,
    "batch": _batched,
}


def _numbers(argument: Argument) -> tuple[int, ...]:
    if not isinstance(argument, tuple) or not all(type(each) is int for each in argument):
        raise ValueError(f"{argument!r} are not whole numbers")
    return tuple(each for each in argument if isinstance(each, int))
