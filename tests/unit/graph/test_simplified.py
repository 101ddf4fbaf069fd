"""Networks before and after their passes, as golden files: a change of a pass shows as a diff."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.targets import AVX512

from tensorwright.graph import Graph, choose_layouts, simplify
from tensorwright.graph.imports import load_onnx
from tensorwright_lab.zoo import build, load_light

NETWORKS: dict[str, Callable[[], Graph]] = {
    "inception_v2": lambda: load_onnx(load_light("inception_v2", 0)),
    "shufflenet": lambda: load_onnx(load_light("shufflenet", 0)),
    "dcgan": lambda: build("dcgan", 0),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network(name: str, golden: Callable[..., None]) -> None:
    placed = choose_layouts(simplify(NETWORKS[name]()), AVX512)
    text = "\n".join(line for line in str(placed).splitlines() if "  constant " not in line)
    golden(text)
