"""The one evaluator of tensor expressions, over any number domain, in bounded memory.

Sums of products become matrix multiplications on views (`contraction.py`); everything else is
evaluated on blocks of the output (`contraction.py`), and of the reduction where one output point is
still too large.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from tensorwright.base import InputError
from tensorwright.expr.binding import refine_axes
from tensorwright.expr.evaluation import contraction
from tensorwright.expr.evaluation.domain import NUMPY, Array, Domain
from tensorwright.expr.evaluation.loop_box import (
    LoopBox,
    Span,
    Spans,
    halves,
    spans_of,
    volume,
    working_bytes,
)
from tensorwright.expr.tensor import (
    Combiner,
    Compute,
    Placeholder,
    Reduction,
    Tensor,
    identity_of,
    topological_order,
)
from tensorwright.expr.value import loads_of

LIMIT_BYTES = 256 * 1024 * 1024
_BLOCK_BYTES = 16 * 1024 * 1024  # element-wise work is faster where a block stays in the caches


def evaluate(
    outputs: Sequence[Tensor],
    inputs: Mapping[Placeholder, Array],
    domain: Domain = NUMPY,
    limit_bytes: int = LIMIT_BYTES,
) -> tuple[Array, ...]:
    """The values of some tensors, as arrays in the domain's storage.

    Shapes:  every input has its placeholder's shape; results have the shapes of `outputs`
    Raises:  InputError for a missing input or a wrong shape or type;
             IndexError where an unguarded load leaves its tensor.
    Units:   `limit_bytes` bounds the memory besides inputs, intermediate tensors and results.

    Example:
        >>> from tensorwright.expr import compute, placeholder, reduce_axis, sum_over
        >>> x, k = placeholder("x", (2, 3)), reduce_axis("k", 3)
        >>> total = compute("total", (2,), lambda i: sum_over(x[i, k], k))
        >>> evaluate([total], {x: np.ones((2, 3), np.float32)})
        (array([3., 3.], dtype=float32),)
    """
    order = topological_order(*outputs)
    waiting = _uses(order, outputs)
    arrays: dict[Tensor, Array] = {}
    for tensor in order:
        if isinstance(tensor, Placeholder):
            arrays[tensor] = _read_input(tensor, inputs, domain)
            continue
        arrays[tensor] = evaluate_one(tensor, arrays, domain, limit_bytes)
        for source in {load.source for load in loads_of(tensor.body)}:
            waiting[source] -= 1
            if not waiting[source]:
                del arrays[source]
    return tuple(arrays[output] for output in outputs)


def _uses(order: Sequence[Tensor], outputs: Sequence[Tensor]) -> dict[Tensor, int]:
    """How many tensors read each tensor; one more where the caller wants it."""
    waiting = {tensor: int(tensor in outputs) for tensor in order}
    for tensor in order:
        if isinstance(tensor, Compute):
            for source in {load.source for load in loads_of(tensor.body)}:
                waiting[source] += 1
    return waiting


def _read_input(tensor: Placeholder, inputs: Mapping[Placeholder, Array], domain: Domain) -> Array:
    def refuse(reason: str) -> InputError:
        return InputError(
            stage="evaluate",
            where=f"input {tensor.name}",
            reason=reason,
            remedy=f"pass an array for {tensor}",
        )

    if tensor not in inputs:
        raise refuse("no array was passed for it")
    array = np.asarray(inputs[tensor])
    if array.shape != tensor.shape:
        raise refuse(f"the array has shape {array.shape}")
    try:
        return domain.inject(array, tensor.dtype)
    except TypeError as error:
        raise refuse(str(error)) from error


def evaluate_one(
    tensor: Compute,
    arrays: Mapping[Tensor, Array],
    domain: Domain = NUMPY,
    limit_bytes: int = LIMIT_BYTES,
    products: bool = True,
) -> Array:
    """One tensor from the tensors that it reads; without `products` always block by block."""
    return _filled(_plan(tensor, limit_bytes, products), arrays, domain)


class Prepared:
    """A tensor that is evaluated many times: results that do not depend on values are kept.

    Example:
        >>> from tensorwright.expr import compute, placeholder
        >>> x = placeholder("x", (2,))
        >>> double = Prepared(compute("double", (2,), lambda i: x[i] + x[i]))
        >>> double.value({x: np.ones(2, np.float32)})
        array([2., 2.], dtype=float32)
    """

    def __init__(self, tensor: Compute) -> None:
        self.tensor = tensor
        plan = _plan(tensor, LIMIT_BYTES, products=True)
        blocks = tuple(replace(block, boxes=tuple(block.boxes)) for block in plan.blocks)
        self._plan = replace(plan, blocks=blocks)

    def value(self, arrays: Mapping[Tensor, Array], domain: Domain = NUMPY) -> Array:
        """The tensor from those that it reads, which are in the domain's storage.

        Raises:  IndexError as `evaluate`.
        """
        return _filled(self._plan, arrays, domain)


@dataclass(frozen=True, slots=True)
class _Block:
    """A box of the output, with the boxes that it reads on: one for each part that is folded."""

    spans: Spans
    boxes: Iterable[LoopBox]


@dataclass(frozen=True, slots=True)
class _Plan:
    """How a tensor is filled.

    tensor  with finer axes      shape  of the result
    plan    where it is a sum of products
    blocks  none where it has no elements, or folds none: then it is the identity of its fold
    """

    tensor: Compute
    shape: tuple[int, ...]
    product: contraction.ProductSum | None
    blocks: Iterable[_Block]


def _plan(tensor: Compute, limit_bytes: int, products: bool) -> _Plan:
    shape = tuple(axis.length for axis in tensor.axes)
    reduction = tensor.reduction
    if volume(spans_of(tensor.axes)) == 0 or (
        reduction is not None and volume(spans_of(reduction.axes)) == 0
    ):
        return _Plan(tensor, shape, None, ())
    finer = refine_axes(tensor)
    product = contraction.find_product_sum(finer) if products else None
    if product is not None:
        point = tuple(Span(span.var, 0, 1) for span in spans_of(finer.axes))
        if contraction.product_bytes(product, point) <= limit_bytes:
            return _Plan(finer, shape, product, _product_blocks(finer, product, limit_bytes))
    return _Plan(finer, shape, None, _value_blocks(finer, min(limit_bytes, _BLOCK_BYTES)))


def _product_blocks(tensor: Compute, plan: contraction.ProductSum, limit: int) -> Iterator[_Block]:
    for box in halves(spans_of(tensor.axes), partial(contraction.product_bytes, plan), limit):
        yield _Block(box, contraction.product_boxes(plan, box))


def _value_blocks(tensor: Compute, limit: int) -> Iterator[_Block]:
    """Block by block; a fold is cut only where one point of the output is too large."""
    cost = working_bytes(tensor.body)
    folded = spans_of(tensor.reduce_axes)
    for box in halves(spans_of(tensor.axes), partial(_joint_cost, cost, folded), limit):
        pieces = halves(folded, partial(_joint_cost, cost, box), limit)
        yield _Block(box, tuple(LoopBox((*box, *inner)) for inner in pieces))


def _joint_cost(cost: Callable[[Spans], int], fixed: Spans, box: Spans) -> int:
    return cost((*box, *fixed))


def _filled(plan: _Plan, arrays: Mapping[Tensor, Array], domain: Domain) -> Array:
    tensor = plan.tensor
    result = np.empty(plan.shape, domain.storage(tensor.dtype))
    if result.size == 0:
        return result
    reduction = tensor.reduction
    if plan.blocks == ():
        assert reduction is not None, "only a fold of nothing has no blocks"
        identity = identity_of(
            Combiner.MIN if reduction.combiner.is_arg else reduction.combiner, tensor.dtype
        )
        result[...] = domain.const(identity.value, identity.type)
        return result
    target = result.reshape([axis.length for axis in tensor.axes])
    with np.errstate(all="ignore"):
        for block in plan.blocks:
            _part(target, block.spans)[...] = _block_values(plan, block, arrays, domain)
    return result


def _block_values(
    plan: _Plan, block: _Block, arrays: Mapping[Tensor, Array], domain: Domain
) -> Array:
    """The tensor on one block, as an array of its shape."""
    tensor, product = plan.tensor, plan.product
    if product is not None:
        total = contraction.contract_box(product, block.spans, block.boxes, arrays, domain)
        return domain.cast(total, domain.accumulator(Combiner.SUM, product.dtype), product.dtype)
    boxes = tuple(block.boxes)
    reduction = tensor.reduction
    if reduction is None:
        return _shaped(contraction.Grid(boxes[0], arrays, domain).value(tensor.body), block.spans)
    pieces = (_on_fold(tensor, block.spans, box, arrays, domain) for box in boxes)
    if not reduction.combiner.is_arg:
        return _fold_values(tensor, reduction, block.spans, pieces, domain)
    if len(boxes) == 1:
        axes = (1 + len(block.spans),)
        folded = domain.reduce(reduction.combiner, next(pieces), axes, tensor.body.dtype)
        return _shaped(folded, block.spans)
    starts = [box.spans[len(block.spans)].start for box in boxes]
    return _fold_positions(tensor, reduction, block.spans, zip(starts, pieces, strict=True), domain)


def _part(target: Array, box: Spans) -> Array:
    """A view of a block, for a tensor without dimensions too."""
    region: list[Any] = [slice(span.start, span.stop) for span in box]
    part: Array = target[(*region, Ellipsis)]
    return part


def _fold_values(
    tensor: Compute, reduction: Reduction, box: Spans, pieces: Iterable[Array], domain: Domain
) -> Array:
    """The fold of the body over the pieces; no extent is zero."""
    dtype = tensor.body.dtype
    wide = domain.accumulator(reduction.combiner, dtype)
    axes = tuple(range(1 + len(box), 1 + len(box) + len(reduction.axes)))
    total: Array | None = None
    for piece in pieces:
        body = domain.cast(piece, dtype, wide)
        part = domain.reduce(reduction.combiner, body, axes, wide)
        if total is None:
            total = part
        else:
            total = domain.apply(reduction.combiner.fn, (total, part), wide)
    assert total is not None
    return _shaped(domain.cast(total, wide, tensor.dtype), box)


def _fold_positions(
    tensor: Compute,
    reduction: Reduction,
    box: Spans,
    pieces: Iterable[tuple[int, Array]],
    domain: Domain,
) -> Array:
    """The position of the first best value; pieces are compared through their best values.

    pieces  each with the first position in it
    """
    dtype = tensor.body.dtype
    axis = 1 + len(box)
    best: Array | None = None
    position = np.zeros((), np.int64)
    for start, body in pieces:
        offset = domain.to_index(domain.reduce(reduction.combiner, body, (axis,), dtype))
        value = np.take_along_axis(body, np.expand_dims(offset, axis), axis)
        offset = offset + start
        if best is None:
            best, position = value, offset
            continue
        rivals = np.concatenate([best, value], axis)
        is_new = domain.to_index(domain.reduce(reduction.combiner, rivals, (axis,), dtype)) == 1
        best = np.where(np.expand_dims(is_new, axis), value, best)
        position = np.where(is_new, offset, position)
    return _shaped(domain.from_index(position, tensor.dtype), box)


def _on_fold(
    tensor: Compute, box: Spans, loop_box: LoopBox, arrays: Mapping[Tensor, Array], domain: Domain
) -> Array:
    """The body on a block, repeated along the folded axes that it does not depend on."""
    body = contraction.Grid(loop_box, arrays, domain).value(tensor.body)
    outer = body.shape[: 1 + len(box)] or (1,) * (1 + len(box))
    return np.broadcast_to(body, (*outer, *(span.extent for span in loop_box.spans[len(box) :])))


def _shaped(values: Array, box: Spans) -> Array:
    """Values on a grid as an array of the box's own shape."""
    shape = tuple(span.extent for span in box)
    return np.broadcast_to(values, (1, *shape)).reshape(shape)
