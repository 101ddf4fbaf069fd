"""Evaluation of index expressions and values on a box of loop variables, one array operation each.

Every variable has a dimension of its own; an expression that does not depend on a variable has
extent 1 there, so nothing is repeated before it must be.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

import numpy as np

from tensorwright.base import DType
from tensorwright.expr.evaluation.domain import Array, Domain
from tensorwright.expr.evaluation.points import evaluate_condition, evaluate_index
from tensorwright.expr.evaluation.window import Affine, Span, inner_box, read_affine, strided_view
from tensorwright.expr.index import (
    Compare,
    Condition,
    Element,
    Index,
    Var,
)
from tensorwright.expr.value import Apply, Cast, Const, FromIndex, Load, Select, Value, ValueExpr


class Grid:
    """One box, evaluated; mutable (it remembers shared subexpressions), used inside one function.

    Arrays come with one dimension per span, preceded by one of extent 1 so that none is a scalar;
    or, where nothing depends on a variable, without dimensions.
    """

    def __init__(
        self, spans: tuple[Span, ...], arrays: Mapping[Any, Array], domain: Domain
    ) -> None:
        self.spans = spans
        self.rank = 1 + len(spans)
        self._arrays = arrays
        self._domain = domain
        self._all_spans = (Span(Var(""), 0, 1), *spans)
        self._place = {span.var: position for position, span in enumerate(spans, 1)}
        self._shared: dict[tuple[int, bool], tuple[Value, Array]] = {}

    def index(self, expression: Index, guarded: bool = False) -> Array | int:
        """An index expression as int64; `guarded` clamps what elements read outside a tensor."""

        def value_of(atom: Var | Element) -> Array:
            if isinstance(atom, Var):
                return self._variable(atom)
            return self._domain.to_index(self._gather(atom.source, atom.indices, guarded))

        result: Array | int = evaluate_index(expression, value_of)
        return result

    def condition(self, condition: Condition, guarded: bool = False) -> Array:
        """A condition as NumPy bools."""
        guarded = guarded or not isinstance(condition, Compare)
        return np.asarray(evaluate_condition(condition, lambda side: self.index(side, guarded)))

    def value(self, value: Value, guarded: bool = False) -> Array:
        """A value in the domain's storage; `guarded` is set below an index condition."""
        key = (id(value), guarded)
        found = self._shared.get(key)
        if found is not None:
            return found[1]
        result = self._value(value, guarded)
        if isinstance(value, (Apply, Select, Cast)):
            self._shared[key] = (value, result)  # the value is kept so that its id stays its own
        return result

    def _value(self, value: Value, guarded: bool) -> Array:
        domain = self._domain
        match value:
            case Const(number, dtype):
                return domain.const(number, dtype)
            case Load(source, indices):
                return self._load(source, indices, guarded)
            case FromIndex(index, dtype):
                return domain.from_index(np.asarray(self.index(index, guarded), np.int64), dtype)
            case Apply(fn, args):
                return domain.apply(fn, [self.value(arg, guarded) for arg in args], args[0].dtype)
            case Cast(operand, dtype):
                return domain.cast(self.value(operand, guarded), operand.dtype, dtype)
            case Select(condition, then, otherwise):
                if not isinstance(condition, ValueExpr):
                    return self._branch(condition, then, otherwise, guarded)
                chosen = self.value(condition, guarded)
                branches = self.value(then, guarded), self.value(otherwise, guarded)
                return domain.select(chosen, *branches)
        assert_never(value)

    def _branch(self, condition: Condition, then: Value, otherwise: Value, guarded: bool) -> Array:
        """Select by an index condition; a branch that is never taken is not evaluated."""
        chosen = self.condition(condition, guarded)
        if chosen.all():
            return self.value(then, guarded)
        if not chosen.any():
            return self.value(otherwise, guarded)
        branches = self.value(then, guarded=True), self.value(otherwise, guarded=True)
        return self._domain.select(chosen, *branches)

    def _variable(self, var: Var) -> Array:
        position = self._place.get(var)
        if position is None:
            raise ValueError(f"the variable {var} is bound by no axis")
        span = self.spans[position - 1]
        shape = [1] * self.rank
        shape[position] = span.extent
        return np.arange(span.start, span.stop, dtype=np.int64).reshape(shape)

    def _load(self, source: Any, indices: tuple[Index, ...], guarded: bool) -> Array:
        """A view where every index is affine and stays inside; a copy of what is inside; a gather.

        What a guarded load reads outside its tensor is zero or clamped: it is never chosen.
        """
        array = self._arrays[source]
        affine = read_affine(indices, self._place)
        if affine is not None:
            view = strided_view(array, affine, self._all_spans)
            if view is not None:
                return view
            inner = inner_box(array.shape, affine, self._all_spans) if guarded else None
            view = strided_view(array, affine, inner) if inner is not None else None
            if inner is not None and view is not None:
                return self._framed(view, inner, affine, source.dtype)
        return self._gather(source, indices, guarded)

    def _framed(
        self, view: Array, inner: tuple[Span, ...], affine: list[Affine], dtype: DType
    ) -> Array:
        """A view of the inner box with zeros around it."""
        used = {place for index in affine for place, _ in index.scales}
        shape = [s.extent if p in used else 1 for p, s in enumerate(self._all_spans)]
        result = np.empty(shape, view.dtype)
        result[...] = self._domain.const(0, dtype)
        place = tuple(
            slice(part.start - whole.start, part.stop - whole.start) if p in used else slice(None)
            for p, (part, whole) in enumerate(zip(inner, self._all_spans, strict=True))
        )
        result[place] = view
        return result

    def _gather(self, source: Any, indices: tuple[Index, ...], guarded: bool) -> Array:
        array = self._arrays[source]
        places = []
        for index, extent in zip(indices, array.shape, strict=True):
            place = np.asarray(self.index(index, guarded), np.int64)
            if place.size and (int(place.min()) < 0 or int(place.max()) >= extent):
                if not guarded:
                    bad = int(place.min()) if int(place.min()) < 0 else int(place.max())
                    where = f"{source.name}[{', '.join(map(str, indices))}]"
                    raise IndexError(f"{where}: index {index} reaches {bad}, extent is {extent}")
                place = np.clip(place, 0, max(extent - 1, 0))
            places.append(place)
        shape = np.broadcast_shapes((1,) * self.rank, *(place.shape for place in places))
        if array.size == 0:  # every read is guarded, so no element is ever chosen
            return np.broadcast_to(self._domain.const(0, source.dtype), shape)
        found = array[tuple(place.reshape(place.shape or (1,) * self.rank) for place in places)]
        return found.reshape(shape)
