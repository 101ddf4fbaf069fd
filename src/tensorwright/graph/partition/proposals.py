"""The open questions of the grouping criteria, which a price decides: one kernel or two.

A group of `grouping.py` may be cut in two behind a node:
    result in another order   an anchor takes a node that stores its result in another order: its
                              tiles must then follow that order
    rows behind a product     a product of activations takes softmax: its tiles must then have whole
                              rows
    read again and again      an anchor or a row operator computes what it reads, maybe once per use
    joined in a chain         a chain contains a concatenation: each element then chooses its part
Two groups may become one if only the second reads the first:
    chain before a fold       pooling, a row operator or an anchor computes the chain that it reads
    chain behind a fold       a chain stores the result in another order, or a part of it
    rows behind a product     a product with a constant takes the normalisation behind it
    attention                 a product reads the softmax of another product: softmax(q k) v
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from tensorwright.graph.graph import PLAIN, Graph, Node
from tensorwright.graph.infer import operator_of
from tensorwright.graph.partition.grouping import Kind
from tensorwright.graph.partition.views import is_row_operator, rows_of, view_offsets
from tensorwright.graph.physical import memory_order
from tensorwright.graph.sizes import typical_shape
from tensorwright.ops import Fold, Movement, Pattern, sizes_of

_MOST_CUTS = 4
_MOVING = frozenset((Movement.RESHAPE, Movement.REORDER))

OTHER_ORDER = "result in another order"
ROWS_BEHIND = "rows behind a product"
READ_AGAIN = "read again and again"
JOINED = "joined in a chain"
CHAIN_BEFORE = "chain before a fold"
CHAIN_BEHIND = "chain behind a fold"
ATTENTION = "attention"

Nodes = tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Cut:
    """A group as two: `first` computes one tensor, which `second` reads."""

    reason: str
    first: Nodes
    second: Nodes


def kind_of(nodes: Nodes) -> Kind:
    """The kind of operator that a finished group is built around."""
    patterns = {operator_of(node).pattern for node in nodes}
    if Pattern.ANCHOR in patterns:
        return Kind.ANCHOR
    if any(is_row_operator(node) for node in nodes):
        return Kind.ROWS
    return Kind.POOLING if patterns & {Pattern.REDUCTION, Pattern.COMPOSITE} else Kind.CHAIN


def open_cuts(graph: Graph, nodes: Nodes) -> tuple[Cut, ...]:
    """The cuts of a group that are worth a price, at most four."""
    if len(nodes) < 2:
        return ()
    return tuple(_cuts(_Inside(graph, nodes)))[:_MOST_CUTS]


def open_join(graph: Graph, first: Nodes, second: Nodes) -> str:
    """Why two groups may be one kernel, if only the second reads the first; "" if they may not."""
    kinds = kind_of(first), kind_of(second)
    made, last = (graph.types[nodes[-1].outputs[0]] for nodes in (first, second))
    match kinds:
        case (Kind.CHAIN, Kind.ANCHOR | Kind.ROWS | Kind.POOLING):
            return CHAIN_BEFORE
        case (Kind.ANCHOR | Kind.ROWS | Kind.POOLING, Kind.CHAIN):
            is_large = prod(typical_shape(last)) > prod(typical_shape(made))
            return "" if is_large else CHAIN_BEHIND
        case (Kind.ANCHOR, Kind.ROWS):
            rows = rows_of(graph, next(node for node in second if is_row_operator(node)))
            is_whole = rows.shape == made.shape and rows.axes == {len(made.shape) - 1}
            return ROWS_BEHIND if is_whole else ""
        case (Kind.ANCHOR, Kind.ANCHOR):
            return ATTENTION if _is_attention(graph, first, second) else ""
    return ""


def _is_attention(graph: Graph, first: Nodes, second: Nodes) -> bool:
    """Whether the rows of a product are folded, and another product then reads whole rows."""
    before, product = (
        next(node for node in nodes if operator_of(node).pattern is Pattern.ANCHOR)
        for nodes in (first, second)
    )
    rows = [rows_of(graph, node) for node in first if is_row_operator(node)]
    weights = first[-1].outputs[0]
    shape = sizes_of(graph.types[weights])
    are_products = all(operator_of(node).fold is Fold.PRODUCT for node in (before, product))
    is_left = product.inputs[0] == weights and weights not in product.inputs[1:]
    is_of_rows = bool(rows) and rows[-1].shape == shape and rows[-1].axes == {len(shape) - 1}
    return are_products and is_left and is_of_rows


class _Inside:
    """A group with the readers of its tensors; nodes are their positions in the group."""

    def __init__(self, graph: Graph, nodes: Nodes) -> None:
        self.graph = graph
        self.nodes = nodes
        producer = {name: at for at, node in enumerate(nodes) for name in node.outputs}
        self.sources = tuple(
            tuple(dict.fromkeys(producer[name] for name in node.inputs if name in producer))
            for node in nodes
        )

    def behind(self, at: int) -> Iterator[int]:
        """The nodes that need the result of a node, in order."""
        needing = {at}
        for later in range(at + 1, len(self.nodes)):
            if needing & set(self.sources[later]):
                needing.add(later)
                yield later

    def split_behind(self, at: int, reason: str) -> Cut | None:
        """The group cut behind a node; None if the rest reads more than that node's result, or if
        the first part would compute the same in every call, of constants.
        """
        first = {at}
        for earlier in range(at, -1, -1):
            if earlier in first:
                first.update(self.sources[earlier])
        rest = [each for each in range(len(self.nodes)) if each not in first]
        is_hidden = all(set(self.sources[each]) & first <= {at} for each in rest)
        if not rest or not is_hidden or len(self.nodes[at].outputs) != 1:
            return None
        made = {name for each in first for name in self.nodes[each].outputs}
        read = {name for each in first for name in self.nodes[each].inputs} - made
        if read and read <= self.graph.constants.keys():
            return None
        return Cut(
            reason,
            tuple(self.nodes[each] for each in sorted(first)),
            tuple(self.nodes[each] for each in rest),
        )

    def moves(self, at: int, source: int) -> bool:
        """Whether a node stores what it reads in another order of memory."""
        node, name = self.nodes[at], self.nodes[source].outputs[0]
        if operator_of(node).movement in _MOVING:
            return view_offsets(self.graph, node) is None
        shape, layouts = sizes_of(self.graph.types[name]), self.graph.layouts
        if shape != self.graph.types[node.outputs[0]].shape:
            return False
        before, after = (layouts.get(each, PLAIN) for each in (name, node.outputs[0]))
        return memory_order(shape, before) != memory_order(shape, after)

    def before_views(self, at: int) -> int:
        """The node itself; for a view, the node whose result it shows."""
        while view_offsets(self.graph, self.nodes[at]) is not None and self.sources[at]:
            at = self.sources[at][0]
        return at


def _cuts(inside: _Inside) -> Iterator[Cut]:
    seen: set[int] = set()
    for at, reason in _places(inside):
        if at not in seen:
            seen.add(at)
            cut = inside.split_behind(at, reason)
            if cut is not None:
                yield cut


def _places(inside: _Inside) -> Iterator[tuple[int, str]]:
    """The nodes behind which a group may be cut, and why; the most uncertain ones first."""
    operators = [operator_of(node) for node in inside.nodes]
    anchors = [at for at, each in enumerate(operators) if each.pattern is Pattern.ANCHOR]
    rows = [at for at, node in enumerate(inside.nodes) if is_row_operator(node)]
    for at in anchors:
        moving = _first_move(inside, at)
        if moving is not None:
            yield inside.before_views(moving), OTHER_ORDER
        for later in inside.behind(at):
            if later in rows:
                yield inside.before_views(inside.sources[later][0]), ROWS_BEHIND
                break
    folding = anchors or [at for at in rows[:1] if _is_moved_before(inside, at)]
    for at in folding:
        for source in inside.sources[at]:
            yield inside.before_views(source), READ_AGAIN
    for at, each in enumerate(operators[:-1]):
        if each.movement is Movement.JOIN:
            yield at, JOINED


def _first_move(inside: _Inside, at: int) -> int | None:
    """The first node behind a node whose reader stores it in another order."""
    needing = {at}
    for later in inside.behind(at):
        for source in inside.sources[later]:
            if source in needing and inside.moves(later, source):
                return source
        needing.add(later)
    return None


def _is_moved_before(inside: _Inside, at: int) -> bool:
    """Whether a node, or one before it, stores what it reads in another order."""
    pairs = ((each, source) for each in range(at + 1) for source in inside.sources[each])
    return any(inside.moves(*pair) for pair in pairs)
