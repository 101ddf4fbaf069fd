"""The one evaluator: what tensor expressions are, over any number domain, in bounded memory.

Sums of products become matrix multiplications on views (`contraction.py`); everything else is
evaluated on blocks of the output (`grid.py`), and of the reduction where one output point is
still too large.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tensorwright.base import InputError
from tensorwright.expr.evaluation.blocks import (
    Spans,
    extent_of,
    halves,
    spans_of,
    volume,
    working_bytes,
)
from tensorwright.expr.evaluation.contraction import contract_box, find_product_sum, product_bytes
from tensorwright.expr.evaluation.domain import Array, Domain
from tensorwright.expr.evaluation.grid import Grid
from tensorwright.expr.evaluation.numpy_domain import NUMPY
from tensorwright.expr.evaluation.window import Span
from tensorwright.expr.refine import refine_axes
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
    Units:   `limit_bytes` bounds what is needed besides inputs, intermediate tensors and results.

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


@dataclass(frozen=True, slots=True)
class _Context:
    """What does not change while one tensor is filled."""

    arrays: Mapping[Tensor, Array]
    domain: Domain
    limit_bytes: int


def evaluate_one(
    tensor: Compute,
    arrays: Mapping[Tensor, Array],
    domain: Domain = NUMPY,
    limit_bytes: int = LIMIT_BYTES,
    products: bool = True,
) -> Array:
    """One tensor from the tensors that it reads; without `products` always block by block."""
    shape = tuple(extent_of(axis) for axis in tensor.axes)
    result = np.empty(shape, domain.storage(tensor.dtype))
    if result.size == 0:
        return result
    reduction = tensor.reduction
    if reduction is not None and volume(spans_of(reduction.axes)) == 0:
        identity = identity_of(
            Combiner.MIN if reduction.combiner.is_arg else reduction.combiner, tensor.dtype
        )
        result[...] = domain.const(identity.value, identity.type)
        return result
    finer = refine_axes(tensor)
    target = result.reshape([extent_of(axis) for axis in finer.axes])
    context = _Context(arrays, domain, limit_bytes)
    with np.errstate(all="ignore"):
        if not products or not _fill_products(finer, target, context):
            _fill_blocks(finer, target, context)
    return result


def _part(target: Array, box: Spans) -> Array:
    """A view of a block, for a tensor without dimensions too."""
    place: list[Any] = [slice(span.start, span.stop) for span in box]
    part: Array = target[(*place, Ellipsis)]
    return part


def _fill_products(tensor: Compute, target: Array, context: _Context) -> bool:
    """Fill by matrix multiplications; False where that is not possible within the limit."""
    plan = find_product_sum(tensor)
    if plan is None:
        return False
    whole, limit, domain = spans_of(tensor.axes), context.limit_bytes, context.domain
    if product_bytes(plan, tuple(Span(span.var, 0, 1) for span in whole)) > limit:
        return False
    wide = domain.accumulator(Combiner.SUM, plan.dtype)
    for box in halves(whole, partial(product_bytes, plan), limit):
        total = contract_box(plan, box, context.arrays, domain)
        _part(target, box)[...] = domain.cast(total, wide, plan.dtype)
    return True


def _fill_blocks(tensor: Compute, target: Array, context: _Context) -> None:
    """Fill block by block; a fold is cut only where one point of the output is too large."""
    limit = min(context.limit_bytes, _BLOCK_BYTES)
    cost = working_bytes(tensor.body)
    folded = spans_of(tensor.reduce_axes)
    reduction = tensor.reduction
    for box in halves(spans_of(tensor.axes), partial(_joint_cost, cost, folded), limit):
        if reduction is None:
            values = Grid(box, context.arrays, context.domain).value(tensor.body)
            _part(target, box)[...] = _shaped(values, box)
            continue
        pieces = tuple(halves(folded, partial(_joint_cost, cost, box), limit))
        fold = _fold_positions if reduction.combiner.is_arg else _fold_values
        _part(target, box)[...] = fold(tensor, reduction, box, pieces, context)


def _joint_cost(cost: Callable[[Spans], int], fixed: Spans, box: Spans) -> int:
    return cost((*box, *fixed))


def _fold_values(
    tensor: Compute, reduction: Reduction, box: Spans, pieces: Sequence[Spans], context: _Context
) -> Array:
    """The fold of the body over the pieces; no extent is zero."""
    domain, dtype = context.domain, tensor.body.dtype
    wide = domain.accumulator(reduction.combiner, dtype)
    axes = tuple(range(1 + len(box), 1 + len(box) + len(reduction.axes)))
    total: Array | None = None
    for inner in pieces:
        body = domain.cast(_on_fold(tensor, box, inner, context), dtype, wide)
        part = domain.reduce(reduction.combiner, body, axes, wide)
        if total is None:
            total = part
        else:
            total = domain.apply(reduction.combiner.fn, (total, part), wide)
    assert total is not None
    return _shaped(domain.cast(total, wide, tensor.dtype), box)


def _fold_positions(
    tensor: Compute, reduction: Reduction, box: Spans, pieces: Sequence[Spans], context: _Context
) -> Array:
    """The position of the first best value; pieces are compared through their best values."""
    domain, dtype = context.domain, tensor.body.dtype
    axis = 1 + len(box)
    best: Array | None = None
    position = np.zeros((), np.int64)
    for inner in pieces:
        body = _on_fold(tensor, box, inner, context)
        found = domain.reduce(reduction.combiner, body, (axis,), dtype)
        if len(pieces) == 1:
            return _shaped(found, box)
        place = domain.to_index(found)
        value = np.take_along_axis(body, np.expand_dims(place, axis), axis)
        place = place + inner[0].start
        if best is None:
            best, position = value, place
            continue
        rivals = np.concatenate([best, value], axis)
        is_new = domain.to_index(domain.reduce(reduction.combiner, rivals, (axis,), dtype)) == 1
        best = np.where(np.expand_dims(is_new, axis), value, best)
        position = np.where(is_new, place, position)
    return _shaped(domain.from_index(position, tensor.dtype), box)


def _on_fold(tensor: Compute, box: Spans, inner: Spans, context: _Context) -> Array:
    """The body on a block, repeated along the folded axes that it does not depend on."""
    body = Grid((*box, *inner), context.arrays, context.domain).value(tensor.body)
    outer = body.shape[: 1 + len(box)] or (1,) * (1 + len(box))
    return np.broadcast_to(body, (*outer, *(span.extent for span in inner)))


def _shaped(values: Array, box: Spans) -> Array:
    """Values on a grid as an array of the box's own shape."""
    shape = tuple(span.extent for span in box)
    return np.broadcast_to(values, (1, *shape)).reshape(shape)
