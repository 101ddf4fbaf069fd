"""The feature sets by name, but for that of statements, which is the compiler's.

The raw configuration: which structure, and the number of each decision.

    row = (sketch, family, decision 1, decision 2, ...)

One row for each program.  `sketch` and `family` are numbers in the order of the space; a column
belongs to a name of a decision, in the order in which the sketches of the space have them, and is 0
for sketches without it.  Nothing is lowered, so that describing a candidate is a look-up in tables;
but a column means something in one space only, and a model of these features serves one workload.

Source:   Chen et al., AutoTVM, NeurIPS 2018, section 6 (its configuration features), with a column
          for the structure, since its template has one structure and a space has many.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import CpuTarget, UsageError
from tensorwright.expr import Decision
from tensorwright.schedule import Primitive, ScheduleState, Trace, format_trace
from tensorwright.tuning.features import FeatureSet, FeatureSource, OpenSource, unknown_features
from tensorwright.tuning.features.columns import Features
from tensorwright.tuning.space.sketch import Sketch, Space
from tensorwright_lab.feature_sets import loop_features
from tensorwright_lab.feature_sets.loop_kernel import LoopFormula
from tensorwright_lab.feature_sets.relation_curves import (
    PAIRED,
    PUBLISHED,
    QUANTITIES,
    SAMPLES,
    CurveSettings,
    relation_curves,
)

_STRUCTURE = 2


class KnobFeatures:
    """A `FeatureSource` for one space."""

    def __init__(self, space: Space) -> None:
        self._space = space
        names = dict.fromkeys(
            name for sketch in space.sketches for each in sketch.choices for name in each.names
        )
        self.columns: tuple[str, ...] = ("sketch", "family", *names)
        self._places = {name: n for n, name in enumerate(self.columns[_STRUCTURE:], _STRUCTURE)}
        families = list(dict.fromkeys(sketch.family for sketch in space.sketches))
        self._structure = {
            sketch.trace: (number, families.index(sketch.family))
            for number, sketch in enumerate(space.sketches)
        }

    def of_sketch(self, sketch: Sketch, genes: NDArray[np.int64]) -> Features:
        """As `FeatureSource.of_sketch`; one row a program."""
        structure = self._structure.get(sketch.trace)
        if structure is None:
            raise _foreign(f"sketch {sketch.name}")
        features = np.zeros((len(genes), 1, len(self.columns)), np.float32)
        features[:, 0, :_STRUCTURE] = structure
        for name, column in sketch.columns(genes).items():
            features[:, 0, self._places[name]] = column
        return features

    def of_trace(self, trace: Trace) -> Features:
        """As `FeatureSource.of_trace`: the decisions are found by comparing with each sketch."""
        for sketch in self._space.sketches:
            decisions = matched(sketch, trace)
            genes = None if decisions is None else sketch.genes_of(decisions)
            if genes is not None:
                return self.of_sketch(sketch, np.array([genes], np.int64).reshape(1, -1))
        raise _foreign(f"trace {format_trace(trace)!r}")


def matched(sketch: Sketch, taken: Trace) -> dict[str, int] | None:
    """The decisions with which a sketch becomes a trace; None where there are none.

    Decisions that stand somewhere by themselves are read off; of the others, each choice is the
    first row that contradicts nothing.
    """
    if tuple(map(type, sketch.trace)) != tuple(map(type, taken)):
        return None
    values = {
        item.name: value
        for item, value in _pairs(sketch.trace, taken)
        if isinstance(item, Decision) and isinstance(value, int)
    }
    for choice in sketch.choices:
        if not set(choice.names) <= set(values):
            rows = (dict(zip(choice.names, row, strict=True)) for row in choice.values)
            values |= next((row for row in rows if _agrees(sketch, values, row, taken)), {})
    return values if sketch.bound(values) == taken else None


def _agrees(
    sketch: Sketch, values: Mapping[str, int], row: Mapping[str, int], taken: Trace
) -> bool:
    """Whether a row contradicts neither what is known nor what its steps became."""
    if any(values.get(name, value) != value for name, value in row.items()):
        return False
    bound = sketch.bound({**values, **row})
    return all(one == other for one, other in _pairs(bound, taken) if isinstance(one, int))


def _pairs(one: Trace, other: Trace) -> Iterator[tuple[object, object]]:
    """The items of the fields of two traces of like steps."""
    for step, its in zip(one, other, strict=True):
        yield from zip(_items(step), _items(its), strict=False)


def _items(step: Primitive) -> list[object]:
    """The fields of a primitive, those of tuples one by one."""
    items: list[object] = []
    for field in fields(step):  # type: ignore[arg-type]
        value = getattr(step, field.name)
        items += value if isinstance(value, tuple) else (value,)
    return items


def _foreign(what: str) -> UsageError:
    return UsageError(
        stage="features",
        where=what,
        reason="it is of another space: there are no columns for its decisions",
        remedy="features of loops describe any program",
    )


def _knob(state: ScheduleState, target: CpuTarget, space: Space) -> FeatureSource:
    return KnobFeatures(space)


def _loops(formula: LoopFormula) -> OpenSource:
    return lambda state, target, space: loop_features.LoopFeatures(state, formula)


LOOP_TREE = FeatureSet(
    "loop-tree", loop_features.LOOP_TREE_COLUMNS, _loops(loop_features.LOOP_TREES)
)
_PLAIN: Mapping[str, FeatureSet] = {
    each.name: each
    for each in (
        FeatureSet("knob", (), _knob),
        FeatureSet("itervar", loop_features.ITERVAR_COLUMNS, _loops(loop_features.ITERVAR)),
        FeatureSet("context", loop_features.CONTEXT_COLUMNS, _loops(loop_features.CONTEXT)),
        LOOP_TREE,
    )
}
_CURVES: Mapping[str, tuple[tuple[str, ...], int, bool]] = {
    "curve": (PUBLISHED, 1, False),
    "curve-fix": (PUBLISHED, SAMPLES, False),
    "curve-paired": (PAIRED, SAMPLES, True),
}

_CURVE_NAME = re.compile(r"(?P<kind>[a-z-]+)(@(?P<samples>[1-9]\d?))?(:(?P<relations>.+))?")
_RELATION = re.compile(rf"({'|'.join(QUANTITIES)})([/>])({'|'.join(QUANTITIES)})")


@lru_cache(maxsize=64)
def feature_set(name: str) -> FeatureSet:
    """The set of a name.  Raises: UsageError."""
    if name in _PLAIN:
        return _PLAIN[name]
    match = _CURVE_NAME.fullmatch(name)
    if match is None or match["kind"] not in _CURVES:
        raise unknown_features(name)
    relations, samples, is_paired = _CURVES[match["kind"]]
    settings = CurveSettings(
        _relations(name, match["relations"].split(",") if match["relations"] else relations),
        int(match["samples"] or samples),
        is_paired,
    )
    return FeatureSet(name, settings.columns, _loops(relation_curves(settings)))


def _relations(name: str, texts: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Relations one way each: "count/reuse" stands for both ways, "count>reuse" for one."""
    directions: dict[tuple[str, str], None] = {}
    for text in texts:
        match = _RELATION.fullmatch(text)
        if match is None or match[1] == match[3]:
            raise unknown_features(name, f"{text!r} is not a relation of {', '.join(QUANTITIES)}")
        directions[match[1], match[3]] = None
        if match[2] == "/":
            directions[match[3], match[1]] = None
    return tuple(directions)
