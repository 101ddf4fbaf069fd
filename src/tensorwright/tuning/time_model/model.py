"""The time model: the expected time of a program, and how uncertain it is, before it is measured.

    log2 seconds of a statement = that of the roofline + the trees' values for its row,
                                  or what its multiply-adds take at the peak, if that is more
    seconds of a program        = the sum over its statements
                                  + what its threads wait for lines of others (`rows.py`)

Two forests read the same rows.  One predicts the median, the other the time that is exceeded once
in ten times (the upper estimate). Their distance is the uncertainty.  Among programs of equal
medians, the certain one is the better choice:

    score = median + caution * (upper - median)        in log2 of seconds, lower is better

The workloads on which a time model was trained: others must judge it.

A key is 16 hexadecimal digits; its first 8 are kept as a number. With 7,000 keys, one in 600,000
other workloads is taken for one of them, and excluded needlessly.

A time model as a file: plain arrays, see `saved_model.py`.

    about      JSON as bytes: {"kind": "tensorwright time model", "schema": 1, "tool": "0.1.0",
               "rows": "9f3c...", "content": "77ab...", "policy": {"caution": 0.5, "margin": 0.1},
               "statistics": {...}}
    median_starts, median_features, median_children, median_values     see `Forest`
    upper_starts, ...
    trained_steps   the workloads that it was trained on, see `TrainedKeys`; older files have none

`rows` is a digest of the names of the rows' columns: trees that ask for others are refused.
`content` is one of everything else: so a damaged file is refused, too.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import RecordError
from tensorwright.machine import Machine
from tensorwright.tuning.models import Features
from tensorwright.tuning.models.saved_model import ArrayFile, Arrays
from tensorwright.tuning.models.trees.forest import ARRAYS, Forest
from tensorwright.tuning.time_model import rows

_DIGITS = 8


@dataclass(frozen=True, slots=True, eq=False)
class TrainedKeys:
    """Keys of workloads; `key in keys` asks for one.

    numbers   their first digits, ascending
    """

    numbers: NDArray[np.uint32]

    @classmethod
    def of(cls, keys: Iterable[str]) -> Self:
        """From whole keys."""
        return cls(np.array(sorted({_number(key) for key in keys}), np.uint32))

    @classmethod
    def of_steps(cls, steps: NDArray[np.uint32]) -> Self:
        """The inverse of `steps`."""
        return cls(np.cumsum(steps, dtype=np.uint32))

    @property
    def steps(self) -> NDArray[np.uint32]:
        """The distance of each number from the one before it: smaller when compressed."""
        return np.diff(self.numbers, prepend=np.uint32(0))

    def __contains__(self, key: str) -> bool:
        number = _number(key)
        position = int(np.searchsorted(self.numbers, number))
        return position < len(self.numbers) and int(self.numbers[position]) == number

    def __len__(self) -> int:
        return len(self.numbers)


def _number(key: str) -> int:
    return int(key[:_DIGITS], 16)


Seconds = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Policy:
    """How a schedule is chosen by what is predicted.

    caution            how much uncertainty counts against a program
    margin             the schedule by rule is left for one whose score is lower by more than so
                       much (log2)
    algorithm_margin   the same for a schedule by rule that computes by another algorithm
    roofline_margin    nor is it left for one that the roofline takes to be slower by more than so
                       much (log2): trees that have seen few programs of a sort are wrong where
                       all comes from memory; the roofline is, where loops share what it counts

    What is chosen among hundreds is overrated more often than what was measured to train: the
    numbers are from choices for fresh random networks (benchmarks/choice_margin.py).
    Where a roofline margin of 0.5 changes the choice for a fresh network, what is chosen takes 0.91
    (AVX-512) and 0.93 (AVX2) of the time that it takes without any.
    Other algorithms are priced with the sizes chosen by rule, a few schedules: of 80 that were
    expected to be better by 0.1 none was slower, and were the roofline asked they would gain less
    (the margin was set on the same 80).
    """

    caution: float = 0.5
    margin: float = 0.3
    algorithm_margin: float = 0.1
    roofline_margin: float = 0.5

    def __post_init__(self) -> None:
        for name in ("caution", "margin", "algorithm_margin", "roofline_margin"):
            if not 0.0 <= getattr(self, name) <= 10.0:
                raise RecordError(
                    stage="time model",
                    where=name,
                    reason=f"{getattr(self, name)} is not between 0 and 10",
                    remedy="train it again",
                )


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """For some programs: log2 of seconds, (programs,) each.

    upper      exceeded once in ten times; never below the median
    roofline   of the analytic model, which the trees correct
    """

    median: Seconds
    upper: Seconds
    roofline: Seconds

    def scores(self, caution: float) -> Seconds:
        """The scores for a choice: lower is better."""
        scores: Seconds = self.median + caution * (self.upper - self.median)
        return scores

    def of(self, number: int) -> Prediction:
        """That of one program."""
        one = slice(number, number + 1)
        return Prediction(self.median[one], self.upper[one], self.roofline[one])

    def later(self, seconds: float) -> Prediction:
        """The same programs, each slower by some seconds; the roofline stays."""
        if not seconds:
            return self
        more = np.log2(seconds)
        median, upper = (np.logaddexp2(each, more) for each in (self.median, self.upper))
        return Prediction(median, upper, self.roofline)


@dataclass(frozen=True, slots=True, eq=False)
class TimeModel:
    """Trained trees, and the policy of choosing by them.  Threads: any number may predict at once.

    statistics   of its training and accuracy, for people: plain data
    trained      the workloads that it was trained on; None if they are not recorded
    """

    median: Forest
    upper: Forest
    policy: Policy = field(default_factory=Policy)
    statistics: Mapping[str, Any] = field(default_factory=dict)
    trained: TrainedKeys | None = None

    def __post_init__(self) -> None:
        for trees in (self.median, self.upper):
            if trees.columns != len(rows.ROW_NAMES):
                raise RecordError(
                    stage="time model",
                    where="trees",
                    reason=f"their rows have {trees.columns} columns, not {len(rows.ROW_NAMES)}",
                    remedy="train it again",
                )

    @property
    def digest(self) -> str:
        """A short text that differs from that of any other model, for the keys of caches."""
        digest = hashlib.sha256(repr((rows.ROW_DIGEST, self.policy)).encode())
        for trees in (self.median, self.upper):
            for name in ARRAYS:
                digest.update(getattr(trees, name).tobytes())
        return digest.hexdigest()[:16]

    def predict(self, features: Features, machine: Machine) -> Prediction:
        """The times of programs.  Shapes:  features (programs, statements, features)."""
        given = rows.rows_of(features, machine)
        median, upper = (
            rows.program_scores(given.base, trees.sums(given.rows), given.floor)
            for trees in (self.median, self.upper)
        )
        return Prediction(median, np.maximum(upper, median), rows.log2_sum(given.base))


FILE = ArrayFile("time model", 1, "install tensorwright again, or train the model again")
_TRAINED = "trained_steps"


def save_time_model(model: TimeModel, path: str | os.PathLike[str]) -> None:
    """Write a model to a file; equal models give equal files.  Raises: OutputError."""
    forests = {"median": model.median, "upper": model.upper}
    arrays = {
        f"{of}_{name}": x for of, trees in forests.items() for name, x in trees.arrays.items()
    }
    if model.trained is not None:
        arrays |= {_TRAINED: model.trained.steps}
    fields: dict[str, Any] = {
        "rows": rows.ROW_DIGEST,
        "policy": asdict(model.policy),
        "statistics": dict(model.statistics),
    }
    FILE.save(path, fields, arrays)


def load_time_model(path: str | os.PathLike[str]) -> TimeModel:
    """Read what `save_time_model` wrote.

    Raises:  RecordError for a file that cannot be read, is damaged, comes from another version, or
             was trained on other rows.
    """
    about, arrays = FILE.load(path)
    if about.get("rows") != rows.ROW_DIGEST:
        reason = f"it was trained on other rows, by version {about.get('tool')!r}"
        raise FILE.fault(path, reason)
    try:
        return TimeModel(
            _trees(arrays, "median"),
            _trees(arrays, "upper"),
            Policy(**about["policy"]),
            about["statistics"],
            TrainedKeys.of_steps(arrays[_TRAINED]) if _TRAINED in arrays else None,
        )
    except RecordError as error:
        raise FILE.fault(path, f"{error.where}: {error.reason}") from None
    except (KeyError, TypeError) as error:
        reason = f"a field is missing, or is not what it should be: {error}"
        raise FILE.fault(path, reason) from None


def _trees(arrays: Arrays, forest: str) -> Forest:
    return Forest.of_arrays(arrays, len(rows.ROW_NAMES), f"{forest}_", is_rounded=True)
