"""Points of named sizes: the values for which an open network is tuned.

points_of(sizes, {"batch": 1, "sequence": (1, 32)})   batch=1,sequence=1 and batch=1,sequence=32
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from math import isqrt
from typing import TypeAlias

from tensorwright import base
from tensorwright.expr import NamedSize, Placeholder
from tensorwright.graph.sizes import representative, usual_sizes

Values: TypeAlias = Mapping[str, int | Sequence[int]]
SizesAt: TypeAlias = Values | Sequence[Values]
"""Numbers for sizes, by name: all combinations of these; or several such mappings."""


@dataclass(frozen=True, slots=True)
class SizePoint:
    """A number for each named size.

    numbers   sorted pairs (name, number)      count   how often the point was named
    shown     the sizes in its text: those that differ between points that a caller names; all
              where none is named here
    """

    numbers: tuple[tuple[str, int], ...]
    count: int = 1
    shown: tuple[str, ...] = ()

    @property
    def values(self) -> dict[str, int]:
        """The numbers by name."""
        return dict(self.numbers)

    def __str__(self) -> str:
        names = self.shown or tuple(self.values)
        return base.sizes_text({name: number for name, number in self.numbers if name in names})


def points_of(
    sizes: Sequence[NamedSize],
    at: SizesAt | None,
    counted: Iterable[str] = (),
    inputs: Iterable[base.TensorType | Placeholder] = (),
) -> tuple[SizePoint, ...]:
    """The points that a caller names, each once; for None, a few points within the bounds.

    A size that is not named has the usual number, by the shapes of the inputs; those of
    `counted`, which loops decide, have typical ones.
    Raises:  UsageError for a name that no size has, for a number that a size may not be, and where
             there are no sizes at all.
    """
    decided = frozenset(counted)
    given = [size for size in sizes if size.name not in decided]
    inputs = tuple(inputs)
    usual = representative(sizes) | usual_sizes(given, inputs)
    if at is None:
        batches = base.batch_sizes([each.shape for each in inputs], [size.name for size in given])
        named = _suggested([size for size in given if size.name not in batches] or given)
    else:
        listed = (at,) if isinstance(at, Mapping) else tuple(at)
        named = [point for values in listed for point in _combined(given, values)]
    points: dict[tuple[tuple[str, int], ...], SizePoint] = {}
    for each in named:
        point = SizePoint(tuple(sorted({**usual, **each}.items())))
        before = points.get(point.numbers)
        points[point.numbers] = point if before is None else replace(before, count=before.count + 1)
    columns = zip(*points, strict=True)  # of each size, by name
    differing = tuple(column[0][0] for column in columns if len(set(column)) > 1)
    shown = tuple(size.name for size in given) if at is None else differing
    return tuple(replace(point, shown=shown) for point in points.values())


def between(sizes: Sequence[NamedSize], points: Sequence[SizePoint]) -> tuple[SizePoint, ...]:
    """The geometric means of neighbouring points, without those points."""
    order = sorted({point.numbers for point in points})
    divisors = {size.name: size.divisor for size in sizes}
    means: dict[tuple[tuple[str, int], ...], None] = {}
    for low, high in pairwise(order):
        pairs = zip(low, high, strict=True)
        means[tuple((name, _mean(a, b, divisors[name])) for (name, a), (_, b) in pairs)] = None
    shown = points[0].shown if points else ()
    return tuple(SizePoint(numbers, shown=shown) for numbers in means if numbers not in order)


def _combined(sizes: Sequence[NamedSize], values: Values) -> list[dict[str, int]]:
    """All combinations of the numbers for some sizes."""
    by_name = {size.name: size for size in sizes}
    numbers: list[list[tuple[str, int]]] = []
    for name, given in values.items():
        if name not in by_name:
            listed = ", ".join(f"{size.name} in {size.bounds}" for size in sizes)
            none = "it has none: all its shapes are numbers"
            raise base.UsageError(
                stage="sizes",
                where=f"size {name}",
                reason="there is no such size to tune for",
                remedy=base.did_you_mean(str(name), by_name, f"its sizes are {listed or none}"),
            )
        several = (given,) if isinstance(given, int) else tuple(given)
        numbers.append([(name, _admitted(by_name[name], number)) for number in several])
    return [dict(pairs) for pairs in product(*numbers)] if numbers else []


def _admitted(size: NamedSize, number: int) -> int:
    quotient, rest = divmod(number, size.divisor)
    if rest or quotient < size.least or (size.most is not None and quotient > size.most):
        raise base.UsageError(
            stage="sizes",
            where=f"size {size.name} = {number}",
            reason=f"it is {size.name} in {size.bounds}",
            remedy="name another number, or give other bounds",
        )
    return number


def _suggested(sizes: Sequence[NamedSize]) -> list[dict[str, int]]:
    """The least and typical sizes and the points between; of a single size, the greatest, too."""
    typical = representative(sizes)
    low = {size.name: size.bounds.least for size in sizes}
    points = [low, halfway(sizes), typical]
    if len(sizes) == 1 and sizes[0].most is not None:
        points.append({sizes[0].name: _greatest(sizes[0])})
    return points if sizes else []


def halfway(sizes: Iterable[NamedSize]) -> dict[str, int]:
    """Numbers in the middle between the bounds, on a logarithmic scale."""
    return {s.name: _mean(s.bounds.least, _greatest(s), s.divisor) for s in sizes}


def _greatest(size: NamedSize) -> int:
    """The greatest number; a typical one where there is none."""
    return size.bounds.typical if size.bounds.most is None else size.bounds.most


def _mean(low: int, high: int, divisor: int) -> int:
    """A multiple of the divisor near the geometric mean."""
    mean = isqrt(low * high)
    return max(min(low, high), mean - mean % divisor)
