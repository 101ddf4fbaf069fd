"""Choose the layout of every tensor of a network.

Candidates are the plain layout, and channels (dimension 1) in blocks of a whole, half or quarter
vector.  If the channels are not whole vectors and not very many, all of them in one block are a
candidate, too.  The search minimises the sum of the costs of all nodes (`layout_cost.py`).  It
changes tensors, and sets of tensors that should be alike, one after the other until no change
helps: iterated conditional modes, from two starts.  Inputs, outputs and constants of the graph,
tensors of opaque nodes and tensors whose channels are a named size stay plain.  The costs are for
typical sizes.  No node is added: kernels read and write any layout, and the costs include that.

If a price of workloads is given, it decides among several results of such searches, the proposals.
The tensors whose layouts one changes are divided into sets: tensors of one kernel are in one set.
For each set, the kernels that read or write it are priced with the present and with the proposed
layouts.  A kernel here is a group of the grouping criteria; the partition changes groups by price
later.

Source:  Besag, On the Statistical Analysis of Dirty Pictures, JRSS B 48(3), 1986 (the sweeps);
         Liu et al., Optimizing CNN Model Inference on CPUs, USENIX ATC 2019 (blocked layouts).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from tensorwright.base import CpuTarget, DType, dump, knobs
from tensorwright.graph import partition
from tensorwright.graph.graph import PLAIN, Graph, Layout, Node, format_name
from tensorwright.graph.infer import operator_of, verify
from tensorwright.graph.layout_cost import CostModel, LayoutBias, is_channelwise, lie_alike
from tensorwright.graph.nested import map_nested
from tensorwright.graph.physical import is_row_major, memory_order
from tensorwright.graph.sizes import with_typical_sizes
from tensorwright.graph.workload import Workload
from tensorwright.ops import LayoutPreference, Movement, Pattern, sizes_of

_CHANNELS = 1
_RANKS = (3, 4, 5)
_LEAST_BLOCK = 4
_WIDEST_BLOCK = 512
_MOST_SWEEPS = 20
_LEAST_GAIN = 1e-6  # relative; of two equal costs the first one stays


@dataclass(frozen=True, slots=True)
class Conversion:
    """An operand that a node reads in another layout than that of its output."""

    node: Node
    operand: str
    source: Layout
    target: Layout

    def __str__(self) -> str:
        return f"{self.node.label}: {self.operand} {self.source} -> {self.target}"


def choose_layouts(graph: Graph, target: CpuTarget, price: partition.Price | None = None) -> Graph:
    """The graph with new layouts; graphs of the same structure get the same layouts.

    price   decides if the costs are uncertain; without it the costs alone decide
    """
    graph = map_nested(graph, lambda nested: choose_layouts(nested, target, price))
    best = _layouts_by_price(graph, target, price)
    placed = replace(graph, layouts=MappingProxyType(best))
    dump("graph", "layouts", placed.__str__)
    dump("layouts", "", lambda: describe_layouts(placed))
    return verify(placed) if knobs.VERIFY.get() else placed


def _layouts_by_price(
    graph: Graph, target: CpuTarget, price: partition.Price | None
) -> dict[str, Layout]:
    """The layouts of least cost; with prices, those of a biased model where they are faster."""
    if not any(_prefers_channels(node) for node in graph.nodes):
        return {}
    model = CostModel.of(with_typical_sizes(graph), target.lanes(DType.F32))
    best = _best_layouts(graph, model)
    if price is None:
        return best
    proposals = [
        _best_layouts(graph, model, LayoutBias.NONE, is_whole=True),
        _best_layouts(graph, model, LayoutBias.PARTS, is_whole=True),
        _best_layouts(graph, model, LayoutBias.PLAIN),
    ]
    return decide_layouts(graph, best, proposals, price)


def _best_layouts(
    graph: Graph, model: CostModel, bias: LayoutBias = LayoutBias.NONE, *, is_whole: bool = False
) -> dict[str, Layout]:
    """The layouts of least cost; see `_candidates` for `is_whole`."""
    candidates = _candidates(graph, model.lanes, is_whole=is_whole)
    if not candidates:
        return {}
    units = _units(graph, candidates)
    descent = _Descent(graph, candidates, model, bias)
    best: dict[str, Layout] = {}
    least = float("inf")
    for start in (0, -1):
        layouts, total = descent.run({name: at[start] for name, at in candidates.items()}, units)
        if total < least * (1 - _LEAST_GAIN):
            least, best = total, layouts
    return {name: layout for name, layout in best.items() if not layout.is_plain}


def conversions(graph: Graph) -> tuple[Conversion, ...]:
    """The operands whose order in memory is not that of their reader's output.

    Constants are left out, because they are packed when the program is compiled. Operands of a
    convolution with blocked output are left out, because it reads them element by element, for
    which any order is right.
    """
    remaining: list[Conversion] = []
    for node in graph.nodes:
        wanted = graph.layouts.get(node.outputs[0], PLAIN)
        is_convolution = operator_of(node).is_convolution
        if not wanted.is_plain and is_convolution and not is_channelwise(graph, node):
            continue
        for name in dict.fromkeys(node.inputs):
            own, shape = graph.layouts.get(name, PLAIN), sizes_of(graph.types[name])
            is_reshaped = len(shape) != len(graph.types[node.outputs[0]].shape)
            is_still = (
                is_row_major(shape, own)
                if is_reshaped
                else lie_alike(graph, graph.layouts, name, node.outputs[0])
            )
            if name not in graph.constants and not is_still:
                remaining.append(Conversion(node, name, own, wanted))
    return tuple(remaining)


def describe_layouts(graph: Graph) -> str:
    """A text: a line for each tensor that is not plain, then one for each conversion."""
    lines = [
        f"{format_name(name)}: {graph.types[name]} {layout}"
        for name, layout in graph.layouts.items()
        if not layout.is_plain
    ]
    left = conversions(graph)
    counted = f"{len(lines)} of {len(graph.types) - len(graph.constants)} tensors are blocked"
    head = f"layouts of {format_name(graph.name)}: {counted}, {len(left)} conversions"
    return "\n".join([head, *(f"  {x}" for x in lines), *(f"  convert {x}" for x in left)])


def _prefers_channels(node: Node) -> bool:
    return operator_of(node).layout is LayoutPreference.CHANNELS


def _candidates(graph: Graph, lanes: int, *, is_whole: bool) -> dict[str, tuple[Layout, ...]]:
    """The layouts that each tensor may have: the widest block first, plain last.

    is_whole   whether channels that no block divides may be one block, too
    """
    fixed = {*graph.inputs, *graph.outputs, *graph.constants}
    for node in graph.nodes:
        if operator_of(node).meaning is None:
            fixed.update((*node.inputs, *node.outputs))
    widths = [lanes // part for part in (1, 2, 4) if lanes // part >= _LEAST_BLOCK]
    candidates: dict[str, tuple[Layout, ...]] = {}
    for node in graph.nodes:
        for name in node.outputs:
            shape = graph.types[name].shape
            if name in fixed or len(shape) not in _RANKS or 0 in shape:
                continue
            channels = shape[_CHANNELS]
            if not isinstance(channels, int):
                continue
            fitting = [width for width in widths if channels % width == 0]
            if (fitting or is_whole) and lanes not in fitting and lanes < channels <= _WIDEST_BLOCK:
                fitting.insert(0, channels)  # some lanes of its last vector are masked
            if fitting:
                candidates[name] = (*(Layout(_CHANNELS, width) for width in fitting), PLAIN)
    return candidates


def _units(graph: Graph, candidates: dict[str, tuple[Layout, ...]]) -> tuple[tuple[str, ...], ...]:
    """Sets of tensors that are changed together: large ones, small ones, single ones."""
    wide: list[tuple[str, ...]] = []
    narrow: list[tuple[str, ...]] = []
    for node in graph.nodes:
        pattern = operator_of(node).pattern
        names = (*node.inputs, *node.outputs)
        if pattern is Pattern.ELEMENTWISE:
            narrow.append(names)
        is_pooling = pattern is Pattern.REDUCTION and _prefers_channels(node)
        is_concat = operator_of(node).movement is Movement.JOIN
        if pattern is Pattern.ELEMENTWISE or is_concat or is_pooling:
            wide.append(names)
    singles = tuple((name,) for name in candidates)
    return tuple(
        dict.fromkeys((*merged_sets(candidates, wide), *merged_sets(candidates, narrow), *singles))
    )


class _Descent:
    """Sweeps over sets of tensors; mutable, used inside one function."""

    def __init__(
        self,
        graph: Graph,
        candidates: dict[str, tuple[Layout, ...]],
        model: CostModel,
        bias: LayoutBias,
    ) -> None:
        self.nodes = graph.nodes
        self.candidates = candidates
        self.model = model
        self.bias = bias
        self.costs: dict[tuple[int, ...], float] = {}
        listed = dict.fromkeys((PLAIN, *(x for each in candidates.values() for x in each)))
        self.number = {layout: number for number, layout in enumerate(listed)}
        self.numbers: dict[str, int] = {}  # the layouts of tensors as numbers, which hash fast
        self.touching: dict[str, list[int]] = {name: [] for name in candidates}
        self.changing: list[tuple[str, ...]] = []
        for at, node in enumerate(graph.nodes):
            names = dict.fromkeys((*node.inputs, *node.outputs))
            self.changing.append(tuple(name for name in names if name in candidates))
            for name in self.changing[-1]:
                self.touching[name].append(at)

    def run(
        self, start: dict[str, Layout], units: tuple[tuple[str, ...], ...]
    ) -> tuple[dict[str, Layout], float]:
        """The layouts that no further change improves, and their cost."""
        layouts = dict(start)
        self._take(layouts, start)
        around = [sorted({at for name in unit for at in self.touching[name]}) for unit in units]
        changed = [0] * len(self.nodes)  # the step at which a tensor of each node last changed
        tried = [-1] * len(units)  # the step at which each set was last tried
        step = 0
        for _ in range(_MOST_SWEEPS):
            before = step
            for number, (unit, nodes) in enumerate(zip(units, around, strict=True)):
                if max(map(changed.__getitem__, nodes), default=0) <= tried[number]:
                    continue  # no node near the set has changed since
                if self._improve(layouts, unit, nodes):
                    step += 1
                    for at in nodes:
                        changed[at] = step
                tried[number] = step
            if step == before:
                break
        return layouts, self._cost(layouts, range(len(self.nodes)))

    def _improve(self, layouts: dict[str, Layout], unit: tuple[str, ...], nodes: list[int]) -> bool:
        """Give the set the layout that costs least; a member that cannot have it becomes plain."""
        kept = {name: layouts[name] for name in unit}
        best, least = kept, self._cost(layouts, nodes)
        for layout in dict.fromkeys(x for name in unit for x in self.candidates[name]):
            trial = {name: layout if layout in self.candidates[name] else PLAIN for name in unit}
            if trial == kept:
                continue
            self._take(layouts, trial)
            total = self._cost(layouts, nodes)
            if total < least * (1 - _LEAST_GAIN):
                best, least = trial, total
        self._take(layouts, best)
        return best is not kept

    def _take(self, layouts: dict[str, Layout], taken: dict[str, Layout]) -> None:
        layouts.update(taken)
        for name, layout in taken.items():
            self.numbers[name] = self.number[layout]

    def _cost(self, layouts: dict[str, Layout], nodes: Iterable[int]) -> float:
        return sum(self._cost_of(layouts, at) for at in nodes)

    def _cost_of(self, layouts: dict[str, Layout], at: int) -> float:
        """The cost of a node, computed once for each choice of layouts of its tensors."""
        key = (at, *map(self.numbers.__getitem__, self.changing[at]))
        cost = self.costs.get(key)
        if cost is None:
            cost = self.costs[key] = self.model.cost(self.nodes[at], layouts, self.bias)
        return cost


MOST_PRICES = 128
"""So many workloads of a graph are priced at most; after these, the present layouts stay."""

Layouts = Mapping[str, Layout]


def decide_layouts(
    graph: Graph, layouts: Layouts, proposals: Sequence[Layouts], price: partition.Price
) -> dict[str, Layout]:
    """The layouts, with those of the proposals that are faster by a margin; plain ones left out."""
    current = dict(layouts)
    kernels = _Kernels(graph, layouts)
    decide = partition.Decisions(price, MOST_PRICES, stops_early=False)
    lost: set[tuple[tuple[str, Layout], ...]] = set()
    for proposal in proposals:
        for names in kernels.questions(current, proposal):
            kept, other = (
                tuple((name, each.get(name, PLAIN)) for name in names)
                for each in (current, proposal)
            )
            if other in lost:
                continue
            trial = {**current, **dict(other)}
            decision = decide(
                f"{format_name(names[0])} and {len(names) - 1} more",
                partition.Alternative(str(kept[0][1]), kernels.around(names, current)),
                partition.Alternative(str(other[0][1]), kernels.around(names, trial)),
            )
            if decision is None:
                continue
            lost.add(kept if decision.is_changed else other)
            if decision.is_changed:
                current = trial
    dump("layouts", "decisions", lambda: decide.describe("layouts"))
    return {name: layout for name, layout in current.items() if not layout.is_plain}


class _Kernels:
    """The kernels of a graph and their tensors; used inside one function."""

    def __init__(self, graph: Graph, layouts: Layouts) -> None:
        self.graph = graph
        placed = replace(graph, layouts=MappingProxyType(dict(layouts)))
        self.groups = partition.usual_groups(placed)
        self.names = [
            tuple(dict.fromkeys(x for node in nodes for x in (*node.inputs, *node.outputs)))
            for nodes in self.groups
        ]
        self.touching: dict[str, list[int]] = {}
        for at, names in enumerate(self.names):
            for name in names:
                self.touching.setdefault(name, []).append(at)

    def questions(self, current: Layouts, proposal: Layouts) -> tuple[tuple[str, ...], ...]:
        """The tensors whose layouts differ, in sets; tensors of one group are in one set."""

        def order(name: str, layouts: Layouts) -> object:
            shape = sizes_of(self.graph.types[name])
            return memory_order(shape, layouts.get(name, PLAIN))

        different = [n for n in self.touching if order(n, current) != order(n, proposal)]
        return merged_sets(different, self.names)

    def around(self, names: Sequence[str], layouts: Layouts) -> Iterator[Workload]:
        """The workloads of the kernels that read or write some tensors."""
        graph = replace(self.graph, layouts=MappingProxyType(dict(layouts)))
        positions = sorted({at for name in names for at in self.touching[name]})
        return partition.kernels_of_groups(graph, (self.groups[at] for at in positions))


def merged_sets(
    names: Iterable[str], together: Iterable[Iterable[str]]
) -> tuple[tuple[str, ...], ...]:
    """Names in disjoint sets, in order; those that are listed together are in one set."""
    parent = {name: name for name in names}

    def root(name: str) -> str:
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for listed in together:
        roots = [root(name) for name in listed if name in parent]
        parent.update(dict.fromkeys(roots[1:], roots[0]) if roots else {})
    sets: dict[str, list[str]] = {}
    for name in parent:
        sets.setdefault(root(name), []).append(name)
    return tuple(map(tuple, sets.values()))
