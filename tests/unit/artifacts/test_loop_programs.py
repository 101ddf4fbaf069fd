"""Kernels from a rule's schedule to the last pass over their loops, as golden files."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.targets import AVX512
from tests.unit.tuning.space.test_space_schedules import NETWORKS

from tensorwright.artifacts import loop_program
from tensorwright.base import collect_dumps
from tensorwright.graph import choose_layouts, partition, simplify
from tensorwright.schedule import state_of
from tensorwright.tuning.space import default_trace


@pytest.mark.parametrize("name", ["conv2d", "max_pool", "softmax", "matmul_odd"])
def test_a_kernel(name: str, golden: Callable[..., None]) -> None:
    parts = partition(choose_layouts(simplify(NETWORKS[name]()), AVX512))
    pages = []
    for workload in parts.workloads:
        with collect_dumps(("schedule", "loop")) as dumps:
            loop_program(workload, default_trace(state_of(workload), AVX512), AVX512)
        pages += [f"--- {each.stage} {each.name}\n{each.text}" for each in dumps]
    golden("\n".join(pages))
