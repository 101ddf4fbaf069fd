"""The text of a graph parses back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from tests.unit.graph.random_graphs import graphs

from tensorwright.base import DType, ModelError
from tensorwright.graph import Graph, GraphBuilder, Layout
from tensorwright_lab.graph_text import parse


@given(graphs())
@settings(max_examples=50)
def test_text_parses_back(graph: Graph) -> None:
    again = parse(str(graph), graph.constants)
    assert str(again) == str(graph)
    assert again.nodes == graph.nodes
    assert dict(again.types) == dict(graph.types)
    assert dict(again.layouts) == dict(graph.layouts)


DIGEST = "sha256:6bd2942980e11e2f"
OTHER_DIGEST = "sha256:6bd3942980e11e2f"
CAST = "cast_0 = cast(clip_0, to=f16) : f16(1, 16, 4, 4)"


def sample() -> Graph:
    b = GraphBuilder("sample net")
    x = b.input("data:0", (1, 32, 4, 4))
    w = b.constant(np.ones((16, 32, 1, 1), np.float32), "w")
    y = b.add("conv", x, w, output="y")
    z = b.add("clip", y, min=-1e-7, max=float("inf"))
    b.set_layout(y, Layout(axis=1, block=16))
    half = b.add("cast", z, to=DType.F16)
    return b.finish([half, y])


def test_the_form() -> None:
    assert str(sample()) == (
        'graph "sample net"\n'
        '  input "data:0": f32(1, 32, 4, 4)\n'
        "  constant w: f32(16, 32, 1, 1) = sha256:6bd2942980e11e2f\n"
        '  y = conv("data:0", w, dilations=(), groups=1, pads=(), strides=())'
        " : f32(1, 16, 4, 4) layout(axis=1, block=16)\n"
        "  clip_0 = clip(y, max=inf, min=-1e-07) : f32(1, 16, 4, 4)\n"
        "  cast_0 = cast(clip_0, to=f16) : f16(1, 16, 4, 4)\n"
        "  output cast_0, y"
    )


def test_a_notebook_shows_it() -> None:
    page = sample()._repr_html_()
    assert page.startswith("<details><summary><pre>sample net: 3 nodes, 1 constants")
    assert "clip_0 = clip(y, max=inf, min=-1e-07) : f32(1, 16, 4, 4)" in page


def test_names_that_look_like_words_of_the_language() -> None:
    b = GraphBuilder("graph")
    names = [b.input(name, (1,)) for name in ("input", "nan", "1", 'a"b', "-1", "f32")]
    output = b.apply("add", names[:2], ("output",))[0]
    graph = b.finish([output, *names])
    assert str(parse(str(graph))) == str(graph)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("graph", "grape", "line 1: grape \"sample net\": expected 'graph', found 'grape'"),
        (
            "cast_0, y",
            "cast_0 y",
            "line 7: output cast_0 y: expected the end of the line, found 'y'",
        ),
        (
            "to=f16",
            "to=f17",
            f"line 6: {CAST.replace('f16', 'f17', 1)}: expected a value, found 'f17'",
        ),
        (
            ": f16(1, 16, 4, 4)",
            ": f16(1, 16, 4, 5)",
            "node cast_0 (cast): cast_0 is f16(1, 16, 4, 5), its shape rule says f16(1, 16, 4, 4)",
        ),
        ("clip(y", "clip(v", "node clip_0 (clip): reads v, which nothing before it defines"),
        (
            "sha256:6bd2",
            "sha256:6bd3",
            f"constant w: the array given is {DIGEST}, the text says {OTHER_DIGEST}",
        ),
    ],
)
def test_what_is_wrong_is_named(old: str, new: str, message: str) -> None:
    graph = sample()
    text = str(graph).replace(old, new, 1)
    with pytest.raises(ModelError) as caught:
        parse(text, graph.constants)
    assert f"{caught.value.where}: {caught.value.reason}" == message
    assert caught.value.remedy


def test_constants_must_be_given() -> None:
    with pytest.raises(ModelError, match="constant w: its array is not given"):
        parse(str(sample()))
    with pytest.raises(ModelError, match="graph text: it is empty"):
        parse("\n")
