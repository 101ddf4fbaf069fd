"""The templates of the package compute what their workloads mean: by rule and sampled, compiled."""

from __future__ import annotations

import pytest
from tests.draws import random_source
from tests.targets import native_target
from tests.unit.schedule.convolutions import channels_last
from tests.unit.tuning.compiled import Case, check_schedule
from tests.unit.tuning.space.defaults.test_winograd_rule import case_of
from tests.unit.tuning.space.test_derive_schedules import cases

from tensorwright.base import DType
from tensorwright.schedule import format_trace, state_of
from tensorwright.tuning.space import Sketch
from tensorwright.tuning.space.templates import template_sketches

pytestmark = pytest.mark.target

TARGET = native_target()
NAMES = (
    "matmul_odd", "matmul_of_inputs", "matmul_wide", "matmul_thin", "matmul_batched",
    "matmul_prime", "gemm_transposed", "conv1d", "conv2d", "conv2d_strided", "conv2d_dilated",
    "conv2d_nhwc", "conv2d_nchw16c", "conv3d", "conv_grouped", "grouped_nhwc", "conv_transpose",
    "conv_transpose_joined", "conv_depthwise", "max_pool", "average_pool", "softmax", "layer_norm",
    "max_of_rows", "mean_of_columns",
)  # fmt: skip
WINOGRAD = "conv2d_of_many_channels"


def cases_of(name: str) -> tuple[Case, ...]:
    return (
        (case_of(channels_last((9, 11), 32, 32, DType.F32)),) if name == WINOGRAD else cases(name)
    )


@pytest.mark.parametrize("name", [*NAMES, WINOGRAD])
@pytest.mark.drawn
def test_samples_are_right(name: str) -> None:
    """Of every template the schedule by rule, and one drawn from a structure drawn."""
    source = random_source(name)
    for case in cases_of(name):
        families: dict[str, list[Sketch]] = {}
        for sketch in template_sketches(state_of(case[0]), TARGET):
            families.setdefault(sketch.family, []).append(sketch)
        assert families, f"no template speaks of {case[0].name}"
        for sketches in families.values():
            first, drawn = sketches[0], source.choice(sketches)
            check_schedule(case, format_trace(first.bound(first.defaults)), TARGET)
            check_schedule(case, format_trace(drawn.bound(drawn.sample(source))), TARGET)


def test_convolutions_have_competing_templates() -> None:
    (case,) = cases_of(WINOGRAD)
    found = {sketch.family for sketch in template_sketches(state_of(case[0]), TARGET)}
    assert found == {"direct", "spatial_pack", "im2col", "winograd"}


def test_without_other_algorithms_there_is_no_winograd() -> None:
    state = state_of(cases_of(WINOGRAD)[0][0])
    found = {sketch.family for sketch in template_sketches(state, TARGET, algorithms=False)}
    assert found == {"direct", "spatial_pack", "im2col"}
