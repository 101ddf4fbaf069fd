"""Costs of operators that occur in no priced program: the roofline, corrected by similar operators.

    priced    matmul (64, 1024) (1024, 1024)     roofline 10 us, in its kernel 14 us
    asked     matmul (64, 1024) (1024, 3072)     roofline 30 us, so about 42 us

An e-graph has hundreds of products and convolutions that differ by an extent; choosing schedules
for each of them costs more than the search.  The error of a roofline is projected from the
operators with the nearest extents in programs that were priced anyway.  An operator that joins
kernels, such as a sum, is projected to cost as much as the costliest similar one: else every sum
would be replaced, since some lie in cheap kernels.  A graph that is chosen by projected costs is
priced as a program.

Source:  Shepard, A two-dimensional interpolation function for irregularly-spaced data, ACM 1968:
         means weighted by the inverse of squared distances.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import ne

import numpy as np
from numpy.typing import NDArray

from tensorwright.rewriting.networks import (
    ANCHORS,
    OperatorCosts,
    Roofline,
    TensorData,
    TypedOperator,
)
from tensorwright.rewriting.operators import PAIRS

_Kind = tuple[str, tuple[int, ...]]
_Numbers = NDArray[np.float64]


@dataclass(slots=True)
class _Samples:
    """Operators of one kind: the logarithms of their extents, their other traits, and the
    logarithms of their cost over the roofline.
    """

    extents: list[tuple[float, ...]] = field(default_factory=list)
    traits: list[tuple[object, ...]] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    table: _Numbers | None = None


class ProjectedCosts:
    """Costs of operators by a roofline and by the operators of priced programs.

    Mutable: `learn` adds operators.
    """

    def __init__(self, roofline: OperatorCosts | None = None) -> None:
        self._roofline = roofline or Roofline()
        self._samples: dict[_Kind, _Samples] = {}
        self._seconds: dict[TypedOperator, float] = {}

    def learn(self, priced: Iterable[tuple[TypedOperator, float]]) -> None:
        """Operators, and the seconds of each as part of a program."""
        self._seconds.clear()
        for use, seconds in priced:
            usual = self._roofline.seconds(use)
            if usual > 0.0 and seconds > 0.0:
                samples = self._samples.setdefault(_kind(use), _Samples())
                samples.extents.append(_extents(use))
                samples.traits.append(_traits(use))
                samples.errors.append(float(np.log2(seconds / usual)))
                samples.table = None

    def seconds(self, use: TypedOperator) -> float:
        """Seconds of an application of an operator; 0 where all of it is constant."""
        seconds = self._seconds.get(use)
        if seconds is None:
            usual = self._roofline.seconds(use)
            seconds = self._seconds[use] = usual * 2.0 ** self._error(use) if usual else 0.0
        return seconds

    def _error(self, use: TypedOperator) -> float:
        """The logarithm of the operator's projected cost over the roofline."""
        samples = self._samples.get(_kind(use))
        if samples is None:
            return 0.0
        if samples.table is None:
            samples.table = np.array(samples.extents, np.float64)
        own = _traits(use)
        unlike = [sum(map(ne, own, its)) for its in samples.traits]
        distances = np.abs(samples.table - np.array(_extents(use))).sum(axis=1) + unlike
        nearest = distances.min()
        errors = np.array(samples.errors)
        alike = errors[distances == 0.0]
        if use.operator not in ANCHORS:  # its cost depends on the kernel that it joins
            return float(alike.max()) if alike.size else 0.0
        if alike.size:
            return float(alike.mean())
        weights = (nearest / distances) ** 2
        return float((weights * errors).sum() / weights.sum())


def _kind(use: TypedOperator) -> _Kind:
    """Operators of one kind have extents that can be compared."""
    return use.operator, (len(use.params), *(len(each.shape) for each in (*_args(use), use.result)))


def _extents(use: TypedOperator) -> tuple[float, ...]:
    shapes = (each.extents for each in (*_args(use), use.result))
    return tuple(float(np.log2(max(1, extent))) for shape in shapes for extent in shape)


def _traits(use: TypedOperator) -> tuple[object, ...]:
    """The traits that tell two operators of a kind apart besides their extents."""
    return (*use.params, *(arg.is_constant for arg in _args(use)))


def _args(use: TypedOperator) -> tuple[TensorData, ...]:
    """The arguments; those of which the order costs nothing sorted."""
    if use.operator not in PAIRS:
        return use.args
    return tuple(sorted(use.args, key=lambda arg: (arg.is_constant, arg.extents)))
