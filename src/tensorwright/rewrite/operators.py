"""The operators of rewriting, as data: parameters, shape rule, and meaning through `ops`.

    matmul(a, b)                          (..., m, k) (..., k, n), the leading dimensions equal
    ewadd ewmul ewsub ewdiv (a, b)        equal shapes; broadcasting is `broadcast`, explicitly
    scalar_mul(x, s)                      s has rank 0
    relu exp sigmoid tanh (x)
    transpose[perm...](x)                 dimension i of the result is dimension perm[i] of x
    concat[axis](a, b)
    split0[axis, at](x) split1[axis, at](x)     before `at`, from `at` on
    conv2d[stride_h, stride_w, padding, activation](x, w)
                                          x (n, c, h, w), w (oc, c/groups, kh, kw); groups follow
                                          from the shapes; padding same | valid, activation none |
                                          relu; `same` gives ceil(h / stride) rows, the odd element
                                          of the padding last
    max_pool avg_pool [kernel_h, kernel_w, stride_h, stride_w, padding](x)
                                          avg_pool divides by kernel_h*kernel_w: padding counts
    enlarge[kernel_h, kernel_w](w)        zeros around a kernel, its centre stays the centre
    ones[size...]() eye[n]()              all 1, the identity matrix
    identity_kernel[c, kh, kw]()          (c, c, kh, kw): convolution with it changes nothing
    pool_kernel[c, kh, kw]()              (c, 1, kh, kw) of 1/(kh*kw): depthwise, average pooling
    reduce_sum reduce_mean [axis](x)      the dimension stays, with extent 1
    reshape[size...](x) broadcast[size...](x)   broadcast stretches dimensions of extent 1
    slice[axis, start, stop](x) pad[axis, before, after](x)     pad with zeros
    batch_norm(x, scale, bias, mean, var) at inference, epsilon 1e-5; the last four (c)

What an operator means is a chain of applications of `ops` operators: the first gets the
arguments, each later one the result before it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeAlias

from tensorwright.base import DType, UsageError
from tensorwright.ops import Attributes, automatic_pads
from tensorwright.rewrite.dims import Shape, Size
from tensorwright.rewrite.shapes import IllTyped, Needs, ShapeRule
from tensorwright.rewrite.terms import Param

__all__ = ["OPERATORS", "Parameter", "RewriteOperator", "Step", "operator_named"]

IntShape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter.

    words     the words it may be; empty for a number
    is_size   whether it may be a size over the inputs' extents, and not only a number
    repeats   whether it takes all parameters that are left
    """

    name: str
    words: tuple[str, ...] = ()
    is_size: bool = False
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One application of an operator of `ops`."""

    operator: str
    attributes: Attributes


MeaningRule: TypeAlias = Callable[[tuple[Param, ...], tuple[IntShape, ...]], tuple[Step, ...]]


@dataclass(frozen=True, slots=True)
class RewriteOperator:
    """An operator of rewriting.

    arity           number of arguments
    is_commutative  whether op(a, b) = op(b, a): the generator then tries one order only
    shape           see `shapes.py`
    meaning         the chain of `ops` applications at concrete parameters and shapes
    """

    name: str
    arity: int
    parameters: tuple[Parameter, ...]
    shape: ShapeRule
    meaning: MeaningRule
    is_commutative: bool = False

    def check_params(self, params: tuple[Param, ...]) -> None:
        """Refuse parameters of the wrong number or kind.

        Raises:  IllTyped
        """
        is_open = bool(self.parameters) and self.parameters[-1].repeats
        least = len(self.parameters) - is_open
        if len(params) < least or (len(params) > least and not is_open):
            raise IllTyped(f"{self.name} takes {least} parameters, not {len(params)}")
        for place, param in enumerate(params):
            wanted = self.parameters[min(place, len(self.parameters) - 1)]
            if isinstance(param, str):
                if param not in wanted.words:
                    raise IllTyped(f"{self.name} does not know {wanted.name} {param!r}")
            elif wanted.words or not (isinstance(param, int) or wanted.is_size):
                raise IllTyped(f"{wanted.name} of {self.name} cannot be {param}")


def number(param: Param) -> int:
    """A parameter that is a number.

    Raises:  IllTyped for another.
    """
    if not isinstance(param, int):
        raise IllTyped(f"{param} is no number")
    return param


def size(param: Param) -> Size:
    """A parameter that is a number or a size.

    Raises:  IllTyped for a word.
    """
    if isinstance(param, str):
        raise IllTyped(f"{param} is no size")
    return param


def _axis(param: Param, shape: Shape) -> int:
    axis = number(param)
    if not 0 <= axis < len(shape):
        raise IllTyped(f"there is no dimension {axis}")
    return axis


def _with(shape: Shape, axis: int, extent: Size) -> Shape:
    return (*shape[:axis], extent, *shape[axis + 1 :])


def _plain(name: str) -> MeaningRule:
    return lambda params, shapes: (Step(name, {}),)


def _same_shape(params: tuple[Param, ...], shapes: tuple[Shape, ...], needs: Needs) -> Shape:
    for other in shapes[1:]:
        needs.equal_shapes(shapes[0], other)
    return shapes[0]


def _elementwise(name: str, meaning: str, arity: int, *, commutes: bool = False) -> RewriteOperator:
    return RewriteOperator(name, arity, (), _same_shape, _plain(meaning), commutes)


def _scalar_shape(params: tuple[Param, ...], shapes: tuple[Shape, ...], needs: Needs) -> Shape:
    needs.rank(shapes[1], 0)
    return shapes[0]


def _matmul_shape(params: tuple[Param, ...], shapes: tuple[Shape, ...], needs: Needs) -> Shape:
    a, b = shapes
    needs.hold(len(a) >= 2 and len(a) == len(b), "matmul of unequal ranks, or below 2")
    needs.equal_shapes(a[:-2], b[:-2])
    needs.equal(a[-1], b[-2])
    return (*a[:-1], b[-1])


def _transpose_shape(params: tuple[Param, ...], shapes: tuple[Shape, ...], needs: Needs) -> Shape:
    (x,) = shapes
    perm = tuple(map(number, params))
    needs.hold(sorted(perm) == list(range(len(x))), f"{perm} is no permutation")
    return tuple(x[at] for at in perm)


def _transpose(params: tuple[Param, ...], shapes: tuple[IntShape, ...]) -> tuple[Step, ...]:
    return (Step("transpose", {"perm": tuple(map(number, params))}),)


def _concat_shape(params: tuple[Param, ...], shapes: tuple[Shape, ...], needs: Needs) -> Shape:
    a, b = shapes
    axis = _axis(params[0], a)
    needs.equal_shapes(_with(a, axis, 1), _with(b, axis, 1) if len(b) == len(a) else b)
    return _with(a, axis, a[axis] + b[axis])


def _concat(params: tuple[Param, ...], shapes: tuple[IntShape, ...]) -> tuple[Step, ...]:
    return (Step("concat", {"axis": number(params[0])}),)


def _part(begins: Callable[[Size, Size], tuple[Size, Size]]) -> ShapeRule:
    def rule(params: tuple[Param, ...], shapes: tuple[Shape, ...], needs: Needs) -> Shape:
        (x,) = shapes
        axis, at = _axis(params[0], x), size(params[1])
        needs.at_least(at, 1)
        needs.at_least(x[axis], at + 1)
        start, stop = begins(at, x[axis])
        return _with(x, axis, stop - start)

    return rule


def _slice_steps(axis: int, start: int, stop: int) -> tuple[Step, ...]:
    return (Step("slice", {"axes": (axis,), "starts": (start,), "ends": (stop,)}),)


def _split0(params: tuple[Param, ...], shapes: tuple[IntShape, ...]) -> tuple[Step, ...]:
    return _slice_steps(number(params[0]), 0, number(params[1]))


def _split1(params: tuple[Param, ...], shapes: tuple[IntShape, ...]) -> tuple[Step, ...]:
    axis = number(params[0])
    return _slice_steps(axis, number(params[1]), shapes[0][axis])


def _slice_shape(params: tuple[Param, ...], shapes: tuple[Shape, ...], needs: Needs) -> Shape:
    (x,) = shapes
    axis, start, stop = _axis(params[0], x), size(params[1]), size(params[2])
    needs.at_least(start, 0)
    needs.at_least(stop, start + 1)
    needs.at_least(x[axis], stop)
    return _with(x, axis, stop - start)


def _slice(params: tuple[Param, ...], shapes: tuple[IntShape, ...]) -> tuple[Step, ...]:
    axis, start, stop = map(number, params)
    return _slice_steps(axis, start, stop)


def _pad_shape(params: tuple[Param, ...], shapes: tuple[Shape, ...], needs: Needs) -> Shape:
    (x,) = shapes
    axis, before, after = _axis(params[0], x), size(params[1]), size(params[2])
    needs.at_least(before, 0)
    needs.at_least(after, 0)
    return _with(x, axis, x[axis] + before + after)


def _pad(params: tuple[Param, ...], shapes: tuple[IntShape, ...]) -> tuple[Step, ...]:
    axis, before, after = map(number, params)
    rank = len(shapes[0])
    pads = [0] * (2 * rank)
    pads[axis], pads[rank + axis] = before, after
    return (Step("pad", {"pads": tuple(pads)}),)


def _window_extent(extent: Size, kernel: Size, stride: int, padding: Param, needs: Needs) -> Size:
    """Rows of the result: ceil(extent / stride) for `same`, whole windows for `valid`."""
    if padding == "same":
        return (extent + stride - 1) // stride
    needs.at_least(extent, kernel)
    return (extent - kernel) // stride + 1


def _conv_shape(params: tuple[Param, ...], shapes: tuple[Shape, ...], needs: Needs) -> Shape:
    x, w = shapes
    needs.rank(x, 4)
    needs.rank(w, 4)
    strides, padding = (number(params[0]), number(params[1])), params[2]
    needs.hold(min(strides) >= 1, "a stride below 1")
    needs.divides(w[1], x[1])
    groups = x[1] // w[1]
    needs.divides(groups, w[0])
    rows, columns = (
        _window_extent(x[at], w[at], stride, padding, needs)
        for at, stride in zip((2, 3), strides, strict=True)
    )
    return (x[0], w[0], rows, columns)


def _pads(padding: Param, x: IntShape, kernel: IntShape, strides: IntShape) -> IntShape:
    mode = "SAME_UPPER" if padding == "same" else "VALID"
    return automatic_pads(mode, x[2:], kernel, strides, (1, 1))


def _conv(params: tuple[Param, ...], shapes: tuple[IntShape, ...]) -> tuple[Step, ...]:
    x, w = shapes
    strides = (number(params[0]), number(params[1]))
    pads = _pads(params[2], x, w[2:], strides)
    conv = Step("conv", {"strides": strides, "pads": pads, "groups": x[1] // w[1]})
    return (conv, Step("relu", {})) if params[3] == "relu" else (conv,)


def _pool_shape(params: tuple[Param, ...], shapes: tuple[Shape, ...], needs: Needs) -> Shape:
    (x,) = shapes
    needs.rank(x, 4)
    kernel, strides = tuple(map(number, params[:2])), tuple(map(number, params[2:4]))
    needs.hold(min(*kernel, *strides) >= 1, "a kernel or stride below 1")
    rows, columns = (
        _window_extent(x[at + 2], kernel[at], strides[at], params[4], needs) for at in (0, 1)
    )
    return (x[0], x[1], rows, columns)


def _pool(name: str, more: Attributes) -> MeaningRule:
    def rule(params: tuple[Param, ...], shapes: tuple[IntShape, ...]) -> tuple[Step, ...]:
        kernel, strides = tuple(map(number, params[:2])), tuple(map(number, params[2:4]))
        pads = _pads(params[4], shapes[0], kernel, strides)
        return (Step(name, {"kernel": kernel, "strides": strides, "pads": pads, **more}),)

    return rule


def _enlarge_shape(params: tuple[Param, ...], shapes: tuple[Shape, ...], needs: Needs) -> Shape:
    (w,) = shapes
    needs.rank(w, 4)
    kernel = (size(params[0]), size(params[1]))
    for at, extent in enumerate(kernel):
        needs.at_least(extent, w[at + 2])
    return (*w[:2], *kernel)


def _enlarge(params: tuple[Param, ...], shapes: tuple[IntShape, ...]) -> tuple[Step, ...]:
    """The padding of `same` is floor((k - 1) / 2) in front: that difference goes in front."""
    (w,) = shapes
    kernel = (number(params[0]), number(params[1]))
    before = tuple((k - 1) // 2 - (own - 1) // 2 for k, own in zip(kernel, w[2:], strict=True))
    after = tuple(k - own - b for k, own, b in zip(kernel, w[2:], before, strict=True))
    return (Step("pad", {"pads": (0, 0, *before, 0, 0, *after)}),)


def _constant_shape(params: tuple[Param, ...], shapes: tuple[Shape, ...], needs: Needs) -> Shape:
    extents = tuple(map(size, params))
    for extent in extents:
        needs.at_least(extent, 1)
    return extents


def _ones(params: tuple[Param, ...], shapes: tuple[IntShape, ...]) -> tuple[Step, ...]:
    return (_full(tuple(map(number, params)), 1.0),)


def _full(shape: IntShape, value: float) -> Step:
    return Step("full", {"shape": shape, "value": value, "dtype": _DTYPE})


def _eye_shape(params: tuple[Param, ...], shapes: tuple[Shape, ...], needs: Needs) -> Shape:
    return _constant_shape(params * 2, shapes, needs)


def _eye(params: tuple[Param, ...], shapes: tuple[IntShape, ...]) -> tuple[Step, ...]:
    extent = number(params[0])
    return (_full((extent, extent), 0.0), Step("eye_like", {"dtype": _DTYPE}))


def _identity_kernel_shape(
    params: tuple[Param, ...], shapes: tuple[Shape, ...], needs: Needs
) -> Shape:
    return _constant_shape((params[0], *params), shapes, needs)


def _identity_kernel(params: tuple[Param, ...], shapes: tuple[IntShape, ...]) -> tuple[Step, ...]:
    channels, rows, columns = map(number, params)
    column = Step("reshape", {"shape": (channels, channels, 1, 1)})
    around = _enlarge((rows, columns), ((channels, channels, 1, 1),))
    return (*_eye((channels,), ()), column, *around)


def _pool_kernel_shape(params: tuple[Param, ...], shapes: tuple[Shape, ...], needs: Needs) -> Shape:
    return _constant_shape((params[0], 1, *params[1:]), shapes, needs)


def _pool_kernel(params: tuple[Param, ...], shapes: tuple[IntShape, ...]) -> tuple[Step, ...]:
    channels, rows, columns = map(number, params)
    return (_full((channels, 1, rows, columns), 1 / (rows * columns)),)


def _reduce_shape(params: tuple[Param, ...], shapes: tuple[Shape, ...], needs: Needs) -> Shape:
    (x,) = shapes
    return _with(x, _axis(params[0], x), 1)


def _reduce(name: str) -> MeaningRule:
    return lambda params, shapes: (Step(name, {"axes": (number(params[0]),)}),)


def _product(shape: Shape) -> Size:
    total: Size = 1
    for extent in shape:
        total = total * extent
    return total


def _reshape_shape(params: tuple[Param, ...], shapes: tuple[Shape, ...], needs: Needs) -> Shape:
    shape = _constant_shape(params, shapes, needs)
    needs.equal(_product(shape), _product(shapes[0]))
    return shape


def _to_shape(name: str) -> MeaningRule:
    return lambda params, shapes: (Step(name, {"shape": tuple(map(number, params))}),)


def _broadcast_shape(params: tuple[Param, ...], shapes: tuple[Shape, ...], needs: Needs) -> Shape:
    """A dimension that is not written as the same size must have extent 1."""
    shape = _constant_shape(params, shapes, needs)
    needs.rank(shapes[0], len(shape))
    for own, wanted in zip(shapes[0], shape, strict=True):
        if own != wanted:
            needs.equal(own, 1)
    return shape


def _norm_shape(params: tuple[Param, ...], shapes: tuple[Shape, ...], needs: Needs) -> Shape:
    x, *vectors = shapes
    needs.hold(len(x) >= 2, "batch_norm of a tensor without channels")
    for vector in vectors:
        needs.equal_shapes((x[1],), vector)
    return x


_DTYPE = DType.F64
_AXIS = Parameter("axis")
_PADDING = Parameter("padding", words=("same", "valid"))
_STRIDES = (Parameter("stride_h"), Parameter("stride_w"))
_KERNEL = (Parameter("kernel_h"), Parameter("kernel_w"))
_SIZES = (Parameter("size", is_size=True, repeats=True),)
_AT = Parameter("at", is_size=True)
_KERNEL_SIZES = tuple(Parameter(name, is_size=True) for name in ("c", "kernel_h", "kernel_w"))

OPERATORS: tuple[RewriteOperator, ...] = (
    RewriteOperator("matmul", 2, (), _matmul_shape, _plain("matmul")),
    _elementwise("ewadd", "add", 2, commutes=True),
    _elementwise("ewmul", "mul", 2, commutes=True),
    _elementwise("ewsub", "sub", 2),
    _elementwise("ewdiv", "div", 2),
    _elementwise("relu", "relu", 1),
    _elementwise("exp", "exp", 1),
    _elementwise("sigmoid", "sigmoid", 1),
    _elementwise("tanh", "tanh", 1),
    RewriteOperator("scalar_mul", 2, (), _scalar_shape, _plain("mul")),
    RewriteOperator(
        "transpose", 1, (Parameter("perm", repeats=True),), _transpose_shape, _transpose
    ),
    RewriteOperator("concat", 2, (_AXIS,), _concat_shape, _concat),
    RewriteOperator("split0", 1, (_AXIS, _AT), _part(lambda at, extent: (0, at)), _split0),
    RewriteOperator("split1", 1, (_AXIS, _AT), _part(lambda at, extent: (at, extent)), _split1),
    RewriteOperator(
        "conv2d",
        2,
        (*_STRIDES, _PADDING, Parameter("activation", words=("none", "relu"))),
        _conv_shape,
        _conv,
    ),
    RewriteOperator(
        "max_pool", 1, (*_KERNEL, *_STRIDES, _PADDING), _pool_shape, _pool("max_pool", {})
    ),
    RewriteOperator(
        "avg_pool",
        1,
        (*_KERNEL, *_STRIDES, _PADDING),
        _pool_shape,
        _pool("average_pool", {"count_include_pad": True}),
    ),
    RewriteOperator("enlarge", 1, _KERNEL_SIZES[1:], _enlarge_shape, _enlarge),
    RewriteOperator("ones", 0, _SIZES, _constant_shape, _ones),
    RewriteOperator("eye", 0, (Parameter("n", is_size=True),), _eye_shape, _eye),
    RewriteOperator("identity_kernel", 0, _KERNEL_SIZES, _identity_kernel_shape, _identity_kernel),
    RewriteOperator("pool_kernel", 0, _KERNEL_SIZES, _pool_kernel_shape, _pool_kernel),
    RewriteOperator("reduce_sum", 1, (_AXIS,), _reduce_shape, _reduce("reduce_sum")),
    RewriteOperator("reduce_mean", 1, (_AXIS,), _reduce_shape, _reduce("reduce_mean")),
    RewriteOperator("reshape", 1, _SIZES, _reshape_shape, _to_shape("reshape")),
    RewriteOperator("broadcast", 1, _SIZES, _broadcast_shape, _to_shape("expand")),
    RewriteOperator("slice", 1, (_AXIS, _AT, _AT), _slice_shape, _slice),
    RewriteOperator("pad", 1, (_AXIS, _AT, _AT), _pad_shape, _pad),
    RewriteOperator("batch_norm", 5, (), _norm_shape, _plain("batch_norm")),
)
_BY_NAME = {each.name: each for each in OPERATORS}


def operator_named(name: str) -> RewriteOperator:
    """The operator of this name.

    Raises:  UsageError, with the nearest names, if there is none.
    """
    found = _BY_NAME.get(name)
    if found is None:
        near = get_close_matches(name, _BY_NAME, n=3)
        raise UsageError(
            stage="rules",
            where=f"operator {name}",
            reason="rewriting knows no such operator",
            remedy=f"did you mean {' or '.join(near)}?" if near else "",
        )
    return found
