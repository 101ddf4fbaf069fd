"""Two graphs side by side: what is taken for changed, what is left out, what is escaped."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence

import numpy as np
import pytest

from tensorwright.graph import Graph, GraphBuilder
from tensorwright.graph.drawing import compare_graphs, difference_dot, difference_text


def functions(operators: Sequence[str], names: str = "t") -> Graph:
    """A chain of functions, the last tensor named `y`."""
    b = GraphBuilder("chain")
    x = b.input("x", (2, 3))
    for place, operator in enumerate(operators):
        is_last = place == len(operators) - 1
        x = b.add(operator, x, output="y" if is_last else f"{names}{place}")
    return b.finish((x,))


def test_what_only_one_graph_has_is_changed() -> None:
    before, after = functions(["relu", "exp", "tanh"]), functions(["relu", "sigmoid", "tanh"], "u")
    one, other = compare_graphs(before, after)
    assert one.changed == {1, 2}
    assert other.changed == {1, 2}
    after = functions(["relu", "sigmoid", "tanh"])
    one, other = compare_graphs(before, after)
    assert (one.changed, other.changed) == ({1}, {1}), "t1 is what it was, made by another"


def test_names_of_tensors_and_constants_are_no_difference() -> None:
    graphs = []
    for name in ("w", "folded"):
        b = GraphBuilder("one")
        w = b.constant(np.ones((3, 3), np.float32), name)
        y = b.add("relu", b.add("matmul", b.input("x", (2, 3)), w, output=f"{name}_x"), output="y")
        graphs.append(b.finish((y,)))
    one, other = compare_graphs(*graphs)
    assert not one.changed
    assert not other.changed
    b = GraphBuilder("other")
    w = b.constant(np.full((3, 3), 2, np.float32), "w")
    y = b.add("relu", b.add("matmul", b.input("x", (2, 3)), w, output="w_x"), output="y")
    assert compare_graphs(graphs[0], b.finish((y,)))[1].changed == {0}


def test_a_large_graph_is_shown_near_the_change() -> None:
    operators = ["relu", "exp"] * 50
    before = functions(operators)
    after = functions([*operators[:40], "sigmoid", *operators[41:]])
    one, other = compare_graphs(before, after)
    assert one.changed == {40}
    assert one.shown == other.shown == (38, 39, 40, 41, 42)
    assert one.left_out == (tuple(range(38)), tuple(range(43, 100)))
    text = difference_text(before, after)
    assert "before: 100 operators, 1 of them marked -\n    ... 38 operators\n" in text
    assert "  - t40 = relu(t39) : f32(2, 3)\n" in text
    assert "  + t40 = sigmoid(t39) : f32(2, 3)\n" in text
    dot = difference_dot(before, after)
    assert dot.count('label="... 38 operators"') == 2
    assert dot.count("\n    before_left_out_1 [") == 1
    assert "before_42 -> before_left_out_1" in dot
    assert len(re.findall(r"before_\d+ \[label", dot)) == 5


def test_the_drawing_of_small_graphs() -> None:
    drawn = difference_dot(functions(["relu"]), functions(["exp"]))
    assert drawn == difference_dot(functions(["relu"]), functions(["exp"]))
    assert drawn == (
        "digraph difference {\n"
        '  graph [fontname="Helvetica", labeljust=l, rankdir=TB];\n'
        '  node [fontname="Helvetica", fontsize=10, shape=box, style=filled];\n'
        "  subgraph cluster_before {\n"
        '    label="before: 1 operators, 1 of them coloured";\n'
        '    before_0 [label="relu\\nf32(2, 3)", tooltip="y = relu(x)", fillcolor="#f4b6b6"];\n'
        '    before_input_0 [label="x\\nf32(2, 3)", shape=ellipse, fillcolor="white"];\n'
        '    before_output_0 [label="y\\nf32(2, 3)", shape=ellipse, fillcolor="white"];\n'
        '    before_input_0 -> before_0 [tooltip="x"];\n'
        '    before_0 -> before_output_0 [tooltip="y"];\n'
        "  }\n"
        "  subgraph cluster_after {\n"
        '    label="after: 1 operators, 1 of them coloured";\n'
        '    after_0 [label="exp\\nf32(2, 3)", tooltip="y = exp(x)", fillcolor="#b5e3b5"];\n'
        '    after_input_0 [label="x\\nf32(2, 3)", shape=ellipse, fillcolor="white"];\n'
        '    after_output_0 [label="y\\nf32(2, 3)", shape=ellipse, fillcolor="white"];\n'
        '    after_input_0 -> after_0 [tooltip="x"];\n'
        '    after_0 -> after_output_0 [tooltip="y"];\n'
        "  }\n"
        "}"
    )


NAMES = ('a"b', "back\\slash", "ends\\", "<b>&amp;", "line\nbreak", "bell\x07", "größe", "\\N\\l")


def strangely_named(operator: str) -> Graph:
    b = GraphBuilder("strange")
    inputs = [b.input(name, (2,)) for name in NAMES]
    return b.finish(tuple(b.add(operator, name, output=f"{name}.y") for name in inputs))


def test_names_have_no_meaning_in_the_drawing() -> None:
    dot = difference_dot(strangely_named("relu"), strangely_named("exp"))
    strings = re.findall(r'"(?:[^"\\]|\\.)*"', dot)
    rest = re.sub(r'"(?:[^"\\]|\\.)*"', "", dot)
    assert "\\" not in rest
    assert '"' not in rest
    assert '"a\\"b\\nf32(2)"' in strings
    assert '"ends\\\\\\nf32(2)"' in strings
    assert '"bell?\\nf32(2)"' in strings
    assert '"<b>&amp;amp;\\nf32(2)"' in strings


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_reads_it() -> None:
    source = difference_dot(strangely_named("relu"), strangely_named("exp"))
    done = subprocess.run(["dot", "-Tsvg"], input=source.encode(), capture_output=True, check=True)
    assert b"<svg" in done.stdout
    assert not done.stderr
