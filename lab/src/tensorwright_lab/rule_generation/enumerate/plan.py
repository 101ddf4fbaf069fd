"""What a level tries: every operator on classes whose terms have `level - 1` operators together.

    Plan(preset, table, level=2).blocks       what is tried on the classes of level 1
    Block(matmul, left [9, 11], right [3, 4]) a table of 4 applications
    plan.kinds_of(block, left, right)         shape and split points of their results

Pairs of classes come as tables where their costs add up to that (all left ones of one cost with
all right ones of another), and one by one where they share operators (`sharing.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tensorwright.rewriting.assumptions import Misfit, Needs
from tensorwright.rewriting.operators import IntShape, operator_named
from tensorwright.rewriting.terms import Param
from tensorwright_lab.rule_generation.enumerate.blocks import Block, Order
from tensorwright_lab.rule_generation.enumerate.classes import (
    INPUT,
    ClassTable,
    Ints,
    Kind,
    Places,
    distinct,
)
from tensorwright_lab.rule_generation.enumerate.sharing import Sharing
from tensorwright_lab.rule_generation.operator_facts import StructureKind, facts_of_operator
from tensorwright_lab.rule_generation.preset import MAX_ELEMENTS, Application, Preset

_NONE: Ints = np.zeros(0, np.int32)


class Plan:
    """The blocks of one level, in a fixed order, over classes; and how to read them.

    share   see `Sharing`
    blocks  may be replaced by a part of them
    """

    def __init__(self, preset: Preset, table: ClassTable, level: int, share: int = 1) -> None:
        self.preset = preset
        self.table = table
        self.level = level
        self.shapes = table.stored()
        sharing = Sharing(table, level - 1, share)
        self._shared = self._by_shapes(sharing.first, sharing.second)
        self._repeated = self._by_shapes(*sharing.repeated)
        self._weights = np.array([kind.is_weight for kind in table.kinds])
        self.blocks = tuple(self._blocks())

    def _by_shapes(
        self, first: Places, second: Places
    ) -> dict[tuple[IntShape, IntShape], tuple[Places, Places]]:
        listed, by_kind = self.table.shapes()
        left, right = by_kind[self.table.kind[first]], by_kind[self.table.kind[second]]
        code = left.astype(np.int64) * len(listed) + right
        order = np.argsort(code, kind="stable")
        pairs = distinct(code)
        starts = np.searchsorted(code[order], pairs).tolist()
        own = [order[low:high] for low, high in pairwise([*starts, len(code)])]
        return {
            (listed[pair // len(listed)], listed[pair % len(listed)]): (first[rows], second[rows])
            for pair, rows in zip(pairs.tolist(), own, strict=True)
        }

    def _blocks(self) -> Iterator[Block]:
        for code, application in enumerate(self.preset.applications):
            arity = operator_named(application.operator).arity - len(application.operands)
            if arity == 0 and self.level == 1:
                yield self._constant(code, application)
            elif arity == 1:
                for shape, classes in self.shapes.items():
                    fitting = classes[self.table.cost[classes] == self.level - 1]
                    yield from self._unary(code, application, shape, fitting)
            elif arity == 2:
                for left in self.shapes:
                    for right in self.shapes:
                        yield from self._binary(code, application, (left, right))

    def _constant(self, code: int, application: Application) -> Block:
        shape = result_shape(application, application.params, ())
        assert shape is not None, f"a preset lists {application}, which is not a constant"
        params = application.params
        none = np.full(1, -1, np.int32)
        return Block(code, 0, application.operator, params, (), shape, none, _NONE)

    def _unary(
        self, code: int, application: Application, shape: IntShape, classes: Places
    ) -> Iterator[Block]:
        if application.inputs_only:
            classes = classes[self.table.code[classes] == INPUT]
        if application.of_data:
            classes = classes[~self._are_weights(classes)]
        if not len(classes):
            return
        names = [each.name for each in self.preset.inputs]
        operands = tuple(names.index(name) for name in application.operands)
        shapes = (shape, *(self.preset.inputs[number].shape for number in operands))
        for cut, chosen in self._places(application, classes):
            params = application.params if not cut else (*application.params, cut)
            result = result_shape(application, params, shapes)
            if result is None or (application.inputs_only and result == shape):
                continue
            left, name = chosen.astype(np.int32), application.operator
            block = Block(code, cut, name, params, shapes, result, left, _NONE)
            yield replace(block, operands=operands)

    def _places(self, application: Application, classes: Places) -> Iterator[tuple[int, Places]]:
        """Where to split which classes; place 0 for applications with all their parameters."""
        if len(application.params) >= len(operator_named(application.operator).parameters):
            yield 0, classes
            return
        axis = int(str(application.params[0]))
        kinds = self.table.kind[classes]
        places: dict[int, list[int]] = {}
        for number in distinct(kinds):
            split_points = self.table.kinds[number].split_points
            for cut in split_points[axis] if axis < len(split_points) else ():
                places.setdefault(int(str(cut)), []).append(int(number))
        for cut, numbers in sorted(places.items()):
            yield cut, classes[np.isin(kinds, numbers)]

    def _binary(
        self, code: int, application: Application, pair: tuple[IntShape, IntShape]
    ) -> Iterator[Block]:
        shape = result_shape(application, application.params, pair)
        if shape is None:
            return
        params, name = application.params, application.operator
        block = Block(code, 0, name, params, pair, shape, _NONE, _NONE)
        yield from self._tables(block)
        if pair in self._shared:
            i, j = self._shared[pair]
            kept = self._fits(block, i) & self._fits_second(block, j)
            kept &= self._in_order(block, i, j)
            if kept.any():
                left, right = i[kept].astype(np.int32), j[kept].astype(np.int32)
                yield replace(block, left=left, right=right)

    def _tables(self, block: Block) -> Iterator[Block]:
        table = self.table
        one_order = facts_of_operator(block.operator).is_commutative and self.level > 1
        for cost in range(self.level):
            other = self.level - 1 - cost
            left, right = self.shapes[block.shapes[0]], self.shapes[block.shapes[1]]
            left, right = left[table.cost[left] == cost], right[table.cost[right] == other]
            left, right = left[self._fits(block, left)], right[self._fits_second(block, right)]
            if not len(left) or not len(right) or (one_order and cost > other):
                continue
            order = Order.ANY
            if cost == other and block.shapes[0] == block.shapes[1]:
                order = Order.RISING if one_order else Order.DIFFERENT
            left, right = left.astype(np.int32), right.astype(np.int32)
            yield replace(block, left=left, right=right, is_table=True, order=order)

    def _fits(self, block: Block, left: Places) -> NDArray[np.bool_]:
        """A weight is not the data of a convolution."""
        application = self.preset.applications[block.code]
        is_convolution = facts_of_operator(block.operator).structure is StructureKind.CONVOLUTION
        if not is_convolution and not application.of_data:
            return np.ones(len(left), np.bool_)
        return ~self._are_weights(left)

    def _fits_second(self, block: Block, right: Places) -> NDArray[np.bool_]:
        if not self.preset.applications[block.code].by_weights:
            return np.ones(len(right), np.bool_)
        return self._are_weights(right)

    def _are_weights(self, classes: Places) -> NDArray[np.bool_]:
        are_weights: NDArray[np.bool_] = self._weights[self.table.kind[classes]]
        return are_weights

    def _in_order(self, block: Block, i: Places, j: Places) -> NDArray[np.bool_]:
        """One order of the arguments of a commutative operator."""
        if facts_of_operator(block.operator).is_commutative:
            return np.less(i, j)
        return np.not_equal(i, j)

    def kinds_of(self, block: Block, left: Ints, right: Ints) -> Ints:
        """The kinds of applications of a block from the classes of their arguments."""
        table = self.table
        width = len(table.kinds) + 1
        own = table.kind[left] if block.shapes else np.full(len(left), -1)
        other = table.kind[right] if block.arity == 2 else np.full(len(left), -1)
        combined = (own.astype(np.int64) + 1) * width + other + 1
        unique, inverse = np.unique(combined, return_inverse=True)
        numbers = []
        for code in unique:
            chosen = [int(code) // width - 1, int(code) % width - 1][: block.arity]
            chosen += [int(table.kind[each]) for each in block.operands]
            kinds = tuple(table.kinds[each] for each in chosen)
            shapes, points = tuple(k.shape for k in kinds), tuple(k.split_points for k in kinds)
            rule = facts_of_operator(block.operator).split_points
            own_points = rule(block.params, shapes, points, len(block.shape))
            is_weight = all(kind.is_weight for kind in kinds)
            numbers.append(table.kind_number(Kind(block.shape, own_points, is_weight)))
        of_each: Ints = np.array(numbers, np.int32)[inverse.reshape(-1)]
        return of_each

    def graphs(self, smallest: NDArray[np.float64]) -> float:
        """How many terms the applications stand for, those tried before left out.

        smallest  how many terms of its own size each class has
        """
        return sum(self._graphs_in(block, smallest) for block in self.blocks)

    def _graphs_in(self, block: Block, smallest: NDArray[np.float64]) -> float:
        if not block.shapes:
            return 1.0
        left = smallest[block.left]
        if not len(block.right):
            return float(left.sum())
        right = smallest[block.right]
        if not block.is_table:
            return float((left * right).sum())
        after = np.append(np.cumsum(right[::-1])[::-1], 0.0)
        start = np.zeros(len(left), np.intp)
        if block.order is Order.RISING:
            start = np.searchsorted(block.right, block.left, "right")
        total = float((left * after[start]).sum())
        if block.order is Order.DIFFERENT:
            total -= float((smallest[np.intersect1d(block.left, block.right)] ** 2).sum())
        i, j = self._tried(block)
        return total - float((smallest[i] * smallest[j]).sum())

    def _tried(self, block: Block) -> tuple[Places, Places]:
        """The pairs of a table that share operators, so that an earlier level tried them."""
        none = np.zeros(0, np.intp)
        i, j = self._repeated.get((block.shapes[0], block.shapes[1]), (none, none))
        cost = self.table.cost
        kept = (cost[i] == cost[block.left[0]]) & (cost[j] == cost[block.right[0]])
        if block.order is Order.RISING:
            kept &= i < j
        i, j = i[kept], j[kept]
        kept = _is_among(i, block.left) & _is_among(j, block.right)
        return i[kept], j[kept]

    def two_output_graphs(self, sizes: NDArray[np.float64]) -> float:
        """Pairs of terms with up to `level` operators together, in either order.

        sizes  how many terms each class has by operators

        Pairs that share operators, and have more than `level` one by one, are counted where they
        have fewer than `level` together.
        """
        own = sizes[self.table.row >= 0]
        sums, squares = own.sum(axis=0), (own**2).sum(axis=0)
        total = 0.0
        for size in range(1, self.level):
            for other in range(size, self.level - size + 1):
                both = sums[size] * sums[other]
                total += both if size != other else (both - squares[size]) / 2
        cost = self.table.cost
        for first, second in self._shared.values():
            ours = (first < second) & (cost[first].astype(np.intp) + cost[second] > self.level)
            total += float(np.count_nonzero(ours))
        return float(total)


def _is_among(classes: Places, rising: Ints) -> NDArray[np.bool_]:
    """Which of some classes are among others, which are not none and in rising order."""
    position = np.searchsorted(rising, classes)
    is_among: NDArray[np.bool_] = rising[np.minimum(position, len(rising) - 1)] == classes
    return is_among


@cache
def result_shape(
    application: Application, params: tuple[Param, ...], shapes: tuple[IntShape, ...]
) -> IntShape | None:
    """The shape of an application; None where it is ill-typed, not wanted, or too large."""
    operator = operator_named(application.operator)
    if application.ranks and shapes and len(shapes[0]) not in application.ranks:
        return None
    answer = operator.result(params, shapes, Needs())
    if isinstance(answer, Misfit):
        return None
    shape = tuple(extent for extent in answer if isinstance(extent, int))
    return shape if np.prod(shape, dtype=np.int64) <= MAX_ELEMENTS else None
