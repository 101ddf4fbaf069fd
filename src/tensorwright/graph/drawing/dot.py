"""Two graphs as a drawing in the DOT language of Graphviz.

One cluster for each graph; a box for an operator, an ellipse for an input or an output, an arrow
for a tensor.  Constants are not drawn.  Nodes that only one of the graphs has are coloured. Dots
with a number stand for operators that are left out.

Source:  Gansner, Koutsofios, North, Drawing graphs with dot, 2015.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorwright.base import Printer
from tensorwright.graph.drawing.difference import Excerpt, compare_graphs
from tensorwright.graph.graph import Graph

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
        label = quoted(f"{_short(name)}\n{self._part.graph.types[name]}")
        return f"{box} [label={label}, shape=ellipse, {_fill('white')}];"


def _fill(colour: str) -> str:
    return f"fillcolor={quoted(colour)}"


def _short(name: str) -> str:
    return name if len(name) <= _MOST_LETTERS else name[: _MOST_LETTERS - 3] + "..."


def quoted(text: str) -> str:
    """A string of the DOT language that shows this text.

    Backslashes and entities of HTML are escaped, since DOT reads both in plain strings.
    """
    shown = "".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in text)
    escaped = (
        shown.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    )
    return f'"{escaped}"'
