"""Operators that move elements, tensors without arguments, and putting together and taking apart.

transpose[1, 0](x)    x (2, 3) -> (3, 2)        reshape[6](x)         x (2, 3) -> (6)
pad[0, 1, 0](x)       x (2, 3) -> (3, 3)        eye[2]()              ((1, 0), (0, 1))
concat[1](a, b)       a (2, 3), b (2, 5) -> (2, 8)
split1[1, 3](x)       x (2, 8) -> (2, 5): from index 3 on
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from tensorwright.base import DType
from tensorwright.rewriting.assumptions import Needs, Params, ShapeRule, Shapes
from tensorwright.rewriting.dims import Shape, Size
from tensorwright.rewriting.operators import operator
from tensorwright.rewriting.operators.parameters import (
    AXIS,
    BESIDE_AXIS,
    CREATED,
    PLACE,
    SIZES,
    STRETCHED,
    TRANSPOSED,
    Merging,
    Parameter,
    axis_of,
    number,
    size,
)
from tensorwright.rewriting.operators.windows import enlarge_steps

_DTYPE = DType.F64


def extents_of(params: Params, needs: Needs) -> Shape:
    """Parameters that are the extents of a tensor: at least 1 each."""
    extents = tuple(map(size, params))
    for extent in extents:
        needs.at_least(extent, 1)
    return extents


def _full(shape: Shape, value: float) -> operator.Step:
    return operator.Step("full", {"shape": shape, "value": value, "dtype": _DTYPE})


def _ones(params: Params, shapes: Shapes) -> tuple[operator.Step, ...]:
    return (_full(tuple(map(size, params)), 1.0),)


def _eye(params: Params, shapes: Shapes) -> tuple[operator.Step, ...]:
    extent = size(params[0])
    return (_full((extent, extent), 0.0), operator.Step("eye_like", {"dtype": _DTYPE}))


def _identity(params: Params, shapes: Shapes) -> tuple[operator.Step, ...]:
    channels, rows, columns = map(number, params)
    column = operator.Step("reshape", {"shape": (channels, channels, 1, 1)})
    around = enlarge_steps((rows, columns), (channels, channels, 1, 1))
    return (*_eye((channels,), ()), column, *around)


def _pool(params: Params, shapes: Shapes) -> tuple[operator.Step, ...]:
    channels, rows, columns = map(number, params)
    return (_full((channels, 1, rows, columns), 1 / (rows * columns)),)


_KERNEL = tuple(Parameter(name, is_size=True) for name in ("c", "kernel_h", "kernel_w"))


def _constant(
    name: str,
    parameters: tuple[Parameter, ...],
    extents: Callable[[Params], Params],
    meaning: operator.MeaningRule,
    merging: Merging | None = None,
) -> operator.RewriteOperator:
    """A tensor without arguments; `extents` are those of the result, by its parameters."""
    return operator.RewriteOperator(
        name,
        lambda params, shapes, needs: extents_of(extents(params), needs),
        meaning,
        arguments=(),
        parameters=parameters,
        merging=merging,
    )


CONSTANTS = (
    _constant("ones", SIZES, lambda params: params, _ones, CREATED),
    _constant("eye", (Parameter("n", is_size=True),), lambda params: params * 2, _eye),
    _constant("identity_kernel", _KERNEL, lambda params: (params[0], *params), _identity),
    _constant("pool_kernel", _KERNEL, lambda params: (params[0], 1, *params[1:]), _pool),
)


def _transpose_shape(params: Params, shapes: Shapes, needs: Needs) -> Shape:
    (x,) = shapes
    perm = tuple(map(number, params))
    needs.hold(sorted(perm) == list(range(len(x))), f"{perm} is not a permutation")
    return tuple(x[at] for at in perm)


def _reshape_shape(params: Params, shapes: Shapes, needs: Needs) -> Shape:
    shape = extents_of(params, needs)
    needs.equal(prod(shape, start=1), prod(shapes[0], start=1))
    return shape


def _broadcast_shape(params: Params, shapes: Shapes, needs: Needs) -> Shape:
    """A dimension is stretched from extent 1, or stays."""
    shape = extents_of(params, needs)
    needs.rank(shapes[0], len(shape))
    for own, wanted in zip(shapes[0], shape, strict=True):
        needs.stretches(own, wanted)
    return shape


def _slice_shape(params: Params, shapes: Shapes, needs: Needs) -> Shape:
    (x,) = shapes
    axis, start, stop = axis_of(params[0], x), size(params[1]), size(params[2])
    needs.at_least(start, 0)
    needs.at_least(stop, start + 1)
    needs.at_least(x[axis], stop)
    return operator.replaced(x, axis, stop - start)


def slice_steps(axis: int, start: Size, stop: Size) -> tuple[operator.Step, ...]:
    """The part of a tensor from `start` to before `stop` along one dimension."""
    return (operator.Step("slice", {"axes": (axis,), "starts": (start,), "ends": (stop,)}),)


def _slice(params: Params, shapes: Shapes) -> tuple[operator.Step, ...]:
    return slice_steps(number(params[0]), size(params[1]), size(params[2]))


def _pad_shape(params: Params, shapes: Shapes, needs: Needs) -> Shape:
    (x,) = shapes
    axis, before, after = axis_of(params[0], x), size(params[1]), size(params[2])
    needs.at_least(before, 0)
    needs.at_least(after, 0)
    return operator.replaced(x, axis, x[axis] + before + after)


def _pad(params: Params, shapes: Shapes) -> tuple[operator.Step, ...]:
    axis, rank = number(params[0]), len(shapes[0])
    pads: list[Size] = [0] * (2 * rank)
    pads[axis], pads[rank + axis] = size(params[1]), size(params[2])
    return (operator.Step("pad", {"pads": tuple(pads)}),)


def _reverse(params: Params, shapes: Shapes) -> tuple[operator.Step, ...]:
    axis = number(params[0])
    before_first = -shapes[0][axis] - 1
    ends = {"starts": (-1,), "ends": (before_first,), "steps": (-1,)}
    return (operator.Step("slice", {"axes": (axis,), **ends}),)


def _strided_shape(params: Params, shapes: Shapes, needs: Needs) -> Shape:
    (x,) = shapes
    axis, step = axis_of(params[0], x), size(params[1])
    needs.at_least(step, 1)
    return operator.replaced(x, axis, (x[axis] - 1) // step + 1)


def _strided(params: Params, shapes: Shapes) -> tuple[operator.Step, ...]:
    axis, step = map(number, params)
    places = {"starts": (0,), "ends": (shapes[0][axis],), "steps": (step,)}
    return (operator.Step("slice", {"axes": (axis,), **places}),)


def _movement(
    name: str,
    parameters: tuple[Parameter, ...],
    shape: ShapeRule,
    meaning: operator.MeaningRule,
    merging: Merging | None = BESIDE_AXIS,
) -> operator.RewriteOperator:
    return operator.RewriteOperator(name, shape, meaning, parameters=parameters, merging=merging)


_PERM = (Parameter("perm", repeats=True),)
_STRETCHED = (Parameter("size", is_size=True, repeats=True),)
_BOUNDS = (AXIS, Parameter("start", is_size=True, least=0), Parameter("stop", is_size=True))
_ADDED = (AXIS, *(Parameter(name, is_size=True, least=0) for name in ("before", "after")))
_STEP = Parameter("step", is_size=True)

MOVEMENTS = (
    _movement(
        "transpose", _PERM, _transpose_shape, operator.listed("transpose", "perm"), TRANSPOSED
    ),
    _movement("reshape", SIZES, _reshape_shape, operator.listed("reshape", "shape"), None),
    _movement(
        "broadcast", _STRETCHED, _broadcast_shape, operator.listed("expand", "shape"), STRETCHED
    ),
    _movement("slice", _BOUNDS, _slice_shape, _slice),
    _movement("pad", _ADDED, _pad_shape, _pad),
    _movement("reverse", (AXIS,), operator.shape_with_axis, _reverse),
    _movement("strided", (AXIS, _STEP), _strided_shape, _strided),
)


def _concat_shape(params: Params, shapes: Shapes, needs: Needs) -> Shape:
    a, b = shapes
    axis = axis_of(params[0], a)
    needs.hold(len(a) == len(b), "ranks differ")
    needs.equal_shapes(operator.replaced(a, axis, 1), operator.replaced(b, axis, 1))
    return operator.replaced(a, axis, a[axis] + b[axis])


def _half(name: str, bounds: Callable[[Size, Size], tuple[Size, Size]]) -> operator.RewriteOperator:
    """A part of a split; `bounds` are where it begins and ends, by the index and the extent."""

    def shape(params: Params, shapes: Shapes, needs: Needs) -> Shape:
        (x,) = shapes
        axis, at = axis_of(params[0], x), size(params[1])
        needs.at_least(at, 1)
        needs.at_least(x[axis], at + 1)
        start, stop = bounds(at, x[axis])
        return operator.replaced(x, axis, stop - start)

    def meaning(params: Params, shapes: Shapes) -> tuple[operator.Step, ...]:
        axis = number(params[0])
        return slice_steps(axis, *bounds(size(params[1]), shapes[0][axis]))

    return operator.RewriteOperator(
        name,
        shape,
        meaning,
        parameters=(AXIS, PLACE),
        output_of="split",
        merging=BESIDE_AXIS,
    )


PARTS = frozenset({"split0", "split1", "slice"})
"""The operators whose result is a part of the argument along one dimension."""

JOINS = (
    operator.RewriteOperator(
        "concat",
        _concat_shape,
        operator.plain("concat", "axis"),
        arguments=(operator.TENSOR, operator.TENSOR),
        parameters=(AXIS,),
        merging=BESIDE_AXIS,
    ),
    _half("split0", lambda at, extent: (0, at)),
    _half("split1", lambda at, extent: (at, extent)),
)
