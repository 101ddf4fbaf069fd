"""The feature sets by name: how programs are described to a cost model.

`statement` is 173 numbers of each statement, Ansor's and more (`groups.py`). All others are part of
the laboratory and are loaded by name: the raw configuration, the loops one after the other or as a
tree, curves of relations between quantities of loops.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tensorwright.base import (
    ByKind,
    LaboratoryPart,
    Target,
    TargetKind,
    TargetProtocol,
    UsageError,
    did_you_mean,
    of_kind,
)
from tensorwright.schedule import ScheduleState
from tensorwright.tuning.features.featurizer import Featurizer
from tensorwright.tuning.features.groups import FEATURE_NAMES, GPU_FEATURE_NAMES
from tensorwright.tuning.features.source import FeatureSource
from tensorwright.tuning.space.sketch import Space

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


def _statement(state: ScheduleState, target: Target, space: Space) -> FeatureSource:
    return Featurizer(state, target)


STATEMENT = FeatureSet("statement", FEATURE_NAMES, _statement)
LAUNCH = FeatureSet("launch", GPU_FEATURE_NAMES, _statement)
STATEMENT_SETS: ByKind[FeatureSet] = {TargetKind.CPU: (STATEMENT,), TargetKind.GPU: (LAUNCH,)}
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
    find = LaboratoryPart(f"features {name!r}", "feature_sets", "feature_set").load()
    named: FeatureSet = find(name)
    return named


def features_for(name: str, target: TargetProtocol) -> FeatureSet:
    """The set of a name, for a target: `statement` has other columns for each kind of machine.

    Raises:  as `feature_set`.
    """
    (own,) = of_kind(STATEMENT_SETS, target, "features of statements")
    chosen = feature_set(name)
    return own if describes_statements(chosen) else chosen


def describes_statements(features: FeatureSet) -> bool:
    """Whether analytic models can judge programs by these features."""
    return features in (STATEMENT, LAUNCH)


def unknown_features(name: str, reason: str = "there are no features of this name") -> UsageError:
    """The error for a name of no feature set; it lists the names."""
    names = "one of " + ", ".join(FEATURE_SETS) + "; curve-paired@20:count/reuse,count>bottomup"
    return UsageError(
        stage="features",
        where=f"features {name!r}",
        reason=reason,
        remedy=did_you_mean(name, FEATURE_SETS, names),
    )
