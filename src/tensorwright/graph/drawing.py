"""Two graphs side by side, with coloured differences.

    before, after = compare_graphs(one, other)
    before.changed         numbers of the nodes that the other graph does not have
    before.shown           numbers of the nodes to show: all, or those around a change
    before.left_out        the others, in connected groups

Nodes are alike where they apply one operator with the same attributes to like tensors.  Inputs are
alike by name, constants by value. Results of two nodes of different kinds count as alike where they
have one name and type, because a rewriting keeps the names of tensors that it does not change.

Two graphs as a drawing in the DOT language of Graphviz.

One cluster for each graph; a box for an operator, an ellipse for an input or an output, an arrow
for a tensor.  Constants are not drawn.  Nodes that only one of the graphs has are coloured. Dots
with a number stand for operators that are left out.

Source:  Gansner, Koutsofios, North, Drawing graphs with dot, 2015.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass

from tensorwright.base import Printer
from tensorwright.graph.graph import Graph, Node, digest

MOST_SHOWN = 60
"""The most nodes of a graph that is shown as a whole."""

_NEAR = 2  # nodes between a change and the last that is shown


@dataclass(frozen=True, slots=True, eq=False)
class Excerpt:
    """A graph, and the numbers of its nodes that changed, are shown and are left out."""

    graph: Graph
    changed: frozenset[int]
    shown: tuple[int, ...]
    left_out: tuple[tuple[int, ...], ...]


def compare_graphs(before: Graph, after: Graph, most: int = MOST_SHOWN) -> tuple[Excerpt, Excerpt]:
    """Excerpts of two graphs: all nodes if there are at most `most`, else those near a change."""
    values = _constants(before)
    numbers = {_key(node, values): number for number, node in enumerate(before.nodes)}
    alike = _constants(after)
    added: set[int] = set()
    kept: set[int] = set()
    for number, node in enumerate(after.nodes):
        twin = numbers.get(_key(node, alike))
        if twin is None:
            added.add(number)
            names = [
                name if before.types.get(name) == after.types[name] else ("new", name)
                for name in node.outputs
            ]
            alike.update(zip(node.outputs, names, strict=True))
        else:
            kept.add(twin)
            alike.update(zip(node.outputs, before.nodes[twin].outputs, strict=True))
    removed = set(range(len(before.nodes))) - kept
    return _excerpt(before, removed, most), _excerpt(after, added, most)


def _constants(graph: Graph) -> dict[str, Hashable]:
    """The key of each constant, which is of its value."""
    return {name: ("constant", digest(array)) for name, array in graph.constants.items()}


def _key(node: Node, alike: dict[str, Hashable]) -> Hashable:
    inputs = tuple(alike.get(name, name) for name in node.inputs)
    return node.operator, node.attributes, inputs, len(node.outputs)


def _excerpt(graph: Graph, changed: Iterable[int], most: int) -> Excerpt:
    marked = frozenset(changed)
    count = len(graph.nodes)
    if count <= most:
        return Excerpt(graph, marked, tuple(range(count)), ())
    beside = _neighbours(graph)
    shown = set(marked)
    for _ in range(_NEAR):
        shown |= {other for number in shown for other in beside[number]}
    return Excerpt(graph, marked, tuple(sorted(shown)), _groups(beside, shown))


def _neighbours(graph: Graph) -> list[set[int]]:
    """The numbers of the nodes that write an input of each node, or read an output of it."""
    beside: list[set[int]] = [set() for _ in graph.nodes]
    writers: dict[str, int] = {}
    for number, node in enumerate(graph.nodes):
        for writer in {writers[name] for name in node.inputs if name in writers}:
            beside[number].add(writer)
            beside[writer].add(number)
        writers.update(dict.fromkeys(node.outputs, number))
    return beside


def _groups(beside: list[set[int]], shown: set[int]) -> tuple[tuple[int, ...], ...]:
    """Nodes that are not shown, in connected groups, ordered by their first nodes."""
    seen = set(shown)
    groups: list[tuple[int, ...]] = []
    for first in range(len(beside)):
        if first in seen:
            continue
        seen.add(first)
        group, stack = [first], [first]
        while stack:
            fresh = beside[stack.pop()] - seen
            seen |= fresh
            group += fresh
            stack += fresh
        groups.append(tuple(sorted(group)))
    return tuple(groups)


def difference_text(before: Graph, after: Graph) -> str:
    """Both graphs, one below the other: `-` marks nodes that only the first has, `+` nodes that
    only the second has. Of a large graph only nodes near these are shown.
    """
    lines: list[str] = []
    excerpts = compare_graphs(before, after)
    for word, mark, part in zip(("before", "after"), "-+", excerpts, strict=True):
        title = f"{len(part.graph.nodes)} operators, {len(part.changed)} of them marked {mark}"
        lines += [f"{word}: {title}", *_lines(part, mark)]
    return "\n".join(lines) + "\n"


def _lines(part: Excerpt, mark: str) -> Iterator[str]:
    graph, last = part.graph, -1
    for number in (*part.shown, len(graph.nodes)):
        if number > last + 1:
            yield f"    ... {number - last - 1} operators"
        if number < len(graph.nodes):
            node = graph.nodes[number]
            sign = mark if number in part.changed else " "
            yield f"  {sign} {node.text(str(graph.types[name]) for name in node.outputs)}"
        last = number


_ONLY_BEFORE, _ONLY_AFTER, _BOTH = "#f4b6b6", "#b5e3b5", "#f2f2f2"
_MOST_LETTERS = 48


def difference_dot(before: Graph, after: Graph) -> str:
    """The DOT source of two graphs side by side."""
    page = Printer()
    excerpts = compare_graphs(before, after)
    with page.block("digraph difference {"):
        page.line('graph [fontname="Helvetica", labeljust=l, rankdir=TB];')
        page.line('node [fontname="Helvetica", fontsize=10, shape=box, style=filled];')
        for word, colour, part in zip(
            ("before", "after"), (_ONLY_BEFORE, _ONLY_AFTER), excerpts, strict=True
        ):
            count = f"{len(part.graph.nodes)} operators, {len(part.changed)} of them coloured"
            with page.block(f"subgraph cluster_{word} {{"):
                page.line(f"label={quoted(f'{word}: {count}')};")
                page.lines(_Cluster(part, word, colour).lines())
            page.line("}")
    page.line("}")
    return str(page)


class _Cluster:
    """The lines of one graph: its names begin with a word, so that two graphs may share names."""

    def __init__(self, part: Excerpt, word: str, colour: str) -> None:
        self._part, self._word, self._colour = part, word, colour
        self._boxes = {number: f"{word}_{number}" for number in part.shown}
        for number, group in enumerate(part.left_out):
            self._boxes |= dict.fromkeys(group, f"{word}_left_out_{number}")

    def lines(self) -> Iterator[str]:
        graph = self._part.graph
        for number in self._part.shown:
            node = graph.nodes[number]
            types = (str(graph.types[name]) for name in node.outputs)
            label = quoted("\n".join((node.operator, *types)))
            fill = _fill(self._colour if number in self._part.changed else _BOTH)
            yield f"{self._boxes[number]} [label={label}, tooltip={quoted(str(node))}, {fill}];"
        for group in self._part.left_out:
            label = quoted(f"... {len(group)} operators")
            yield f"{self._boxes[group[0]]} [label={label}, shape=plaintext, {_fill('white')}];"
        writers = {
            name: self._boxes[number]
            for number, node in enumerate(graph.nodes)
            for name in node.outputs
        }
        for number, name in enumerate(graph.inputs):
            writers[name] = f"{self._word}_input_{number}"
            yield self._ellipse(writers[name], name)
        yield from self._arrows(writers)

    def _arrows(self, writers: dict[str, str]) -> Iterator[str]:
        graph = self._part.graph
        arrows: dict[tuple[str, str, str], None] = {}
        for number, node in enumerate(graph.nodes):
            for name in node.inputs:
                source, target = writers.get(name), self._boxes[number]
                if source is not None and source != target:
                    arrows.setdefault((source, target, name))
        for number, name in enumerate(graph.outputs):
            if name in writers:
                box = f"{self._word}_output_{number}"
                yield self._ellipse(box, name)
                arrows.setdefault((writers[name], box, name))
        for source, target, name in arrows:
            yield f"{source} -> {target} [tooltip={quoted(name)}];"

    def _ellipse(self, box: str, name: str) -> str:
        short = name if len(name) <= _MOST_LETTERS else name[: _MOST_LETTERS - 3] + "..."
        label = quoted(f"{short}\n{self._part.graph.types[name]}")
        return f"{box} [label={label}, shape=ellipse, {_fill('white')}];"


def _fill(colour: str) -> str:
    return f"fillcolor={quoted(colour)}"


def quoted(text: str) -> str:
    """A string of the DOT language that shows this text.

    Backslashes and entities of HTML are escaped, since DOT reads both in plain strings.
    """
    shown = "".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in text)
    escaped = (
        shown.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    )
    return f'"{escaped}"'
