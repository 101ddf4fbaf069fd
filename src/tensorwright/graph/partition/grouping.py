"""Decide which nodes share a kernel, by post-dominators, as FuseOps of TVM does.

A group is a set of nodes with one result, that of its last node; nodes outside the group read only
this result.  Groups grow in two directions, and neither can make a cycle:
    forward   from the last node to its immediate post-dominator, with everything between
    backward  to a node that only the group reads

The criteria, in the order in which they are applied:
 1. Views, concats in place and opaque nodes join no group; the first two cost nothing.  A reshape
    that is a view joins a group only if the group continues behind it.
 2. An anchor (convolution, matrix product) takes what follows it: element-wise nodes of its
    result's shape, and rearrangements of the whole result, or of all but few columns of whole
    numbers.  The larger anchor goes first.
    A product of two activations also takes row operators over its last dimension (attention:
    product, scale, mask and softmax are one kernel); one with constants does so only by option.
 3. A row operator (a reduction, softmax, layer normalisation) takes what follows it: element-wise
    nodes and row operators over the same rows.  A normalisation that is written as several
    operators becomes one group in this way.
 4. Any other reduction (pooling) takes element-wise nodes of its result's shape.
 5. Anchors and row operators take what comes before: element-wise nodes and rearrangements that
    no other node reads, and, behind an anchor, what is looked up once for each element.  Pooling
    does so only if its windows do not overlap.  A product that rounds its rows computes them whole
    before, and takes the row operator that makes them.
 6. The remaining element-wise nodes and rearrangements make chains: a node takes what comes before.
Source:  Chen et al., TVM, OSDI 2018, section 3.1 (operator fusion).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum
from math import prod

from tensorwright.base import InternalError, Shape
from tensorwright.graph.graph import Graph, Node
from tensorwright.graph.infer import operator_of
from tensorwright.graph.partition.views import (
    Rows,
    between,
    is_row_operator,
    post_dominators,
    rows_of,
    view_offsets,
)
from tensorwright.graph.sizes import typical_shape
from tensorwright.ops import Fold, Movement, Pattern

_REARRANGING = frozenset((Movement.COPY, Movement.RESHAPE, Movement.REORDER))
_CHEAP = _REARRANGING | {Movement.CROP, Movement.EXTEND}
FEW_COLUMNS = 16  # times as many are used, at least, as fill up vectors and are cut off
_MOST_PLACES = 16
"""For one element of a result, of elements that a node of the group is computed for."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How large a group may grow.

    inputs           tensors that it reads, without constants of one element
    nodes            nodes in it
    dense_with_rows  whether a product with a constant takes row operators behind it
    """

    inputs: int = 12
    nodes: int = 30
    dense_with_rows: bool = False


class Kind(Enum):
    """The kind of operator that a group is built around."""

    ANCHOR = "anchor"
    ROWS = "rows"
    POOLING = "pooling"
    CHAIN = "chain"


@dataclass(slots=True)
class _Group:
    """A group while it grows; mutable, used inside this file."""

    kind: Kind
    members: set[int]
    seed: int
    last: int
    rows: Rows | None


def group_nodes(
    graph: Graph, alone: Iterable[Node], limits: Limits, widened: frozenset[str] = frozenset()
) -> tuple[tuple[Node, ...], ...]:
    """The groups, each in topological order, in an order in which they can run.

    alone  nodes that must not join a group (concats in place); they are groups of one node, as are
           views and opaque nodes
    widened  tensors that are computed by those who read them (`short.py`)
    """
    singles = frozenset(node.outputs[0] for node in alone)
    return _Grouping(graph, singles, limits, widened).run()


class _Grouping:
    """Mutable working state of one partition; nodes are their positions in the graph."""

    def __init__(
        self, graph: Graph, alone: frozenset[str], limits: Limits, widened: frozenset[str]
    ) -> None:
        self.graph = graph
        self.limits = limits
        self.widened = widened
        self.nodes = graph.nodes
        self.operators = tuple(operator_of(node) for node in graph.nodes)
        self.producer = {name: at for at, node in enumerate(self.nodes) for name in node.outputs}
        self.readers = self._readers()
        self.next = post_dominators(self.readers)
        self.views = tuple(view_offsets(graph, node) is not None for node in self.nodes)
        self.alone = tuple(
            self.views[at] or node.outputs[0] in alone or self.operators[at].meaning is None
            for at, node in enumerate(self.nodes)
        )
        self.owner: dict[int, _Group] = {}

    def run(self) -> tuple[tuple[Node, ...], ...]:
        anchors = [at for at, each in enumerate(self.operators) if each.pattern is Pattern.ANCHOR]
        depths = self._depths()
        anchors.sort(key=lambda at: (-self._work(at), -depths[at], at))
        folding = [
            at
            for at, each in enumerate(self.operators)
            if each.pattern in (Pattern.REDUCTION, Pattern.COMPOSITE)
        ]
        groups: list[_Group] = []
        for at in (*anchors, *folding):
            if at not in self.owner and not self.alone[at]:
                groups.append(self._seed(at))
                self._grow_forward(groups[-1])
                self._take_rows(groups[-1])
        for group in groups:
            self._grow_backward(group)
        for at in reversed(range(len(self.nodes))):
            if at not in self.owner:
                groups.append(self._seed(at))
                if not self.alone[at]:
                    self._grow_backward(groups[-1])
        groups.sort(key=lambda group: group.last)
        return tuple(self._finished(group) for group in groups)

    def _readers(self) -> tuple[tuple[int, ...], ...]:
        readers: list[dict[int, None]] = [{} for _ in self.nodes]
        for at, node in enumerate(self.nodes):
            for name in node.inputs:
                if name in self.producer:
                    readers[self.producer[name]][at] = None
        for name in self.graph.outputs:
            if name in self.producer:
                readers[self.producer[name]][len(self.nodes)] = None
        return tuple(tuple(each) for each in readers)

    def _depths(self) -> list[int]:
        depths: list[int] = []
        for node in self.nodes:
            before = [depths[self.producer[x]] for x in node.inputs if x in self.producer]
            depths.append(1 + max(before, default=0))
        return depths

    def _shape(self, at: int) -> Shape:
        return self.graph.types[self.nodes[at].outputs[0]].shape

    def _work(self, at: int) -> int:
        """Roughly the number of multiplications of an anchor; only the order of anchors matters."""
        node = self.nodes[at]
        shapes = [typical_shape(self.graph.types[name]) for name in node.inputs[:2]]
        out = typical_shape(self.graph.types[node.outputs[0]])
        if self.operators[at].is_convolution:
            return prod(out) * prod(shapes[-1][1:])
        return prod(out) * (shapes[0][-1] if shapes and shapes[0] else 1)

    def _seed(self, at: int) -> _Group:
        match self.operators[at].pattern:
            case Pattern.ANCHOR:
                kind, rows = Kind.ANCHOR, self._product_rows(at)
            case Pattern.REDUCTION | Pattern.COMPOSITE if is_row_operator(self.nodes[at]):
                kind, rows = Kind.ROWS, rows_of(self.graph, self.nodes[at])
            case Pattern.REDUCTION | Pattern.COMPOSITE:
                kind, rows = Kind.POOLING, None
            case _:
                kind, rows = Kind.CHAIN, None
        group = _Group(kind, {at}, at, at, rows)
        self.owner[at] = group
        return group

    def _product_rows(self, at: int) -> Rows | None:
        """The rows that may be folded behind an anchor: the last dimension of a product."""
        node, shape = self.nodes[at], self._shape(at)
        if self.operators[at].fold is not Fold.PRODUCT or len(shape) < 2:
            return None
        is_dense = any(name in self.graph.constants for name in node.inputs[:2])
        if is_dense and not self.limits.dense_with_rows:
            return None
        return Rows(shape, frozenset({len(shape) - 1}))

    def _grow_forward(self, group: _Group) -> None:
        """Take the post-dominator and all nodes before it, repeatedly; a view is never the last."""
        pending: set[int] = set()
        last = group.last
        while self.next[last] < len(self.nodes) and len(self.nodes[last].outputs) == 1:
            target = self.next[last]
            region = between(last, target, self.readers)
            if not self._may_follow(group, last, region):
                break
            pending |= region
            if not self._is_within_limits(group.members | pending):
                break
            last = target
            if not self.views[target]:
                self._take(group, pending)
                group.last = target
                pending = set()

    def _may_follow(self, group: _Group, last: int, region: frozenset[int]) -> bool:
        """Criteria 2 to 4: whether a group whose result is that of `last` may take the region."""
        if any(self.nodes[at].outputs[0] in self.widened for at in region):
            return False
        if any(at in self.owner or (self.alone[at] and not self.views[at]) for at in region):
            return False
        if all(self._is_pointwise(at, self._shape(last)) for at in region):
            return True
        if group.rows is not None and all(self._fits_rows(at, group.rows) for at in region):
            return True
        if group.kind is not Kind.ANCHOR or len(region) > 1:
            return False
        (only,) = region
        return self.operators[only].movement in _REARRANGING or self._cuts_columns(only)

    def _cuts_columns(self, at: int) -> bool:
        """Whether a node only cuts off some of the last columns of whole numbers."""
        node = self.nodes[at]
        source, result = (self.graph.types[name] for name in (node.inputs[0], node.outputs[0]))
        is_crop = self.operators[at].movement is Movement.CROP and not source.dtype.is_float
        if not is_crop or node.attribute_map.get("starts") != (0,):
            return False
        if source.shape[:-1] != result.shape[:-1]:
            return False
        columns, rest = typical_shape(result)[-1], typical_shape(source)[-1]
        return FEW_COLUMNS * (rest - columns) <= columns

    def _is_pointwise(self, at: int, shape: Shape) -> bool:
        is_elementwise = self.operators[at].pattern is Pattern.ELEMENTWISE
        return is_elementwise and self._shape(at) == shape and len(self.nodes[at].outputs) == 1

    def _fits_rows(self, at: int, rows: Rows) -> bool:
        node = self.nodes[at]
        if is_row_operator(node):
            return rows_of(self.graph, node) == rows and len(node.outputs) == 1
        is_simple = self.operators[at].pattern is Pattern.ELEMENTWISE or self.views[at]
        return is_simple and rows.has_shape(self._shape(at))

    def _take_rows(self, group: _Group) -> None:
        """Criterion 5: the row operator before a product that rounds its rows."""
        if self.operators[group.seed].fold is not Fold.ROUNDED:
            return
        for at in self._sources((group.seed,))[:1]:
            rank = len(self._shape(at))
            is_free = at not in self.owner and set(self.readers[at]) <= group.members
            if is_free and is_row_operator(self.nodes[at]):
                rows = rows_of(self.graph, self.nodes[at])
                is_alike = rows == Rows(self._shape(at), frozenset({rank - 1}))
                if is_alike and self._is_within_limits(group.members | {at}):
                    self._take(group, (at,))

    def _grow_backward(self, group: _Group) -> None:
        """Criteria 5 and 6: take nodes that only the group reads, until there are none."""
        is_pooling = group.kind is Kind.POOLING
        if is_pooling and self.operators[group.last].fold is not Fold.PLANES:
            return
        pending = self._sources(group.members)
        while pending:
            at = pending.pop(0)
            taken = self._may_precede(group, at)
            members = group.members | taken
            if taken and self._is_within_limits(members) and not self._is_repeated(members):
                self._take(group, taken)
                pending.extend(self._sources(taken))

    def _sources(self, members: Iterable[int]) -> list[int]:
        names = (name for at in sorted(members) for name in self.nodes[at].inputs)
        return list(dict.fromkeys(self.producer[x] for x in names if x in self.producer))

    def _may_precede(self, group: _Group, at: int) -> set[int]:
        """The nodes that join with `at`, none if it may not; a view joins with its source only."""
        if at in self.owner or not set(self.readers[at]) <= group.members:
            return set()
        sources = self._sources([at])
        is_made_of_indices = any(not self.nodes[source].inputs for source in sources)
        if self.views[at] and (group.kind is not Kind.ANCHOR or is_made_of_indices):
            if len(sources) == 1 and self.readers[sources[0]] == (at,):
                is_simple = not self.alone[sources[0]] and sources[0] not in self.owner
                if is_simple and self._is_simple(group, sources[0]):
                    return {at, sources[0]}
            return set()
        is_taken = not self.alone[at] and self._is_simple(group, at)
        return {at} if is_taken else set()

    def _is_simple(self, group: _Group, at: int) -> bool:
        """Whether a node may be computed again in each node of the group that reads it."""
        operator = self.operators[at]
        if operator.pattern is Pattern.ELEMENTWISE or not self.nodes[at].inputs:
            return True
        if group.kind is Kind.ROWS and group.rows is not None and is_row_operator(self.nodes[at]):
            return self._fits_rows(at, group.rows)
        if operator.pattern is not Pattern.INJECTIVE:
            return False
        is_constant = set(self.nodes[at].inputs) <= self.graph.constants.keys()
        if group.kind is Kind.CHAIN or operator.movement in _CHEAP or is_constant:
            return True
        is_looked_up = group.kind is Kind.ANCHOR and operator.movement is Movement.NONE
        return is_looked_up and min(self.readers[at]) > group.seed

    def _is_repeated(self, members: set[int]) -> bool:
        """Whether a node is computed at too many places for one element of the result.

        x[order] + x reads x at two places, and one of these behind another reads it at four: as
        one kernel, n of them would take time, and a text, that grow as 2**n.
        """
        places: dict[int, set[tuple[int, ...]]] = {max(members): {()}}
        for at in sorted(members, reverse=True):
            own = places[at]
            if len(own) > _MOST_PLACES:
                return True
            if self.operators[at].pattern is Pattern.INJECTIVE:
                own = {(*path, at) for path in own}
            for source in self._sources([at]):
                if source in members:
                    places.setdefault(source, set()).update(own)
        return False

    def _is_within_limits(self, members: set[int]) -> bool:
        return is_within(self.graph, [self.nodes[at] for at in members], self.limits)

    def _take(self, group: _Group, nodes: Iterable[int]) -> None:
        for at in nodes:
            self.owner[at] = group
            group.members.add(at)

    def _finished(self, group: _Group) -> tuple[Node, ...]:
        for at in group.members - {group.last}:
            if not set(self.readers[at]) <= group.members:
                raise InternalError(
                    stage="partition", where=self.nodes[at].label, reason="its group hides it"
                )
        return tuple(self.nodes[at] for at in sorted(group.members))


def is_within(graph: Graph, nodes: Collection[Node], limits: Limits) -> bool:
    """Whether nodes are few enough for one group, and read few enough tensors."""
    if len(nodes) > limits.nodes:
        return False
    inside = {name for node in nodes for name in node.outputs}
    read = {name for node in nodes for name in node.inputs} - inside
    constants = graph.constants
    counted = [name for name in read if name not in constants or constants[name].size != 1]
    return len(counted) <= limits.inputs
