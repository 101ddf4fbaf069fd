"""The record of an operator: its attributes, its shape rule and its meaning.

The meaning is a tensor expression; NumPy reference, fingerprints, proofs and machine code all come
from it.  An operator without a tensor expression (non-zero, sorting, ...) has a host implementation
instead; where `loop/algorithms` has a loop nest for it, that runs.  Shape rules and meanings take
numbers and named sizes (`named_sizes.py`), host implementations take arrays.

Read attributes with their types, and say what is wrong with an application of an operator.

A rule raises `fault(reason, remedy)`; `infer_types` adds the operator and the node.

How much arithmetic an expression needs, and how many bytes it moves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tensorwright import base, expr
from tensorwright.ops.named_sizes import are_equal, number_of, shape_text, sizes_of


class Pattern(Enum):
    """How an output element depends on the inputs (after TVM's OpPatternKind)."""

    ELEMENTWISE = "elementwise"  # out[i] reads in[i] (or a broadcast of it)
    INJECTIVE = (
        "injective"  # out[i] reads one element per input: transpose, reshape, slice, pad, concat
    )
    REDUCTION = "reduction"  # out[i] folds many elements, little reuse: mean, pooling
    ANCHOR = "anchor"  # out[i] folds many elements with reuse: convolution, matmul
    COMPOSITE = (
        "composite"  # several stages with intermediates per row: softmax, layer normalisation
    )
    OPAQUE = "opaque"  # has no tensor expression


class LayoutPreference(Enum):
    """The layout of its data with which an operator is fast; every layout is correct."""

    ANY = "any"  # follows its neighbours: element-wise, or each channel by itself
    CHANNELS = "channels"  # dimension 1 is channels, blocked if it can be: convolution, pooling
    PLAIN = "plain"  # row-major only


class Movement(Enum):
    """How an operator that computes nothing moves elements."""

    NONE = "none"  # it computes, or reads at computed positions
    COPY = "copy"  # every element stays: identity
    RESHAPE = "reshape"  # the row-major order stays: reshape, squeeze
    REORDER = "reorder"  # every element once, in another order: transpose, depth_to_space
    CROP = "crop"  # parts of each dimension: slice, split
    EXTEND = "extend"  # each dimension longer, by constants or repeats: pad, expand
    RESAMPLE = "resample"  # each dimension read at other positions: tile, resize
    JOIN = "join"  # the inputs one after the other: concat


BY_DIMENSION = frozenset((Movement.CROP, Movement.EXTEND, Movement.RESAMPLE))
"""Each index of the result depends on the same index of the input alone."""


class Fold(Enum):
    """The dimensions of its inputs that an operator folds."""

    NONE = "none"
    AXES = "axes"  # the dimensions in attribute axes, all if it is empty: reduce_sum
    AXIS = "axis"  # the dimension in attribute axis: softmax, argmax
    TRAILING = "trailing"  # that in attribute axis and those after it: layer_norm
    PLANES = "planes"  # all dimensions but the first two: global pooling
    WINDOWS = "windows"  # windows of those: pooling, convolution
    PRODUCT = "product"  # sums of products, nothing else: matmul, gemm, einsum
    ROUNDED = "rounded"  # the last dimension of x, for a step of rounding, and for products of it
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Attribute:
    """A declared attribute; `default` None means that it is required."""

    name: str
    default: base.AttributeValue | None
    doc: str


Types: TypeAlias = tuple[base.TensorType, ...]
Tensors: TypeAlias = tuple[expr.Tensor, ...]
Computes: TypeAlias = tuple[expr.Compute, ...]
InferRule: TypeAlias = Callable[[Types, base.Attributes], Types]
Meaning: TypeAlias = Callable[[Tensors, base.Attributes], Computes]
IdentityRule: TypeAlias = Callable[[base.TensorType, base.Attributes], bool]
Numbers: TypeAlias = NDArray[np.float64]
ChannelScale: TypeAlias = Callable[[Numbers, Numbers, base.Attributes], Numbers]


POSITIONS_INPUT = 1
"""Which input of an operator that `has_positions` holds them."""


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator.

    inputs   names in order; "bias?" may be left out (from the end), "*tensors" is one or more
    infer    output types from input types; raises ModelError that says what does not fit, and
             UndecidedError where a named size decides the shape
    meaning  output tensors from input tensors and attributes, or None when only the host can do
             it; output k has the type that `infer` gives; constants needed as numbers (axes, pads,
             ...) are attributes, never inputs; raises UndecidedError for a named size where it
             needs a number
    host     NumPy implementation, or None; exactly one of meaning and host is given
    layout   what it wants of its first input and its outputs
    movement, fold   what kind of movement or reduction it is: fusion, layouts and views ask
    is_identity      whether, with one input and an output of its type, it gives that input
    channel_scale    its weights (input 1, in f64) times a factor per output channel, where a scale
                     behind it may go into them; input 2 is then a bias per output channel
    multiplied       how many of its first inputs it multiplies, of floats
    decides          the attribute with the size that its values decide, an extent of an output; ""
                     where shapes follow from shapes
    doc      one line: the formula, or what comes out
    """

    name: str
    inputs: tuple[str, ...]
    attributes: tuple[Attribute, ...]
    infer: InferRule
    meaning: Meaning | None
    host: base.HostFunction | None
    pattern: Pattern
    layout: LayoutPreference
    movement: Movement
    fold: Fold
    is_identity: IdentityRule
    channel_scale: ChannelScale | None
    multiplied: int
    decides: str
    doc: str

    @property
    def is_convolution(self) -> bool:
        """Whether it multiplies out windows of channels with weights."""
        return self.pattern is Pattern.ANCHOR and self.layout is LayoutPreference.CHANNELS

    @property
    def has_positions(self) -> bool:
        """Whether it reads or writes at positions, which its second input holds."""
        return self.inputs[POSITIONS_INPUT : POSITIONS_INPUT + 1] in (("indices",), ("lengths",))

    @property
    def input_range(self) -> tuple[int, int | None]:
        """The least and the greatest number of inputs; None where there is no greatest."""
        least = sum(1 for name in self.inputs if not name.endswith("?"))
        return least, None if any(name.startswith("*") for name in self.inputs) else len(
            self.inputs
        )

    def complete(self, attributes: base.Attributes) -> dict[str, base.AttributeValue]:
        """The attributes with defaults filled in.

        Raises: ValueError for an unknown or missing attribute.
        """
        defaults = {a.name: a.default for a in self.attributes}
        unknown = sorted(attributes.keys() - defaults.keys())
        if unknown:
            raise ValueError(f"{self.name} has no attribute {', '.join(unknown)}")
        full = {**defaults, **attributes}
        missing = sorted(name for name, value in full.items() if value is None)
        if missing:
            raise ValueError(f"{self.name} needs the attribute {', '.join(missing)}")
        return {name: value for name, value in full.items() if value is not None}


def never_identity(source: base.TensorType, attributes: base.Attributes) -> bool:
    """An operator whose output is another tensor than its input."""
    return False


def identity_of_type(source: base.TensorType, attributes: base.Attributes) -> bool:
    """An operator that gives its only input where the types are equal."""
    return True


def tensor_operator(
    name: str,
    doc: str,
    inputs: tuple[str, ...],
    attributes: tuple[Attribute, ...],
    infer: InferRule,
    meaning: Meaning,
    pattern: Pattern = Pattern.INJECTIVE,
    layout: LayoutPreference = LayoutPreference.PLAIN,
    *,
    movement: Movement = Movement.NONE,
    fold: Fold = Fold.NONE,
    is_identity: IdentityRule = never_identity,
    channel_scale: ChannelScale | None = None,
    multiplied: int = 0,
) -> Operator:
    """An operator with a meaning that, unless said otherwise, moves elements about."""
    return Operator(
        name=name,
        inputs=inputs,
        attributes=attributes,
        infer=infer,
        meaning=meaning,
        host=None,
        pattern=pattern,
        layout=layout,
        movement=movement,
        fold=fold,
        is_identity=is_identity,
        channel_scale=channel_scale,
        multiplied=multiplied,
        decides="",
        doc=doc,
    )


FLOATS = frozenset(dtype for dtype in base.DType if dtype.is_float)
INTS = frozenset(dtype for dtype in base.DType if dtype.is_int)
NUMBERS = FLOATS | INTS
SIGNED = frozenset(dtype for dtype in NUMBERS if dtype.is_signed)
BOOLS = frozenset({base.DType.BOOL})
NARROW = frozenset({base.DType.F16, base.DType.BF16})
ANY_DTYPE = frozenset(base.DType)
POSITIONS = frozenset({base.DType.I32, base.DType.I64})

_DTYPE_SETS = {
    FLOATS: "a float",
    INTS: "an integer",
    NUMBERS: "a number",
    SIGNED: "a signed number",
    BOOLS: "bool",
    POSITIONS: "i32 or i64",
}


def fault(reason: str, remedy: str = "") -> base.ModelError:
    """The error that a rule raises; `infer_types` adds the operator and the node."""
    return base.ModelError(stage="operators", where="", reason=reason, remedy=remedy)


def require_dtype(name: str, given: base.TensorType, allowed: frozenset[base.DType]) -> None:
    """Refuse an input whose element type is not among `allowed`."""
    if given.dtype not in allowed:
        wanted = _DTYPE_SETS.get(allowed) or " or ".join(sorted(map(str, allowed)))
        raise fault(f"input {name} has elements of type {given.dtype}, not {wanted}")


def require_same_dtype(names: tuple[str, ...], given: Types) -> None:
    """Refuse inputs whose element types differ."""
    if len({each.dtype for each in given}) > 1:
        dtypes = ", ".join(f"{n} is {t.dtype}" for n, t in zip(names, given, strict=True))
        raise fault(f"the inputs differ in element type: {dtypes}", "cast them to one type")


def require_rank(name: str, given: base.TensorType, least: int, most: int | None = None) -> None:
    """Refuse an input with too few or too many dimensions."""
    rank = len(given.shape)
    if rank < least or (most is not None and rank > most):
        if most is None:
            wanted = f"at least {least}"
        elif least == most:
            wanted = f"{least}"
        else:
            wanted = f"{least} to {most}"
        raise fault(f"input {name} has {rank} dimensions {given.shape}, not {wanted}")


def require_shape(name: str, given: base.TensorType, wanted: tuple[expr.Index, ...]) -> None:
    """Refuse an input of another shape."""
    own = sizes_of(given)
    if not are_equal(own, wanted):
        raise fault(f"input {name} has shape {shape_text(own)}, not {shape_text(wanted)}")


def int_of(attributes: base.Attributes, name: str) -> int:
    """An integer attribute."""
    value = attributes[name]
    if isinstance(value, bool) or not isinstance(value, int):
        raise fault(f"attribute {name} must be an integer, not {value!r}")
    return value


def size_in(attributes: base.Attributes, name: str) -> expr.Index:
    """An attribute that is an integer, or a named size."""
    value = attributes[name]
    return value if isinstance(value, expr.IndexExpr) else int_of(attributes, name)


def float_of(attributes: base.Attributes, name: str) -> float:
    """A number attribute."""
    value = attributes[name]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise fault(f"attribute {name} must be a number, not {value!r}")
    return value


def scalar_of(attributes: base.Attributes, name: str) -> float | int | bool:
    """A number or bool attribute: the value of an element."""
    value = attributes[name]
    return value if isinstance(value, bool) else float_of(attributes, name)


def bool_of(attributes: base.Attributes, name: str) -> bool:
    """A bool attribute; 0 and 1 are taken too."""
    value = attributes[name]
    if not isinstance(value, bool) and value not in (0, 1):
        raise fault(f"attribute {name} must be true or false, not {value!r}")
    return bool(value)


def text_of(attributes: base.Attributes, name: str, allowed: tuple[str, ...] = ()) -> str:
    """A text attribute, one of `allowed` where that is given."""
    value = attributes[name]
    if not isinstance(value, str):
        raise fault(f"attribute {name} must be a text, not {value!r}")
    if allowed and value not in allowed:
        raise fault(f"attribute {name} is {value!r}", "one of " + ", ".join(allowed))
    return value


def dtype_of(attributes: base.Attributes, name: str) -> base.DType:
    """An element type attribute."""
    value = attributes[name]
    if not isinstance(value, base.DType):
        raise fault(f"attribute {name} must be an element type, not {value!r}")
    return value


def ints_of(attributes: base.Attributes, name: str) -> tuple[int, ...]:
    """An attribute that is a tuple of integers."""
    return tuple(int(item) for item in _numbers_of(attributes, name, int, "integers"))


def sizes_in(attributes: base.Attributes, name: str) -> tuple[expr.Index, ...]:
    """An attribute that is a tuple of integers, or of named sizes."""
    value = _numbers_of(attributes, name, (int, expr.IndexExpr), "integers")
    return tuple(item if isinstance(item, expr.IndexExpr) else int(item) for item in value)


def floats_of(attributes: base.Attributes, name: str) -> tuple[float, ...]:
    """An attribute that is a tuple of numbers."""
    return tuple(float(item) for item in _numbers_of(attributes, name, (int, float), "numbers"))


def _numbers_of(
    attributes: base.Attributes, name: str, kind: type[int] | tuple[type, ...], what: str
) -> tuple[Any, ...]:
    value = attributes[name]
    if not isinstance(value, tuple) or not all(isinstance(item, kind) for item in value):
        if isinstance(value, tuple) and any(isinstance(item, expr.IndexExpr) for item in value):
            remedy = "give a number for each named size"
            given = f"({', '.join(map(str, value))})"
            raise fault(f"attribute {name} must be a tuple of {what}, not {given}", remedy)
        raise fault(f"attribute {name} must be a tuple of {what}, not {value!r}")
    return value


def per_axis(attributes: base.Attributes, name: str, count: int, default: int) -> tuple[int, ...]:
    """One integer per axis; an empty tuple stands for the default everywhere."""
    values = ints_of(attributes, name) or (default,) * count
    if len(values) != count:
        raise fault(f"attribute {name} {values} has {len(values)} values, not {count}")
    return values


AXIS = Attribute("axis", -1, "the dimension; negative counts from the last")
EPSILON = Attribute("epsilon", 1e-5, "is added to the variance")
KEEPDIMS = Attribute("keepdims", default=True, doc="keep the reduced dimensions with extent 1")
SORTED = Attribute("sorted", default=True, doc="in order of the values")


_FREE = frozenset((expr.Fn.AND, expr.Fn.OR, expr.Fn.XOR, expr.Fn.NOT, expr.Fn.ISNAN, expr.Fn.ISINF))


def work(computes: Sequence[expr.Tensor]) -> int:
    """As `open_work`, for tensors whose extents are numbers.

    Raises:  UnsupportedError for others.
    """
    return number_of(open_work(computes))


def moved_bytes(computes: Sequence[expr.Tensor]) -> int:
    """As `open_moved_bytes`, for tensors whose extents are numbers."""
    return number_of(open_moved_bytes(computes))


def open_work(computes: Sequence[expr.Tensor]) -> expr.Index:
    """The operations of the given tensors and of all that they are computed from, each counted
    once: a number, or an expression of named sizes.

    An arithmetic function or comparison of values is one operation, whatever it is; so is each step
    of a reduction, so that a multiply-add is two.  Loads, selects, casts and index arithmetic do
    not count.
    """
    stages = [
        stage for stage in expr.topological_order(*computes) if isinstance(stage, expr.Compute)
    ]
    return expr.sum_of(
        [
            _box(stage) * (_operations(stage.body) + (stage.reduction is not None))
            for stage in stages
        ]
    )


def _box(stage: expr.Compute) -> expr.Index:
    """How often the body of a stage is evaluated."""
    return prod((axis.extent for axis in (*stage.axes, *stage.reduce_axes)), start=1)


def open_moved_bytes(computes: Sequence[expr.Tensor]) -> expr.Index:
    """The bytes of inputs and outputs that must be moved at least, each counted once.

    Of an input, only the elements that are read count: a looked-up row, not the whole table.
    """
    stages = [
        stage for stage in expr.topological_order(*computes) if isinstance(stage, expr.Compute)
    ]
    reads: dict[expr.Tensor, expr.Index] = {}
    for stage in stages:
        for load in expr.loads_of(stage.body):
            if not isinstance(load.source, expr.Compute):
                reads[load.source] = reads.get(load.source, 0) + _box(stage)
    moved = [
        expr.minimum(count, _elements(tensor)) * tensor.dtype.size_bytes
        for tensor, count in reads.items()
    ]
    return expr.sum_of([*moved, *(_elements(each) * each.dtype.size_bytes for each in computes)])


def _elements(tensor: expr.Tensor) -> expr.Index:
    return prod(tensor.shape, start=1)


def _operations(value: expr.Value) -> int:
    own = 1 if isinstance(value, expr.Apply) and value.fn not in _FREE else 0
    return own + sum(_operations(child) for child in expr.children(value))
