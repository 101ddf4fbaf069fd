"""Kernels from the cache: the same ones, and nothing is done again."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.targets import native_target
from tests.unit.tuning.helpers import matmul, padded_convolution, workload_of

import tensorwright
from tensorwright import artifacts
from tensorwright.artifacts.cached_build import SOURCES, compiler_digest
from tensorwright.base import cpu_target, override
from tensorwright.graph import Workload
from tensorwright.loop import pack
from tensorwright.runtime import default_cache
from tensorwright.schedule import parse_trace, state_of
from tensorwright.tuning.space import space_of

TARGET = native_target()


@pytest.fixture(autouse=True)
def home(tmp_path: Path) -> Iterator[None]:
    with override(home=tmp_path, kernel_cache=True):
        yield


def convolution() -> Workload:
    output = padded_convolution((1, 14, 14, 32), 32)
    return workload_of(output, key="convolution", constants=frozenset({"w"}))


def without_time(kernel: artifacts.Kernel) -> artifacts.Kernel:
    return dataclasses.replace(kernel, seconds=0.0)


def test_a_hit_replays_lowers_and_emits_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = matmul()
    trace = parse_trace("split(relu, i, [8])")
    first = artifacts.build_cached(workload, trace, TARGET)
    assert without_time(first) == without_time(artifacts.build_kernel(workload, trace, TARGET))

    def never(*_: object) -> artifacts.Kernel:
        raise AssertionError("it was built again")

    monkeypatch.setattr(artifacts.cached_build, "build_kernel", never)
    again = artifacts.build_cached(workload, trace, TARGET)
    assert without_time(again) == without_time(first)
    assert default_cache().counts["hits"] == 1
    with pytest.raises(AssertionError):
        artifacts.build_cached(workload, (), TARGET)


def test_a_kernel_that_was_built_elsewhere_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = matmul()
    trace = parse_trace("split(relu, i, [8])")
    kernel = artifacts.build_kernel(workload, trace, TARGET)
    with override(kernel_cache=False):
        artifacts.keep_kernel(workload, trace, TARGET, kernel)
    assert default_cache().counts["hits"] == 0
    artifacts.keep_kernel(workload, trace, TARGET, kernel)
    monkeypatch.setattr(artifacts.cached_build, "build_kernel", None)
    assert without_time(artifacts.build_cached(workload, trace, TARGET)) == without_time(kernel)


def test_packings_are_read_back() -> None:
    workload = convolution()
    packed = derived = 0
    for sketch in space_of(state_of(workload), TARGET).sketches:
        trace = sketch.bound(sketch.defaults)
        built = artifacts.build_cached(workload, trace, TARGET)
        again = artifacts.build_cached(workload, trace, TARGET)
        assert again.object_code == built.object_code
        for one, other in zip(built.parameters, again.parameters, strict=True):
            assert (one.name, one.role, one.buffer) == (other.name, other.role, other.buffer)
            if one.packing is None:
                assert other.packing is None
                continue
            assert other.packing is not None
            packed += 1
            derived += one.packing.derivation is not None
            shape = shape_of(workload, one.name)
            weights = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
            np.testing.assert_array_equal(pack(weights, one.packing), pack(weights, other.packing))
    assert packed > derived > 0


def shape_of(workload: Workload, name: str) -> tuple[int, ...]:
    (tensor,) = (each for each in workload.inputs if each.name == name)
    return tuple(int(str(extent)) for extent in tensor.shape)


def test_an_entry_that_was_read_runs() -> None:
    workload = matmul()
    artifacts.build_cached(workload, (), TARGET)
    kernel = artifacts.build_cached(workload, (), TARGET)
    a, b = (
        np.random.default_rng(n).standard_normal(shape_of(workload, tensor.name)).astype(np.float32)
        for n, tensor in enumerate(workload.inputs)
    )
    found = artifacts.assemble_workload(workload, kernel, TARGET, None)(a, b)
    np.testing.assert_allclose(found, np.maximum(a @ b, 0), atol=1e-4)


def test_the_key_holds_all_that_code_depends_on(monkeypatch: pytest.MonkeyPatch) -> None:
    workload, other = matmul(), convolution()
    trace = parse_trace("split(relu, i, [8])")
    keys = {
        artifacts.cached_build._key_of(workload, trace, TARGET),
        artifacts.cached_build._key_of(workload, (), TARGET),
        artifacts.cached_build._key_of(other, trace, TARGET),
        artifacts.cached_build._key_of(workload, trace, cpu_target("aarch64-neon")),
    }
    monkeypatch.setattr(artifacts.cached_build, "compiler_digest", lambda: "another compiler")
    keys.add(artifacts.cached_build._key_of(workload, trace, TARGET))
    assert len(keys) == 5
    assert compiler_digest() == compiler_digest()


_IMPORTED = re.compile(r"^from tensorwright(?:\.| import )(\w+)", re.MULTILINE)


def test_the_digest_covers_all_that_turns_a_trace_into_code() -> None:
    root = Path(tensorwright.__file__).parent
    for folder in set(SOURCES) - {"artifacts"}:  # of it, only assembly imports other folders
        for path in (root / folder).rglob("*.py"):
            imported = _IMPORTED.findall(path.read_text())
            assert set(imported) <= set(SOURCES), path
    kernel = (root / "artifacts" / "kernel.py").read_text()
    assert set(_IMPORTED.findall(kernel)) <= {
        *SOURCES,
        "runtime",  # loads code, and says how a plan calls it
    }
