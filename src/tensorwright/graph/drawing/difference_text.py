"""Two graphs as text: a line for each operator, marked where only one of them has it."""

from __future__ import annotations

from collections.abc import Iterator

from tensorwright.graph.drawing.difference import Excerpt, compare_graphs
from tensorwright.graph.graph import Graph


def difference_text(before: Graph, after: Graph) -> str:
    """Both graphs, one below the other: `-` marks what only the first has, `+` what only the
    second; of large ones what is near that.
    """
    lines: list[str] = []
    excerpts = compare_graphs(before, after)
    for word, mark, part in zip(("before", "after"), "-+", excerpts, strict=True):
        title = f"{len(part.graph.nodes)} operators, {len(part.changed)} of them marked {mark}"
        lines += [f"{word}: {title}", *_lines(part, mark)]
    return "\n".join(lines) + "\n"


def _lines(part: Excerpt, mark: str) -> Iterator[str]:
    graph, last = part.graph, -1
    for place in (*part.shown, len(graph.nodes)):
        if place > last + 1:
            yield f"    ... {place - last - 1} operators"
        if place < len(graph.nodes):
            node = graph.nodes[place]
            sign = mark if place in part.changed else " "
            yield f"  {sign} {node.text(str(graph.types[name]) for name in node.outputs)}"
        last = place
