"""Records of schedules that came from templates, as AutoTVM's log lines.

The task is `tensorwright.<template>`, its arguments are the tensors of the program, and a keyword
names the workload.
"""

from __future__ import annotations

import json
import math
from datetime import datetime

from tensorwright.base import Target
from tensorwright.records import Record
from tensorwright.records.logs import AutoTvmLine, LoggedEntity, LoggedTensor, Result
from tensorwright.schedule import Workload, format_trace, state_of
from tensorwright.tuning.space.sketch import Sketch
from tensorwright.tuning.space.templates import template_sketches

TASK = "tensorwright"
_FAILED_S = 1e9  # AutoTVM's cost of a configuration that did not run
_FAILED = 4


class LineWriter:
    """Lines for the records of one workload."""

    def __init__(self, workload: Workload, target: Target) -> None:
        self._workload = workload
        self._target = target
        self._sketches = tuple(template_sketches(state_of(workload), target))

    def line_of(self, record: Record) -> AutoTvmLine | None:
        """The line of a record; None if no template makes its schedule."""
        decisions = dict(record.decisions)
        for sketch in self._sketches:
            genes = sketch.genes_of(decisions)
            if genes is not None and format_trace(sketch.bound(decisions)) == record.trace:
                return self._line(record, sketch, genes)
        return None

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
        for other in self._sketches:
            if other is sketch:
                break
            if other.family == sketch.family:
                number += math.prod(len(choice.values) for choice in other.choices)
        within = 0
        for choice, gene in zip(reversed(sketch.choices), reversed(genes), strict=True):
            within = within * len(choice.values) + gene
        return number + within
