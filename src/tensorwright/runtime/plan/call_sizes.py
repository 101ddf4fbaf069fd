"""The named sizes of a call, from the shapes of its inputs, and what they decide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tensorwright import base
from tensorwright.runtime.buffers import Maker
from tensorwright.runtime.plan.plan import Plan, TensorSpec
from tensorwright.runtime.plan.plan_sizes import PlanSize

_FAR = (1 << 31) - 1  # greater than every constant in a min, max or // of an extent


@dataclass(frozen=True, slots=True)
class CallSizes:
    """The sizes of a call.

    shapes    of the inputs, which decide them     values    of the named sizes
    makers    of the outputs                       amounts   in the order of `Program.amounts`

    Sizes that steps decide have their greatest values in the call.
    """

    shapes: tuple[tuple[int, ...], ...]
    values: Mapping[str, int]
    makers: tuple[Maker, ...]
    amounts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Dimensions:
    """The dimensions of a plan's inputs; a decoder has hundreds of few extents.

    alike     extents of inputs, and the positions of the inputs that have them
    counted   the sizes that steps decide
    results   for each output the first one with its type
    """

    alike: tuple[tuple[tuple[int | base.Formula, ...], tuple[int, ...]], ...]
    counted: tuple[str, ...]
    results: tuple[int, ...]

    @classmethod
    def of(cls, plan: Plan) -> Dimensions:
        """Those of a plan."""
        alike: dict[tuple[int | base.Formula, ...], list[int]] = {}
        for position, spec in enumerate(plan.inputs):
            alike.setdefault(spec.shape if spec.has_rank else (), []).append(position)
        types = [spec.roomy.type for spec in plan.outputs]
        results = tuple(map(types.index, types))
        return cls(tuple((each, tuple(at)) for each, at in alike.items()), plan.counted, results)

    def with_numbers(
        self, plan: Plan, shapes: Sequence[tuple[int, ...]]
    ) -> list[tuple[TensorSpec, int, int | base.Formula, int]]:
        """The input, axis, extent and number of dimensions; one of those that agree."""
        by_extent: dict[int | base.Formula, dict[int, tuple[int, int]]] = {}
        for extents, members in self.alike:
            firsts = {shapes[at]: at for at in reversed(members)}
            for shape, at in firsts.items():
                for axis, (extent, number) in enumerate(zip(extents, shape, strict=False)):
                    numbers = by_extent.setdefault(extent, {})
                    numbers[number] = min(numbers.get(number, (at, axis)), (at, axis))
        dimensions = []
        for extent, numbers in by_extent.items():
            places = sorted((at, axis, number) for number, (at, axis) in numbers.items())
            dimensions += [(plan.inputs[at], axis, extent, number) for at, axis, number in places]
        return dimensions


def call_sizes(
    plan: Plan,
    dimensions: Dimensions,
    amounts: Sequence[base.Formula],
    shapes: tuple[tuple[int, ...], ...],
) -> CallSizes:
    """The sizes of a call on arrays of some shapes, whose ranks fit.

    Raises:  InputError for a size outside its bounds, for two extents that must be equal and are
             not, and for an extent that differs from its formula.
    """
    values = values_of(plan, dimensions, shapes)
    makers: dict[int, Maker] = {}
    for first in set(dimensions.results):
        spec = plan.outputs[first]
        shape = tuple([base.amount_at(extent, values) for extent in spec.roomy.shape])
        makers[first] = Maker.of(shape, spec.dtype)
    of_each = tuple([makers[first] for first in dimensions.results])
    return CallSizes(shapes, values, of_each, tuple([each.at(values) for each in amounts]))


def chosen_values(
    sizes: Sequence[PlanSize], inputs: Sequence[TensorSpec], given: Mapping[str, int]
) -> dict[str, int]:
    """Values of the sizes that inputs decide: the given ones, and the usual ones of the others.

    Raises:  UsageError for a name that is not such a size.
    """
    given = base.whole_numbers(given)
    extents = [
        extent for spec in inputs for extent in spec.shape if isinstance(extent, base.Formula)
    ]
    asked = {name for extent in extents for name in extent.names}
    sizes = [size for size in sizes if size.name in asked]
    names = [size.name for size in sizes]
    for name in given:
        if name not in names:
            listed = ", ".join(map(str, sizes)) or "none: all its shapes are numbers"
            raise base.UsageError(
                stage="sizes",
                where=f"size {name}",
                reason="there is no such size",
                remedy=base.did_you_mean(name, names, f"its sizes are {listed}"),
            )
    bounds = {size.name: size.bounds for size in sizes}
    return base.usual_numbers(bounds, [spec.shape for spec in inputs]) | given


def check_values(sizes: Iterable[PlanSize], values: Mapping[str, int]) -> None:
    """Raise UsageError for a value outside the bounds of its size."""
    for size in sizes:
        if size.name in values and not size.admits(values[size.name]):
            raise base.UsageError(
                stage="sizes",
                where=f"size {size.name} = {values[size.name]}",
                reason=f"it must be {size.demand}",
                remedy=_other_bounds(size, values[size.name]),
            )


def values_of(
    plan: Plan, dimensions: Dimensions, shapes: Sequence[tuple[int, ...]]
) -> dict[str, int]:
    """The named sizes for some shapes of the inputs, and the greatest values of counted sizes.

    Raises:  as `call_sizes`.
    """
    sizes = {size.name: size for size in plan.sizes if size.name not in dimensions.counted}
    values: dict[str, int] = {}
    told_by: dict[str, str] = {}
    every = waiting = dimensions.with_numbers(plan, shapes)
    before = None
    while waiting != before:  # past + sequence gives past once another dimension gives sequence
        before, waiting = waiting, []
        for spec, axis, extent, number in before:
            solved = _solved(extent, number, values)
            if solved is None:
                waiting.append((spec, axis, extent, number))
                continue
            name, value = solved
            dimension = f"dimension {axis} of {spec.name}"
            if name in told_by and values[name] != value:
                former = f"{told_by[name]} makes it {values[name]}"
                reason = f"{dimension} makes {name} {value}, but {former}"
                raise _refusal(f"input {spec.name}", reason, "give arrays of shapes that agree")
            _check_bounds(sizes[name], value, spec, axis)
            values[name] = value
            told_by.setdefault(name, dimension)
    missing = [name for name in sizes if name not in values]
    if missing:
        raise _missing(missing[0], waiting, values)
    for spec, axis, extent, number in every:
        wanted = base.amount_at(extent, values)
        if wanted != number:
            given = ", ".join(f"{name} = {value}" for name, value in values.items())
            reason = f"dimension {axis} is {number}, but {extent} is {wanted} with {given}"
            raise _refusal(f"input {spec.name}", reason, "give arrays of shapes that agree")
    return with_rooms(plan, values, dimensions.counted)


def solved_sizes(
    inputs: Sequence[TensorSpec], shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, int]:
    """The named sizes that the shapes of some inputs decide; nothing is checked."""
    values: dict[str, int] = {}
    before = -1
    while before != len(values):
        before = len(values)
        for spec in inputs:
            for extent, number in zip(spec.shape, shapes.get(spec.name, ()), strict=False):
                solved = _solved(extent, number, values)
                if solved is not None:
                    values.setdefault(*solved)
    return values


def with_rooms(plan: Plan, values: Mapping[str, int], counted: Sequence[str]) -> dict[str, int]:
    """The sizes of inputs, and the greatest values of the sizes that steps decide."""
    rooms = {size.name: size.room(values) for size in plan.sizes if size.name in counted}
    return {**values, **rooms}


def _solved(
    extent: int | base.Formula, number: int, given: Mapping[str, int]
) -> tuple[str, int] | None:
    """The size that an extent decides, and its value: n from n, or from 2*n + 1."""
    if isinstance(extent, int):
        return None
    if extent.text.isidentifier():
        return extent.text, number
    open_names = [name for name in extent.names if name not in given]
    if len(open_names) != 1:
        return None
    name = open_names[0]
    first, step = _line(extent, name, given)
    if step == 0 or (number - first) % step:
        return None
    return name, 1 + (number - first) // step


def _line(extent: base.Formula, name: str, given: Mapping[str, int]) -> tuple[int, int]:
    """An extent where a size is 1, and how it grows with it; by 0 if it is on no line."""
    first, second, far = (extent.at({**given, name: value}) for value in (1, 2, _FAR))
    step = second - first
    return first, step if far == first + (_FAR - 1) * step else 0


def _missing(
    name: str,
    waiting: Sequence[tuple[TensorSpec, int, int | base.Formula, int]],
    values: Mapping[str, int],
) -> base.InputError:
    """The error for a size that no dimension decides: 2*n does not decide it by being 7."""
    for spec, axis, extent, number in waiting:
        if not isinstance(extent, base.Formula) or set(extent.names) - values.keys() != {name}:
            continue
        if _line(extent, name, values)[1]:
            reason = f"dimension {axis} is {number}, and no {name} makes {extent} that"
            return _refusal(f"input {spec.name}", reason, "give another size")
    reason = f"no dimension of an input gives the size {name}"
    call, option = f"executable.at({name}=NUMBER)", f"--at {name}=NUMBER"
    fix = "fix it before the call: "
    return _refusal("inputs", reason, base.Advice(f"{fix}{call}", f"{fix}{option}"))


def _check_bounds(size: PlanSize, value: int, spec: TensorSpec, axis: int) -> None:
    if size.admits(value):
        return
    reason = (
        f"dimension {axis} of {spec.type} makes the size {size.name} {value}; it is {size.demand}"
    )
    raise _refusal(f"input {spec.name}", reason, _other_bounds(size, value))


def _other_bounds(size: PlanSize, value: int) -> str:
    """The remedy for a size outside its bounds.

    More rows than the greatest number need other bounds; fewer may be less than a node can take.
    """
    if size.most is not None and value > size.most:
        before = "give another size, or compile with other bounds: "
        return base.sizes_advice({size.name: f"{size.least}..{value}"}, before)
    return f"give a size that fits: {size}"


def _refusal(where: str, reason: str, remedy: str) -> base.InputError:
    return base.InputError(stage="run", where=where, reason=reason, remedy=remedy)
