"""Evaluation of index expressions and values on a box of loop variables, one array operation each.

Every variable has a dimension of its own. An expression that does not depend on a variable has
extent 1 there, so that elements are repeated only where that is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

import numpy as np

from tensorwright.base import DType
from tensorwright.expr.evaluation.domain import Array, Domain
from tensorwright.expr.evaluation.loop_box import Choice, LoopBox, Reading
from tensorwright.expr.evaluation.points import evaluate_condition, evaluate_index
from tensorwright.expr.index.nodes import (
    Compare,
    Condition,
    Element,
    Index,
    Var,
)
from tensorwright.expr.value import Apply, Cast, Const, FromIndex, Load, Select, Value, ValueExpr


class Grid:
    """One box with arrays, evaluated; mutable (it remembers shared subexpressions), used inside one
    function.

    Arrays come with one dimension per span, preceded by one of extent 1 so that none is a scalar;
    or, where nothing depends on a variable, without dimensions.
    """

    def __init__(self, loop_box: LoopBox, arrays: Mapping[Any, Array], domain: Domain) -> None:
        self.loop_box = loop_box
        self._arrays = arrays
        self._domain = domain
        self._shared: dict[tuple[int, bool], tuple[Value, Array]] = {}
        self._has_read_elements = False

    def index(self, expression: Index, guarded: bool = False) -> Array | int:
        """An index expression as int64; `guarded` clamps what elements read outside a tensor."""

        def value_of(atom: Var | Element) -> Array:
            if isinstance(atom, Var):
                return self.loop_box.variable(atom)
            element = self._element(atom, guarded)
            self._has_read_elements = True
            return element

        result: Array | int = evaluate_index(expression, value_of)
        return result

    def condition(self, condition: Condition, guarded: bool = False) -> Array:
        """A condition as NumPy bools."""
        guarded = guarded or not isinstance(condition, Compare)
        return np.asarray(evaluate_condition(condition, lambda side: self.index(side, guarded)))

    def value(self, value: Value, guarded: bool = False) -> Array:
        """A value in the domain's storage; `guarded` is set below an index condition."""
        key = (id(value), guarded)
        kept = self._shared.get(key)
        if kept is not None:
            return kept[1]
        result = self._value(value, guarded)
        if isinstance(value, (Apply, Select, Cast)):
            self._shared[key] = (value, result)  # the value is kept so that its id stays its own
        return result

    def _value(self, value: Value, guarded: bool) -> Array:
        domain = self._domain
        match value:
            case Const(number, dtype):
                return domain.const(number, dtype)
            case Load():
                return self._load(value, guarded)
            case FromIndex(index, dtype):
                return domain.from_index(np.asarray(self.index(index, guarded), np.int64), dtype)
            case Apply(fn, args):
                return domain.apply(fn, [self.value(arg, guarded) for arg in args], args[0].dtype)
            case Cast(operand, dtype):
                return domain.cast(self.value(operand, guarded), operand.dtype, dtype)
            case Select(condition, then, otherwise):
                if not isinstance(condition, ValueExpr):
                    return self._branch(value, condition, guarded)
                chosen = self.value(condition, guarded)
                branches = self.value(then, guarded), self.value(otherwise, guarded)
                return domain.select(chosen, *branches)
        assert_never(value)

    def _branch(self, value: Select, condition: Condition, guarded: bool) -> Array:
        """Select by an index condition; a branch that is never taken is not evaluated."""
        chosen = self._choice(value, condition, guarded)
        if chosen.always:
            return self.value(value.then, guarded)
        if chosen.never:
            return self.value(value.otherwise, guarded)
        then, otherwise = value.then, value.otherwise
        branches = self.value(then, guarded=True), self.value(otherwise, guarded=True)
        return self._domain.select(chosen.holds, *branches)

    def _choice(self, value: Select, condition: Condition, guarded: bool) -> Choice:
        """Where a condition holds; computed once for a box if the condition reads no element."""
        key = (id(value), guarded)
        kept = self.loop_box.choices.get(key)
        if kept is not None:
            return kept[1]
        self._has_read_elements = False
        choice = Choice.of(self.condition(condition, guarded))
        if not self._has_read_elements:
            self.loop_box.choices[key] = value, choice
        return choice

    def _load(self, load: Load, guarded: bool) -> Array:
        """A view where every index is affine and stays inside; a copy of what is inside; a gather.

        What a guarded load reads outside its tensor is zero or clamped: it is never chosen.
        """
        array = self._arrays[load.source]
        reading = self.loop_box.reading(load, array.shape, guarded)
        if reading is None:
            return self._gather(load, guarded)
        view = reading.view(array)
        return view if reading.frame is None else self._framed(view, reading, load.source.dtype)

    def _framed(self, view: Array, reading: Reading, dtype: DType) -> Array:
        """A view of the inner box with zeros around it."""
        assert reading.frame is not None, "only a view that is framed comes here"
        result = np.empty(reading.frame.shape, view.dtype)
        result[...] = self._domain.const(0, dtype)
        result[reading.frame.region] = view
        return result

    def _gather(self, load: Load, guarded: bool) -> Array:
        """The elements of a load, whose positions are kept if they depend on no element."""
        key = (id(load), guarded)
        kept = self.loop_box.gathers.get(key)
        if kept is not None:
            return self._taken(load.source, kept[1])
        self._has_read_elements = False
        places = self._places(load.source, load.indices, guarded)
        if not self._has_read_elements:
            self.loop_box.gathers[key] = load, places
        return self._taken(load.source, places)

    def _element(self, element: Element, guarded: bool) -> Array:
        places = self._places(element.source, element.indices, guarded)
        return self._domain.to_index(self._taken(element.source, places))

    def _places(self, source: Any, indices: tuple[Index, ...], guarded: bool) -> tuple[Array, ...]:
        """The values of some indices at each point of the box."""
        places = []
        for index, extent in zip(indices, self._arrays[source].shape, strict=True):
            positions = np.asarray(self.index(index, guarded), np.int64)
            if positions.size and (int(positions.min()) < 0 or int(positions.max()) >= extent):
                if not guarded:
                    bad = int(positions.min()) if int(positions.min()) < 0 else int(positions.max())
                    where = f"{source.name}[{', '.join(map(str, indices))}]"
                    raise IndexError(f"{where}: index {index} reaches {bad}, extent is {extent}")
                positions = np.clip(positions, 0, max(extent - 1, 0))
            places.append(positions.reshape(positions.shape or (1,) * self.loop_box.rank))
        return tuple(places)

    def _taken(self, source: Any, places: tuple[Array, ...]) -> Array:
        array, rank = self._arrays[source], (1,) * self.loop_box.rank
        if array.size == 0:  # every read is guarded, so no element is ever chosen
            shape = np.broadcast_shapes(rank, *(each.shape for each in places))
            return np.broadcast_to(self._domain.const(0, source.dtype), shape)
        everywhere: tuple[Any, ...] = (*places, Ellipsis)  # so that no object comes bare
        values: Array = array[everywhere]
        return values.reshape(values.shape or rank)
