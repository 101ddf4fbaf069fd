"""Two graphs as text: a line for each operator, marked where only one of them has it."""

from __future__ import annotations

from collections.abc import Iterator

from tensorwright.graph.drawing.difference import Excerpt, compare_graphs
from tensorwright.graph.graph import Graph


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
