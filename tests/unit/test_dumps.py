"""Every stage of a compilation is written where the knob `dump` asks for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tests.targets import native_target

import tensorwright
from tensorwright.base import DUMP_STAGES, override
from tensorwright.graph import Graph, GraphBuilder
from tensorwright.records import MemoryStore


def convolution() -> Graph:
    b = GraphBuilder("convolution")
    x = b.input("x", (1, 4, 9, 9))
    w = b.constant(np.ones((8, 4, 3, 3), np.float32), "w")
    return b.finish([b.add("relu", b.add("conv", b.add("identity", x), w, pads=(1, 1, 1, 1)))])


def dumps(folder: Path) -> dict[str, str]:
    how = {"default_schedule": "rule"}  # a model that prices layouts has more to say
    with override(dump="all", dump_dir=folder, verify=True, **how), MemoryStore() as store:
        tensorwright.compile(convolution(), target=native_target(), threads=1, records=store)
    return {path.name: path.read_text() for path in sorted(folder.iterdir())}


def test_every_stage_of_a_convolution(tmp_path: Path) -> None:
    files = dumps(tmp_path / "one")
    assert list(files) == [
        "001-graph-imported.txt",
        "002-graph-1-remove_identities.txt",
        "003-rules-simplify.txt",
        "004-graph-layouts.txt",
        "005-layouts.txt",
        "006-partition.txt",
        "007-schedule-conv2d_relu.txt",
        "008-loop-conv2d_relu-lowered.txt",
        "009-loop-conv2d_relu-simplify.txt",
        "010-loop-conv2d_relu-hoist.txt",
        "011-loop-conv2d_relu-unroll_guarded.txt",
        "012-loop-conv2d_relu-version.txt",
        "013-loop-conv2d_relu-partition.txt",
        "014-loop-conv2d_relu-breakpoints.txt",
        "015-loop-conv2d_relu-hoist.txt",
        "016-loop-conv2d_relu-expand_calls.txt",
        "017-loop-conv2d_relu-widen.txt",
        "018-loop-conv2d_relu-promote_accumulators.txt",
        "019-loop-conv2d_relu-order_tiles.txt",
        "020-source-conv2d_relu.ll",
        "021-asm-conv2d_relu.s",
    ]
    assert {name.split(".")[0].split("-")[1] for name in files} == set(DUMP_STAGES)
    assert dumps(tmp_path / "two") == files
