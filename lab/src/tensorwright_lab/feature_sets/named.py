"""The feature sets by name, but for that of statements, which is the compiler's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from tensorwright.base import CpuTarget
from tensorwright.schedule import ScheduleState
from tensorwright.tuning.features import FeatureSet, FeatureSource, OpenSource, unknown_features
from tensorwright.tuning.space import Space
from tensorwright_lab.feature_sets import loop_features
from tensorwright_lab.feature_sets.knob import KnobFeatures
from tensorwright_lab.feature_sets.loop_kernel import LoopFormula
from tensorwright_lab.feature_sets.relation_curves import (
    PAIRED,
    PUBLISHED,
    QUANTITIES,
    SAMPLES,
    CurveSettings,
    relation_curves,
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
