"""All terms of up to N operators, level by level over classes; equal values meet in one class.

Level k applies every operator to classes whose terms together have k - 1 operators, shared ones
once.  What comes out is grouped by fingerprint: a group that holds an older class gives equalities
with it; else its first member by form becomes a class and the others equalities.  The values of
the last level are never computed, unless its fingerprints need them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorwright.rewrite.generate.classes import INPUT, Batch, ClassTable, Kind
from tensorwright.rewrite.generate.field import P
from tensorwright.rewrite.generate.forms import WIDTH, form_of, merge, mix
from tensorwright.rewrite.generate.kernels import (
    SAMPLES,
    keys_of,
    keys_of_pairs,
    keys_of_table,
    keys_of_unary,
    values_of,
)
from tensorwright.rewrite.generate.preset import MAX_ELEMENTS, Application, Preset
from tensorwright.rewrite.generate.seams import no_seams, seams_of
from tensorwright.rewrite.generate.structure import structure_of
from tensorwright.rewrite.operators import IntShape, operator_named
from tensorwright.rewrite.shapes import IllTyped, Needs
from tensorwright.rewrite.terms import Param

__all__ = ["Enumeration", "enumerate_terms"]

Progress = Callable[[str], None]
Ints = NDArray[np.signedinteger[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Enumeration:
    """What was found.

    equal        applications that equal the class in `of` and are not its term
    graphs       how many terms were represented: every choice of equal arguments counts
    applications how many applications were fingerprinted, per level
    """

    preset: Preset
    table: ClassTable
    equal: Batch
    of: Ints
    graphs: float
    applications: tuple[int, ...]


def enumerate_terms(
    preset: Preset, max_operators: int, seed: int = 0, progress: Progress = lambda line: None
) -> Enumeration:
    """Enumerate; the result is the same for the same preset, number and seed."""
    return _Session(preset, seed, progress).run(max_operators)


class _Session:
    def __init__(self, preset: Preset, seed: int, progress: Progress) -> None:
        self.preset = preset
        self.seed = seed
        self.progress = progress
        self.table = ClassTable()
        self.equal: list[Batch] = []
        self.of: list[Ints] = []
        self.graphs = 0.0
        self.counts: list[int] = []
        self._add_inputs()

    def run(self, max_operators: int) -> Enumeration:
        for level in range(1, max_operators + 1):
            batch = Batch.joined(list(self._level(level)))
            self.counts.append(len(batch))
            self._absorb(batch, level, is_last=level == max_operators)
            line = f"level {level}: {len(batch):,} applications, {len(self.table):,} classes"
            self.progress(line)
        return Enumeration(
            self.preset,
            self.table,
            Batch.joined(self.equal),
            np.concatenate(self.of),
            self.graphs,
            tuple(self.counts),
        )

    def _add_inputs(self) -> None:
        table, inputs = self.table, self.preset.inputs
        generator = np.random.default_rng([self.seed, 1])
        groups = [(each.shape, each.is_weight) for each in inputs]
        kinds = [Kind(i.shape, no_seams(len(i.shape)), i.is_weight) for i in inputs]
        values = [
            generator.integers(0, P, (1, SAMPLES, int(np.prod(i.shape, dtype=np.int64))))
            for i in inputs
        ]
        count = len(inputs)
        sequence = np.full((count, WIDTH), -1, np.int8)
        sequence[:, 0] = np.arange(count)
        group = np.array([groups.index(each) for each in groups])
        table.append(
            {
                "code": np.full(count, INPUT, np.int32),
                "place": np.zeros(count, np.int32),
                "a": np.full(count, -1, np.int32),
                "b": np.full(count, -1, np.int32),
                "kind": np.array([table.kind_number(kind) for kind in kinds], np.int32),
                "key": np.concatenate(
                    [
                        keys_of(v.astype(np.uint64), i.shape, self.seed)
                        for v, i in zip(values, inputs, strict=True)
                    ]
                ),
                "cost": np.zeros(count, np.int8),
                "form": mix(np.full(count, 7), group),
                "sequence": sequence,
                "nodes": np.zeros((count, 8), np.uint64),
                "graphs": np.ones(count),
                "row": np.full(count, -1, np.int32),
            }
        )
        for number, (each, value) in enumerate(zip(inputs, values, strict=True)):
            table.store(np.array([number], np.int32), each.shape, value.astype(np.uint32))

    def _level(self, level: int) -> Iterator[Batch]:
        shapes = self._classes_by_shape()
        shared = self._shared_pairs(level)
        for code, application in enumerate(self.preset.applications):
            operator = operator_named(application.operator)
            if operator.arity == 0 and level == 1:
                yield self._constant(code, application)
            elif operator.arity == 1:
                for own, classes in shapes.items():
                    fitting = classes[self.table.cost[classes] == level - 1]
                    yield from self._unary(code, application, own, fitting)
            elif operator.arity == 2:
                for left in shapes:
                    for right in shapes:
                        shape = self._result(application, application.params, (left, right))
                        if shape is not None:
                            pair = (left, right)
                            yield from self._tables(code, pair, shape, shapes, level)
                            yield from self._pairs(code, pair, shape, shared)

    def _classes_by_shape(self) -> dict[IntShape, Ints]:
        table = self.table
        stored = np.flatnonzero(table.row >= 0)
        shape_of = [kind.shape for kind in table.kinds]
        numbers = {shape: at for at, shape in enumerate(dict.fromkeys(shape_of))}
        by_kind = np.array([numbers[shape] for shape in shape_of])
        own = by_kind[table.kind[stored]]
        return {shape: stored[own == at] for shape, at in numbers.items() if (own == at).any()}

    def _result(
        self, application: Application, params: tuple[Param, ...], shapes: tuple[IntShape, ...]
    ) -> IntShape | None:
        operator = operator_named(application.operator)
        if application.ranks and len(shapes[0]) not in application.ranks:
            return None
        try:
            operator.check_params(params)
            found = operator.shape(params, shapes, Needs())
        except IllTyped:
            return None
        shape = tuple(extent for extent in found if isinstance(extent, int))
        return shape if np.prod(shape, dtype=np.int64) <= MAX_ELEMENTS else None

    def _kinds(self, code: int, params: tuple[Param, ...], shape: IntShape, *args: Ints) -> Ints:
        """The kinds of results from the classes of the arguments, one combination at a time."""
        table = self.table
        stacked = np.stack([table.kind[each] for each in args], axis=1)
        unique, inverse = np.unique(stacked, axis=0, return_inverse=True)
        numbers = []
        for row in unique:
            kinds = [table.kinds[each] for each in row]
            seams = seams_of(
                self.preset.applications[code].operator,
                params,
                tuple(kind.shape for kind in kinds),
                tuple(kind.seams for kind in kinds),
                len(shape),
            )
            is_weight = all(kind.is_weight for kind in kinds)
            numbers.append(table.kind_number(Kind(shape, seams, is_weight)))
        return np.array(numbers, np.int32)[inverse.reshape(-1)]

    def _batch(
        self,
        code: int,
        params: tuple[Param, ...],
        place: int,
        shape: IntShape,
        args: tuple[Ints, ...],
        key: NDArray[np.uint64],
    ) -> Batch:
        count = len(key)
        columns = [each.astype(np.int32) for each in args]
        columns += [np.full(count, -1, np.int32)] * (2 - len(columns))
        kind = self._kinds(code, params, shape, *args).astype(np.int32)
        full = np.full(count, code, np.int32), np.full(count, place, np.int32)
        return Batch(*full, columns[0], columns[1], kind, key)

    def _constant(self, code: int, application: Application) -> Batch:
        shape = self._result(application, application.params, ())
        if shape is None:
            raise IllTyped(f"{application} is no constant")
        value = values_of(structure_of(application.operator, application.params, ()), ())
        key = keys_of(value.astype(np.uint64), shape, self.seed)
        kind = self.table.kind_number(Kind(shape, no_seams(len(shape)), is_weight=True))
        one = np.ones(1, np.int32)
        return Batch(one * code, one * 0, -one, -one, one * kind, key)

    def _unary(
        self, code: int, application: Application, shape: IntShape, classes: Ints
    ) -> Iterator[Batch]:
        if application.inputs_only:
            classes = classes[self.table.code[classes] == INPUT]
        if not len(classes):
            return
        for place, chosen in self._places(application, classes):
            params = application.params if not place else (*application.params, place)
            result = self._result(application, params, (shape,))
            if result is None or (application.operator == "enlarge" and result == shape):
                continue
            structure = structure_of(application.operator, params, (shape,))
            values = self.table.values_of(chosen, shape)
            key = keys_of_unary(structure, values, result, self.seed)
            yield self._batch(code, params, place, result, (chosen,), key)

    def _places(self, application: Application, classes: Ints) -> Iterator[tuple[int, Ints]]:
        """Where to split which classes; place 0 for other operators."""
        if not application.operator.startswith("split"):
            yield 0, classes
            return
        axis = application.params[0]
        kinds = self.table.kind[classes]
        places: dict[int, list[int]] = {}
        for number in np.unique(kinds):
            seams = self.table.kinds[number].seams
            for place in seams[int(str(axis))] if int(str(axis)) < len(seams) else ():
                places.setdefault(int(str(place)), []).append(int(number))
        for place, numbers in sorted(places.items()):
            yield place, classes[np.isin(kinds, numbers)]

    def _tables(
        self,
        code: int,
        pair: tuple[IntShape, IntShape],
        shape: IntShape,
        shapes: dict[IntShape, Ints],
        level: int,
    ) -> Iterator[Batch]:
        """All pairs of classes whose costs add up, as tables of left and right ones."""
        application, table = self.preset.applications[code], self.table
        for cost in range(level):
            left, right = shapes[pair[0]], shapes[pair[1]]
            left = left[table.cost[left] == cost]
            right = right[table.cost[right] == level - 1 - cost]
            if application.operator == "conv2d":
                left = left[~self._is_weight(left)]
            step = max(1, (1 << 20) // max(1, len(right)))
            for at in range(0, len(left) if len(right) else 0, step):
                part = left[at : at + step]
                i, j = np.repeat(part, len(right)), np.tile(right, len(part))
                kept = self._wanted(code, i, j, level)
                if not kept.any():
                    continue
                values = table.values_of(part, pair[0]), table.values_of(right, pair[1])
                structure = structure_of(application.operator, application.params, pair)
                key = keys_of_table(structure, *values, shape, self.seed).reshape(-1, SAMPLES)
                args = (i[kept], j[kept])
                yield self._batch(code, application.params, 0, shape, args, key[kept])

    def _is_weight(self, classes: Ints) -> NDArray[np.bool_]:
        weights = np.array([kind.is_weight for kind in self.table.kinds])
        found: NDArray[np.bool_] = weights[self.table.kind[classes]]
        return found

    def _wanted(self, code: int, i: Ints, j: Ints, level: int) -> NDArray[np.bool_]:
        """Two different arguments; one order of a commutative operator, but both at level 1."""
        operator = operator_named(self.preset.applications[code].operator)
        if operator.is_commutative and level > 1:
            return np.less(i, j)
        differ: NDArray[np.bool_] = np.not_equal(i, j)
        return differ

    def _pairs(
        self,
        code: int,
        pair: tuple[IntShape, IntShape],
        shape: IntShape,
        shared: dict[tuple[IntShape, IntShape], tuple[Ints, Ints]],
    ) -> Iterator[Batch]:
        application, table = self.preset.applications[code], self.table
        if pair not in shared:
            return
        i, j = shared[pair]
        kept = self._wanted(code, i, j, level=2)
        if application.operator == "conv2d":
            kept &= ~self._is_weight(i)
        i, j = i[kept], j[kept]
        if len(i):
            structure = structure_of(application.operator, application.params, pair)
            values = table.values_of(i, pair[0]), table.values_of(j, pair[1])
            key = keys_of_pairs(structure, *values, shape, self.seed)
            yield self._batch(code, application.params, 0, shape, (i, j), key)

    def _shared_pairs(self, level: int) -> dict[tuple[IntShape, IntShape], tuple[Ints, Ints]]:
        """Pairs that share operators, so that their union has `level - 1`, by their shapes."""
        table = self.table
        if level < 3:
            return {}
        stored = np.flatnonzero((table.row >= 0) & (table.cost > 0))
        nodes, cost = table.nodes[stored], table.cost[stored]
        columns = [nodes[:, at] for at in range(level - 1)]
        owner = np.concatenate([stored[column != 0] for column in columns])
        node = np.concatenate([column[column != 0] for column in columns])
        own = nodes[np.arange(len(stored)), cost - 1]
        big = table.cost[owner] == level - 1
        i, j = _join(node[big], owner[big], own, stored)
        small = table.cost[owner] < level - 1
        k, m = _join(node[small], owner[small], node[small], owner[small])
        first = np.concatenate([i, j, k])
        second = np.concatenate([j, i, m])
        unique = np.unique(np.stack([first, second], axis=1)[first != second], axis=0)
        first, second = unique[:, 0], unique[:, 1]
        total = table.cost[first].astype(np.int64) + table.cost[second]
        union = total - _common(table.nodes[first], table.nodes[second])
        kept = (union == level - 1) & (total > level - 1)
        return self._by_shapes(first[kept], second[kept])

    def _by_shapes(
        self, first: Ints, second: Ints
    ) -> dict[tuple[IntShape, IntShape], tuple[Ints, Ints]]:
        shapes = [kind.shape for kind in self.table.kinds]
        listed = list(dict.fromkeys(shapes))
        number = np.array([listed.index(shape) for shape in shapes])
        code = number[self.table.kind[first]] * len(listed) + number[self.table.kind[second]]
        found = {}
        for each in np.unique(code):
            pair = (listed[each // len(listed)], listed[each % len(listed)])
            found[pair] = (first[code == each], second[code == each])
        return found

    def _absorb(self, batch: Batch, level: int, *, is_last: bool) -> None:
        """Group by fingerprint; see the module docstring."""
        table, old = self.table, len(self.table)
        form = self._forms(batch)
        counts = table.graphs[batch.a] * np.where(batch.b >= 0, table.graphs[batch.b], 1.0)
        counts = np.where(batch.a >= 0, counts, 1.0)
        self.graphs += float(counts.sum())
        keys = np.concatenate([table.key, batch.key])
        rank = np.concatenate([np.zeros(old, np.uint64), form | np.uint64(1)])
        order = np.lexsort((rank, keys[:, 1], keys[:, 0]))
        ordered = keys[order]
        starts = np.ones(len(order), np.bool_)
        starts[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
        group = np.cumsum(starts) - 1
        leader = order[starts]
        size = np.diff(np.append(np.flatnonzero(starts), len(order)))
        is_new = leader >= old
        if is_last:
            is_new &= size > 1
        label = np.where(leader < old, leader, -1)
        label[is_new] = old + np.arange(int(is_new.sum()))
        of = np.empty(len(order), np.int64)
        of[order] = label[group]
        chosen = leader[is_new] - old
        self._add(batch.take(chosen), form[chosen], level, is_last=is_last)
        rows = of[old:]
        totals = np.bincount(rows[rows >= 0], counts[rows >= 0], len(table))
        table.graphs += totals
        is_member = rows >= 0
        is_member[chosen] = False
        member = np.flatnonzero(is_member)
        member = member[~self._is_own(batch, member, rows)]
        self.equal.append(batch.take(member))
        self.of.append(rows[member])

    def _is_own(self, batch: Batch, member: Ints, rows: Ints) -> NDArray[np.bool_]:
        """Whether an application is the very term of its class."""
        table, of = self.table, rows[member]
        same: NDArray[np.bool_] = table.code[of] == batch.code[member]
        for name in ("place", "a", "b"):
            same &= getattr(table, name)[of] == getattr(batch, name)[member]
        return same

    def _forms(self, batch: Batch) -> NDArray[np.uint64]:
        table = self.table
        none = np.full((1, WIDTH), -1, np.int8)
        sequences = np.concatenate([table.sequence, none])
        forms = np.append(table.form, np.uint64(0))
        _, places = merge(sequences[batch.a], sequences[batch.b])
        code = batch.code.astype(np.int64) * 64 + batch.place + 1
        return form_of(code, forms[batch.a], forms[batch.b], places)

    def _add(self, batch: Batch, form: NDArray[np.uint64], level: int, *, is_last: bool) -> None:
        table, old = self.table, len(self.table)
        none = np.full((1, WIDTH), -1, np.int8)
        sequences = np.concatenate([table.sequence, none])
        sequence, _ = merge(sequences[batch.a], sequences[batch.b])
        count = len(batch)
        table.append(
            {
                "code": batch.code,
                "place": batch.place,
                "a": batch.a,
                "b": batch.b,
                "kind": batch.kind,
                "key": batch.key,
                "cost": np.full(count, level, np.int8),
                "form": form,
                "sequence": sequence,
                "nodes": self._nodes(batch, level),
                "graphs": np.zeros(count),
                "row": np.full(count, -1, np.int32),
            }
        )
        if not is_last:
            self._compute(batch, np.arange(old, old + count))

    def _nodes(self, batch: Batch, level: int) -> NDArray[np.uint64]:
        """The operators of each term; a split is one, whichever half is taken."""
        names = [each.operator for each in self.preset.applications]
        merged = [names.index("split0") if n == "split1" else at for at, n in enumerate(names)]
        for at, each in enumerate(self.preset.applications):
            if each.operator == "split1":
                twin = Application("split0", each.params)
                merged[at] = self.preset.applications.index(twin)
        family = np.array(merged)[batch.code]
        own = mix(mix(mix(batch.a, batch.b), batch.place), family) | np.uint64(1)
        none = np.zeros((1, 8), np.uint64)
        nodes = np.concatenate([self.table.nodes, none])
        found = np.concatenate([nodes[batch.a], nodes[batch.b]], axis=1)
        found = -np.sort(-found.astype(np.int64), axis=1).astype(np.int64)
        repeated = np.zeros(found.shape, np.bool_)
        repeated[:, 1:] = found[:, 1:] == found[:, :-1]
        found[repeated] = 0
        order = np.argsort(found == 0, axis=1, kind="stable")
        packed = np.take_along_axis(found, order, axis=1)[:, :8].astype(np.uint64)
        packed[:, level - 1] = own
        return packed

    def _compute(self, batch: Batch, classes: Ints) -> None:
        """The values of new classes."""
        table = self.table
        arguments = np.stack([batch.code, batch.place], axis=1)
        shape_of = {at: kind.shape for at, kind in enumerate(table.kinds)}
        shapes = [
            (
                int(code),
                int(place),
                *(shape_of[table.kind[x]] for x in (a, b) if x >= 0),
            )
            for (code, place), a, b in zip(arguments, batch.a, batch.b, strict=True)
        ]
        groups: dict[tuple[Any, ...], list[int]] = {}
        for at, each in enumerate(shapes):
            groups.setdefault(each, []).append(at)
        for (code, place, *of), listed in groups.items():
            application = self.preset.applications[code]
            params = application.params if not place else (*application.params, place)
            rows = np.array(listed)
            args = [
                table.values_of(column[rows], shape)
                for column, shape in zip((batch.a, batch.b), of, strict=False)
            ]
            values = values_of(structure_of(application.operator, params, tuple(of)), tuple(args))
            result = shape_of[int(batch.kind[rows[0]])]
            table.store(classes[rows].astype(np.int32), result, values)


def _join(
    left_key: NDArray[Any], left: Ints, right_key: NDArray[Any], right: Ints
) -> tuple[Ints, Ints]:
    """All pairs of entries whose keys agree."""
    order = np.argsort(right_key, kind="stable")
    ordered = right_key[order]
    first = np.searchsorted(ordered, left_key, "left")
    count = np.searchsorted(ordered, left_key, "right") - first
    i = np.repeat(np.arange(len(left)), count)
    start = np.repeat(first - (np.cumsum(count) - count), count)
    return left[i], right[order[start + np.arange(len(i))]]


def _common(left: NDArray[np.uint64], right: NDArray[np.uint64]) -> Ints:
    """How many operators two terms share, row by row."""
    shared = np.zeros(len(left), np.int64)
    for at in range(left.shape[1]):
        column = left[:, at : at + 1]
        shared += ((column == right) & (column != 0)).any(axis=1)
    return shared
