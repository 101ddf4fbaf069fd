"""Folds of the elements up to each position.

| operators | inputs | attributes |
|---|---|---|
| cumsum cumprod | x | axis=0, exclusive=False, reverse=False |

More elements than a block has are cut into blocks. Each block is folded, and so are the folds of
the blocks before each one. An element is the fold of these and of the elements before it in its own
block (Blelloch, Prefix Sums and Their Applications, 1990, section 1.2). The longest chain has as
many steps as a block has elements, and rounding errors grow with the logarithm of the extent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tensorwright.base import Attributes, TensorType
from tensorwright.expr import (
    Compute,
    Fn,
    Index,
    Load,
    Reduce,
    Tensor,
    Value,
    apply,
    ceil_div,
    compute,
    is_same,
    mod,
    prod_over,
    reduce_axis,
    select,
    sum_over,
)
from tensorwright.ops.access import axis_names
from tensorwright.ops.attributes import NUMBERS, bool_of, int_of, require_dtype
from tensorwright.ops.named_sizes import is_certain
from tensorwright.ops.operator import Attribute, Fold, Operator, Pattern, tensor_operator
from tensorwright.ops.shapes import axis_in

_BLOCK = 16  # elements
_MOST_LEVELS = 3  # of blocks of blocks, where the extent is a size: 65536 elements in short folds

_ATTRIBUTES = (
    Attribute("axis", 0, "the dimension; negative counts from the last"),
    Attribute("exclusive", default=False, doc="without the element itself"),
    Attribute("reverse", default=False, doc="from the end"),
)


@dataclass(frozen=True, slots=True)
class _Running:
    """A fold by `fn` of the elements up to each position; those behind it count as `start`."""

    name: str
    fold: Callable[..., Reduce]
    fn: Fn
    start: int

    def meaning(self, tensors: tuple[Tensor, ...], attributes: Attributes) -> tuple[Compute, ...]:
        (x,) = tensors
        axis = axis_in(int_of(attributes, "axis"), len(x.shape))
        exclusive, reverse = bool_of(attributes, "exclusive"), bool_of(attributes, "reverse")
        return (self.along(x, axis, exclusive=exclusive, reverse=reverse),)

    def along(
        self, x: Tensor, axis: int, *, exclusive: bool, reverse: bool, depth: int = 0
    ) -> Compute:
        """The running fold along an axis, of which `depth` levels of blocks are taken."""
        is_short = is_certain(x.shape[axis] <= _BLOCK)
        if is_short or (depth == _MOST_LEVELS and not isinstance(x.shape[axis], int)):
            return self._at_once(x, axis, exclusive=exclusive, reverse=reverse)
        blocks = _Blocks(x, axis, self.start, reverse=reverse)
        own = self._in_own_blocks(blocks, exclusive=exclusive)
        inner = self._of_blocks(blocks)
        before = self.along(inner, axis, exclusive=True, reverse=False, depth=depth + 1)

        def body(*at: Index) -> Value:
            number = blocks.number(at[axis])
            block, inner = (*at[:axis], number // _BLOCK), (number % _BLOCK,)
            others = at[axis + 1 :]
            return apply(self.fn, Load(before, block + others), Load(own, block + inner + others))

        return compute(self.name, x.shape, body, axis_names(len(x.shape)))

    def _at_once(self, x: Tensor, axis: int, *, exclusive: bool, reverse: bool) -> Compute:
        k = reduce_axis("k", x.shape[axis])

        def body(*at: Index) -> Reduce:
            first, last = (at[axis], k.var) if reverse else (k.var, at[axis])
            inside = first < last if exclusive else first <= last
            value = Load(x, (*at[:axis], k.var, *at[axis + 1 :]))
            return self.fold(select(inside, value, self.start), k)

        return compute(self.name, x.shape, body, axis_names(len(x.shape)))

    def _in_own_blocks(self, blocks: _Blocks, *, exclusive: bool) -> Compute:
        """(..., block, position in it, ...): the fold of a block up to a position."""
        axis, shape = blocks.axis, blocks.shape
        k = reduce_axis("k", _BLOCK)

        def body(*at: Index) -> Reduce:
            last = at[axis + 1]
            inside = k.var < last if exclusive else k.var <= last
            value = blocks.element((*at[: axis + 1], *at[axis + 2 :]), k.var)
            return self.fold(select(inside, value, self.start), k)

        inner = (*shape[: axis + 1], _BLOCK, *shape[axis + 1 :])
        return compute(f"{self.name}_own", inner, body, axis_names(len(inner)))

    def _of_blocks(self, blocks: _Blocks) -> Compute:
        """(..., block, ...): the fold of all elements of each block."""
        k = reduce_axis("k", _BLOCK)
        names = axis_names(len(blocks.shape))
        return compute(
            f"{self.name}_block",
            blocks.shape,
            lambda *at: self.fold(blocks.element(at, k.var), k),
            names,
        )


class _Blocks:
    """A tensor whose elements along an axis are cut into blocks; the last is filled up."""

    def __init__(self, x: Tensor, axis: int, start: int, *, reverse: bool) -> None:
        self.x, self.axis, self.start, self.reverse = x, axis, start, reverse
        self.extent = x.shape[axis]
        count = ceil_div(self.extent, _BLOCK)
        self.shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])

    def number(self, position: Index) -> Index:
        """How many elements a running fold takes before the one at a position, and the inverse."""
        return self.extent - 1 - position if self.reverse else position

    def element(self, at: tuple[Index, ...], offset: Index) -> Value:
        """The element of a block at an offset."""
        axis = self.axis
        number = at[axis] * _BLOCK + offset
        value = Load(self.x, (*at[:axis], self.number(number), *at[axis + 1 :]))
        is_whole = is_same(mod(self.extent, _BLOCK), 0)
        return value if is_whole else select(number < self.extent, value, self.start)


def _infer(types: tuple[TensorType, ...], attributes: Attributes) -> tuple[TensorType, ...]:
    require_dtype("x", types[0], NUMBERS)
    axis_in(int_of(attributes, "axis"), len(types[0].shape))
    return types


def _operator(doc: str, running: _Running) -> Operator:
    return tensor_operator(
        running.name,
        doc,
        ("x",),
        _ATTRIBUTES,
        _infer,
        running.meaning,
        Pattern.REDUCTION,
        fold=Fold.OTHER,
    )


RUNNING_OPERATORS = (
    _operator(
        "sum of the elements up to each position along the axis",
        _Running("cumsum", sum_over, Fn.ADD, 0),
    ),
    _operator(
        "product of the elements up to each position along the axis",
        _Running("cumprod", prod_over, Fn.MUL, 1),
    ),
)
