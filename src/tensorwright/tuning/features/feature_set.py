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

from tensorwright.base import CpuTarget, LaboratoryPart, UsageError, did_you_mean
from tensorwright.schedule import ScheduleState
from tensorwright.tuning.features.featurizer import Featurizer
from tensorwright.tuning.features.groups import FEATURE_NAMES
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


STATEMENT = FeatureSet("statement", FEATURE_NAMES, _statement)
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
    if name == STATEMENT.name:
        return STATEMENT
    if _CURVE_NAME.sub(r"\1", name) not in _OF_LABORATORY:
        raise unknown_features(name)
    find = LaboratoryPart(f"features {name!r}", "feature_sets", "feature_set").load()
    chosen: FeatureSet = find(name)
    return chosen


def unknown_features(name: str, reason: str = "there are no features of this name") -> UsageError:
    """What is raised for a name that names no features, with a list."""
    names = "one of " + ", ".join(FEATURE_SETS) + "; curve-paired@20:count/reuse,count>bottomup"
    return UsageError(
        stage="features",
        where=f"features {name!r}",
        reason=reason,
        remedy=did_you_mean(name, FEATURE_SETS, names),
    )
