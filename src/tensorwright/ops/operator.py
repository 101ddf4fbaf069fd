"""The record of an operator: its attributes, its shape rule and its meaning.

The meaning is a tensor expression; NumPy reference, fingerprints, proofs and machine code all come
from it.  An operator without a tensor expression (non-zero, sorting, ...) has a host implementation
instead; where `loop/algorithms` has a loop nest for it, that runs.  Shape rules and meanings take
numbers and named sizes (`named_sizes.py`), host implementations take arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import Attributes, AttributeValue, HostFunction, TensorType
from tensorwright.expr import Compute, Tensor


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
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Attribute:
    """A declared attribute; `default` None means that it is required."""

    name: str
    default: AttributeValue | None
    doc: str


InferRule: TypeAlias = Callable[[tuple[TensorType, ...], Attributes], tuple[TensorType, ...]]
Meaning: TypeAlias = Callable[[tuple[Tensor, ...], Attributes], tuple[Compute, ...]]
IdentityRule: TypeAlias = Callable[[TensorType, Attributes], bool]
Numbers: TypeAlias = NDArray[np.float64]
ChannelScale: TypeAlias = Callable[[Numbers, Numbers, Attributes], Numbers]


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
    decides          the attribute with the size that its values decide, an extent of an output; ""
                     where shapes follow from shapes
    doc      one line: the formula, or what comes out
    """

    name: str
    inputs: tuple[str, ...]
    attributes: tuple[Attribute, ...]
    infer: InferRule
    meaning: Meaning | None
    host: HostFunction | None
    pattern: Pattern
    layout: LayoutPreference
    movement: Movement
    fold: Fold
    is_identity: IdentityRule
    channel_scale: ChannelScale | None
    decides: str
    doc: str

    @property
    def is_convolution(self) -> bool:
        """Whether it multiplies out windows of channels with weights."""
        return self.pattern is Pattern.ANCHOR and self.layout is LayoutPreference.CHANNELS

    @property
    def input_range(self) -> tuple[int, int | None]:
        """The least and the greatest number of inputs; None where there is no greatest."""
        least = sum(1 for name in self.inputs if not name.endswith("?"))
        return least, None if any(name.startswith("*") for name in self.inputs) else len(
            self.inputs
        )

    def complete(self, attributes: Attributes) -> dict[str, AttributeValue]:
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


def never_identity(source: TensorType, attributes: Attributes) -> bool:
    """An operator whose output is another tensor than its input."""
    return False


def identity_of_type(source: TensorType, attributes: Attributes) -> bool:
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
        decides="",
        doc=doc,
    )
