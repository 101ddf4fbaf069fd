"""Record stores that earlier versions wrote still open, and what is in them is used.

`stored/version-1.*` hold a record of each workload of `network`, and the choice in it.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from tensorwright.base import cpu_target
from tensorwright.graph import GraphBuilder, Partition
from tensorwright.pipeline import prepare
from tensorwright.records import Setting, best_record, load_choice, open_store
from tensorwright.schedule import replay, state_of

STORED = Path(__file__).parent / "stored"
TARGET = cpu_target("x86-64-avx2")


def network() -> Partition:
    builder = GraphBuilder("two")
    rectified = builder.add("relu", builder.input("x", (1, 8, 6, 6)))
    weights = builder.constant(np.ones((8, 8, 1, 1), np.float32), "w")
    convolved = builder.add("conv", rectified, weights)
    result = builder.add("exp", builder.add("softmax", convolved, axis=1))
    return prepare(builder.finish([result]), TARGET)


@pytest.mark.parametrize("name", ["version-1.sqlite", "version-1.jsonl"])
def test_an_earlier_store_is_used(name: str, tmp_path: Path) -> None:
    shutil.copy(STORED / name, tmp_path / name)
    parts = network()
    with open_store(tmp_path / name, create=False) as store:
        assert store.count() == len(parts.workloads) == 2
        choice = load_choice(store, parts, Setting(TARGET, 1, "machine"))
        for workload in parts.workloads:
            best = best_record(store, workload, Setting(TARGET, 1, "machine"))
            assert best is not None
            replay(state_of(workload), best[1])
            assert choice[workload.key] == best[1]
