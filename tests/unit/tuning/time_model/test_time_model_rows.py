"""The rows of the time model: what the trees see of statements, machines and programs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tensorwright.base import CPU_TARGETS, CpuTarget, cpu_target
from tensorwright.machine import machine_of, nominal_rates
from tensorwright.tuning.features import CACHE_BYTES, FEATURE_NAMES
from tensorwright.tuning.models import RooflineModel
from tensorwright.tuning.time_model import ROW_NAMES, program_scores, rows_of

AVX2 = cpu_target("x86-64-avx2")
ODD = replace(
    cpu_target("aarch64-neon"), vector_bytes=128, vector_registers=8, l2_bytes=0, l3_bytes=0
)


def features_of(*statements: dict[str, float]) -> np.ndarray:
    """One program: features of each statement, given without their logarithm."""
    features = np.zeros((1, len(statements), len(FEATURE_NAMES)), np.float32)
    for n, counts in enumerate(statements):
        for name, count in counts.items():
            features[0, n, FEATURE_NAMES.index(name)] = np.log2(count + 1)
    return features


PRODUCT = {"float_mad": 1e8, "vector_len": 8, "auto_unroll_max_step": 8}
COPY = {"buffer0_unique_bytes": 64e6, **{f"lines_beyond_{size}": 1e6 for size in CACHE_BYTES}}


def column(rows: np.ndarray, name: str) -> np.ndarray:
    return rows[:, ROW_NAMES.index(name)]


def test_a_row_has_the_features_and_then_machine_and_program() -> None:
    features = features_of(PRODUCT, COPY)
    found = rows_of(features, machine_of(AVX2, 2, is_cold=True))
    assert len(set(ROW_NAMES)) == len(ROW_NAMES)
    assert found.rows.shape == (2, len(ROW_NAMES))
    assert found.rows.dtype == found.base.dtype == np.float32
    assert (found.rows[:, : len(FEATURE_NAMES)] == features[0]).all()
    assert column(found.rows, "vector_bytes").tolist() == [5.0, 5.0]
    assert column(found.rows, "is_cold").tolist() == [1.0, 1.0]
    assert column(found.rows, "program_statements").tolist() == [1.0, 1.0]
    assert column(found.rows, "share_flops") == pytest.approx([0.0, -20.0])
    assert column(found.rows, "share_bytes")[1] == pytest.approx(0.0)
    assert column(found.rows, "roofline") == pytest.approx(found.base[0])
    assert np.exp2(column(found.rows, "share_seconds")).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("more", ["", "+dotprod+fullfp16+i8mm"])
def test_an_arm_processor_stands_in_the_same_columns(more: str) -> None:
    neon, features = cpu_target(f"aarch64-neon{more}"), features_of(PRODUCT)
    found, wide = (rows_of(features, machine_of(each, 4)) for each in (neon, AVX2))
    columns = ("vector_bytes", "vector_registers", "has_masks", "threads", "is_cold")
    assert [float(column(found.rows, name)[0]) for name in columns] == [4.0, 5.0, 0.0, 2.0, 0.0]
    # vectors of half the size, and as many of them in a cycle
    slower = column(found.rows, "roofline") - column(wide.rows, "roofline")
    assert slower == pytest.approx([1.0])


def test_without_trees_the_roofline_predicts() -> None:
    machine = machine_of(AVX2, 1)
    features = np.concatenate([features_of(PRODUCT, COPY), features_of(COPY, COPY)])
    found = rows_of(features, machine)
    scores = program_scores(found.base, np.zeros(len(found.rows)), found.floor)
    by_roofline = RooflineModel(machine).predict(features)
    assert np.diff(scores) == pytest.approx(-np.diff(by_roofline) / np.log(2), rel=1e-5)
    assert scores[0] == pytest.approx(np.log2(np.exp2(found.base[0].astype(float)).sum()))
    assert 1e8 * 2 / 112e9 < 2.0 ** scores[0] < 0.1


@pytest.mark.parametrize("jobs", [0, 2])
def test_no_trees_predict_more_than_the_peak(jobs: int) -> None:
    """1e8 multiply-adds; the copy has none, and may take as little as trees say."""
    machine = machine_of(AVX2, 2)
    found = rows_of(features_of(PRODUCT | {"parallel_prod": jobs}, COPY), machine)
    flops_per_s = max(1, jobs) * machine.rates.flops_per_s
    least = 2.0 ** program_scores(found.base, np.full(2, -30.0), found.floor)[0]
    assert 0.7 < least * flops_per_s / 2e8 < 1.0
    assert found.floor[0, 1] == -np.inf


@pytest.mark.parametrize("target", [*CPU_TARGETS, ODD], ids=lambda t: f"{t.name}-{t.vector_bytes}")
@pytest.mark.parametrize("threads", [1, 3])
def test_rows_are_finite_on_any_machine(target: CpuTarget, threads: int) -> None:
    source = np.random.default_rng(threads)
    features = source.uniform(0, 44, (5, 3, len(FEATURE_NAMES))).astype(np.float32)
    features[0] = 0.0
    found = rows_of(features, machine_of(target, threads))
    assert np.isfinite(found.rows).all()
    assert np.isfinite(program_scores(found.base, np.zeros(15), found.floor)).all()
    assert (found.floor < found.base).all()  # without trees it changes nothing


def test_a_machine_of_half_the_speed_takes_twice_as_long() -> None:
    fast = machine_of(AVX2, 1)
    slow = machine_of(AVX2, 1, nominal_rates(AVX2).stepped(-1, -1))
    for features in (features_of(PRODUCT), features_of(COPY)):
        difference = rows_of(features, slow).base - rows_of(features, fast).base
        assert float(difference[0, 0]) == pytest.approx(1.0, abs=0.1)
