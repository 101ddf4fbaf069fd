"""The feature sets by name: how programs are described to a cost model.

statement   164 numbers of each statement, Ansor's (`names.py`)
knob        the raw configuration (`sets/knob.py`)
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from tensorwright.base import Target, UsageError, did_you_mean
from tensorwright.schedule import ScheduleState
from tensorwright.tuning.features.featurizer import Featurizer
from tensorwright.tuning.features.names import FEATURE_NAMES
from tensorwright.tuning.features.sets import KnobFeatures
from tensorwright.tuning.features.source import FeatureSource
from tensorwright.tuning.space.sketch import Space

OpenSource = Callable[[ScheduleState, Target, Space], FeatureSource]


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


def _statement(state: ScheduleState, target: Target, space: Space) -> FeatureSource:
    return Featurizer(state, target)


def _knob(state: ScheduleState, target: Target, space: Space) -> FeatureSource:
    return KnobFeatures(space)


STATEMENT = FeatureSet("statement", FEATURE_NAMES, _statement)
FEATURE_SETS: dict[str, FeatureSet] = {
    each.name: each for each in (STATEMENT, FeatureSet("knob", (), _knob))
}


@lru_cache(maxsize=64)
def feature_set(name: str) -> FeatureSet:
    """The set of a name.  Raises: UsageError."""
    found = FEATURE_SETS.get(name)
    if found is None:
        known = tuple(FEATURE_SETS)
        raise UsageError(
            stage="features",
            where=f"features {name!r}",
            reason="there are no features of this name",
            remedy=did_you_mean(name, known, "one of " + ", ".join(known)),
        )
    return found
