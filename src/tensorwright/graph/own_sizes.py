"""A workload with a size of its own for each extent that a formula of the network's sizes says.

    conv of layer 1   y[i] = x[i] + x[i + 2] for i in 0..samples//4 - 5
    conv of layer 2   y[i] = x[i] + x[i + 2] for i in 0..samples//4 - 7
    with own sizes    y[i] = x[i] + x[i + 2] for i in 0..samples    (samples//4 - 5, samples//4 - 7)

So layers that differ only in how the network says an extent share one schedule and one kernel, to
which each call gives its own numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from tensorwright import expr
from tensorwright.graph.workload import Workload, workload_key

_GRAIN = 3  # bits: least numbers are rounded down to powers of 8, greatest numbers up
_FAR = 1 << 40  # stands for the greatest number of a size that has none


@dataclass(frozen=True, slots=True, eq=False)
class OwnSizes:
    """A workload in terms of sizes of its own, and what these are in the network.

    workload   equal for layers that differ only in how the network says an extent
    values     what each of its sizes is; a size that is not in there is the network's
    """

    workload: Workload
    values: Mapping[expr.NamedSize, expr.Index]


@lru_cache(maxsize=1 << 10)
def with_own_sizes(workload: Workload) -> OwnSizes:
    """The workload with a size of its own for each formula of the network's sizes.

    The formula is the largest one outside of which none of its sizes is used. A number that all
    extents add to it belongs to it. A schedule may ask for the bounds of a size: those of the
    formula, rounded, so that layers of similar bounds are equal.
    """
    extents = expr.extents_of_tensors(workload.outputs)
    indices = expr.indices_of_tensors(workload.outputs)
    numbers = workload.typical_sizes
    names = set(numbers)
    parts: dict[expr.Index, expr.Index] = {}
    values: dict[expr.NamedSize, expr.Index] = {}
    usual: dict[str, int] = {}
    for formula in _whole_formulas((*extents, *indices)):
        addends = [_addend(extent, formula) for extent in extents]
        first = min((each for each in addends if each is not None), default=None)
        whole = formula + (first or 0)
        if isinstance(formula, expr.NamedSize) and (not first or formula.divisor > 1):
            continue
        size = _size_of(whole, names, is_extent=first is not None)
        if size is None:
            continue
        names.add(size.name)
        parts[formula], values[size] = size - (first or 0), whole
        number = expr.with_sizes(whole, numbers)
        assert isinstance(number, int), "all sizes have typical numbers"
        usual[size.name] = max(number, size.least, 1)
    if not values:
        return OwnSizes(workload, values)
    outputs = expr.map_indices(workload.outputs, lambda given: expr.replace_parts(given, parts))
    order = expr.topological_order(*outputs)
    read = {each.name: each for each in order if isinstance(each, expr.Placeholder)}
    inputs = tuple(read.get(each.name, each) for each in workload.inputs)
    told = tuple(sorted(usual.items()))
    key = workload_key(outputs, inputs, workload.constants, told)
    own = replace(workload, inputs=inputs, outputs=outputs, key=key, usual=told)
    return OwnSizes(own, values)


def _whole_formulas(expressions: Iterable[expr.Index]) -> Sequence[expr.IndexExpr]:
    """The largest formulas of sizes that have no size in common, in the order of their texts."""
    formulas = {each for expression in expressions for each in _formulas(expression)}
    while True:
        users: dict[expr.NamedSize, list[expr.IndexExpr]] = {}
        for each in sorted(formulas, key=str):
            for size in expr.named_sizes_of(each):
                users.setdefault(size, []).append(each)
        shared = {each for together in users.values() if len(together) > 1 for each in together}
        cut = max(
            (each for each in shared if each not in users),
            key=lambda each: (len(str(each)), str(each)),
            default=None,
        )
        if cut is None:
            return sorted(formulas, key=str)
        formulas.remove(cut)
        formulas.update(each for part in expr.parts_of(cut) for each in _formulas(part))


def _formulas(expression: expr.Index) -> Iterator[expr.IndexExpr]:
    """The largest parts that consist of sizes, other than sums: sizes, quotients, minima."""
    if isinstance(expression, int):
        return
    if isinstance(expression, expr.Poly) or not expression.is_size:
        for part in expr.parts_of(expression):
            yield from _formulas(part)
    else:
        yield expression


def _addend(extent: expr.Index, formula: expr.IndexExpr) -> int | None:
    """The number that an extent adds to a formula, -2 for 3*(n//4 - 2); None if there is none.

    An extent is at least 0, and so is the sum. It need not be where the factor is negative, as in
    9 - n, or a size that may be 0.
    """
    factor, rest = expr.divide_terms(extent, formula)
    if not (isinstance(factor, int) and factor > 0):
        return None
    added, left = expr.divide_terms(rest, factor)
    return added if isinstance(added, int) and left == 0 else None


def _size_of(whole: expr.Index, names: set[str], *, is_extent: bool) -> expr.NamedSize | None:
    """A size with the bounds of a formula, rounded; None if they are not known.

    names   those of the workload's sizes; the new one is not among the others
    """
    sizes = expr.named_sizes_of(whole)
    loops = {size: expr.Var(size.name) for size in sizes}
    reach = expr.interval(
        expr.substitute(whole, loops),
        {
            loops[size]: expr.Range(size.least, _FAR if size.most is None else size.most)
            for size in sizes
        },
    )
    if reach is None or not isinstance(reach.low, int) or not isinstance(reach.high, int):
        return None
    if reach.low < 0 and not is_extent:
        return None
    is_bounded = all(size.most is not None for size in sizes)
    name = "_".join(size.name for size in sizes)
    while name in names - {size.name for size in sizes}:
        name += "_"
    own = expr.named_size(
        name,
        _rounded(reach.low) if reach.low > 0 else 0,
        _rounded(max(1, reach.high), up=True) if is_bounded else None,
    )
    return own if isinstance(own, expr.NamedSize) else None


def _rounded(number: int, *, up: bool = False) -> int:
    """The nearest power of 8 that is not above the number, or not below it."""
    bits = (number - 1).bit_length() if up else number.bit_length() - 1
    return 1 << (-(-bits // _GRAIN) if up else bits // _GRAIN) * _GRAIN
