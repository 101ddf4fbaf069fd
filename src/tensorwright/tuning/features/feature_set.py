"""The feature sets by name: how programs are described to a cost model.

    statement     173 numbers of each statement, Ansor's and more (`names.py`)
    knob          the raw configuration (`sets/knob.py`)
    itervar       the loops one after the other (`sets/itervar.py`)
    curve         relations of quantities of the loops, as published in code
    curve-fix     the same with all samples
    curve-paired  the same with points kept whole, and bottomup (`sets/relation_curves.py`)
    context       the loops in a length that does not depend on the operator (`sets/context.py`)
    loop-tree     the loops for a model that reads trees (`sets/loop_tree.py`)

Curves may be followed by the number of samples and by relations: "curve-paired@20",
"curve-fix:count/reuse,count>topdown".
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from tensorwright.base import CpuTarget, UsageError, did_you_mean
from tensorwright.schedule import ScheduleState
from tensorwright.tuning.features.featurizer import Featurizer
from tensorwright.tuning.features.loops.loop_features import LoopFeatures
from tensorwright.tuning.features.loops.loop_kernel import LoopFormula
from tensorwright.tuning.features.names import FEATURE_NAMES
from tensorwright.tuning.features.sets import (
    CONTEXT,
    CONTEXT_COLUMNS,
    ITERVAR,
    ITERVAR_COLUMNS,
    LOOP_TREE_COLUMNS,
    LOOP_TREES,
    PAIRED,
    PUBLISHED,
    QUANTITIES,
    SAMPLES,
    CurveSettings,
    KnobFeatures,
    relation_curves,
)
from tensorwright.tuning.features.source import FeatureSource
from tensorwright.tuning.space.sketch import Space

OpenSource = Callable[[ScheduleState, CpuTarget, Space], FeatureSource]


@dataclass(frozen=True, slots=True)
class FeatureSet:
    """A way to describe programs.

    columns   their names, in order; none where they depend on the space of the workload
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
        """Of the names of the columns in order: a model for others is refused."""
        return hashlib.sha256("\n".join(self.columns).encode()).hexdigest()[:16]


def _statement(state: ScheduleState, target: CpuTarget, space: Space) -> FeatureSource:
    return Featurizer(state, target)


def _knob(state: ScheduleState, target: CpuTarget, space: Space) -> FeatureSource:
    return KnobFeatures(space)


def _loops(formula: LoopFormula) -> OpenSource:
    return lambda state, target, space: LoopFeatures(state, formula)


STATEMENT = FeatureSet("statement", FEATURE_NAMES, _statement)
LOOP_TREE = FeatureSet("loop-tree", LOOP_TREE_COLUMNS, _loops(LOOP_TREES))
_PLAIN: Mapping[str, FeatureSet] = {
    each.name: each
    for each in (
        STATEMENT,
        FeatureSet("knob", (), _knob),
        FeatureSet("itervar", ITERVAR_COLUMNS, _loops(ITERVAR)),
        FeatureSet("context", CONTEXT_COLUMNS, _loops(CONTEXT)),
        LOOP_TREE,
    )
}
_CURVES: Mapping[str, tuple[tuple[str, ...], int, bool]] = {
    "curve": (PUBLISHED, 1, False),
    "curve-fix": (PUBLISHED, SAMPLES, False),
    "curve-paired": (PAIRED, SAMPLES, True),
}
FEATURE_SETS: tuple[str, ...] = (*_PLAIN, *_CURVES)
"""The names that need no more."""

_CURVE_NAME = re.compile(r"(?P<kind>[a-z-]+)(@(?P<samples>[1-9]\d?))?(:(?P<relations>.+))?")
_RELATION = re.compile(rf"({'|'.join(QUANTITIES)})([/>])({'|'.join(QUANTITIES)})")


@lru_cache(maxsize=64)
def feature_set(name: str) -> FeatureSet:
    """The set of a name.  Raises: UsageError."""
    if name in _PLAIN:
        return _PLAIN[name]
    match = _CURVE_NAME.fullmatch(name)
    if match is None or match["kind"] not in _CURVES:
        raise _unknown(name, "there are no features of this name")
    relations, samples, is_paired = _CURVES[match["kind"]]
    settings = CurveSettings(
        _relations(name, match["relations"].split(",") if match["relations"] else relations),
        int(match["samples"] or samples),
        is_paired,
    )
    return FeatureSet(name, settings.columns, _loops(relation_curves(settings)))


def _relations(name: str, texts: tuple[str, ...] | list[str]) -> tuple[tuple[str, str], ...]:
    """Relations one way each: "count/reuse" stands for both ways, "count>reuse" for one."""
    found: dict[tuple[str, str], None] = {}
    for text in texts:
        match = _RELATION.fullmatch(text)
        if match is None or match[1] == match[3]:
            raise _unknown(name, f"{text!r} is no relation of {', '.join(QUANTITIES)}")
        found[match[1], match[3]] = None
        if match[2] == "/":
            found[match[3], match[1]] = None
    return tuple(found)


def _unknown(name: str, reason: str) -> UsageError:
    known = "one of " + ", ".join(FEATURE_SETS) + "; curve-paired@20:count/reuse,count>bottomup"
    return UsageError(
        stage="features",
        where=f"features {name!r}",
        reason=reason,
        remedy=did_you_mean(name, FEATURE_SETS, known),
    )
