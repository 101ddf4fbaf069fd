"""The operator suite in our kernels and in PyTorch: answers, copies, and failures as values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.lab.zoo.operator_cases import small_case
from tests.targets import native_target

from tensorwright.base import UsageError
from tensorwright.records import MemoryStore, Setting
from tensorwright.schedule import format_trace
from tensorwright.tuning.selection import Chooser
from tensorwright_lab import zoo
from tensorwright_lab.comparison import (
    OpPlan,
    choose_copies,
    compare_case,
    needed_flops,
    require_peer,
)
from tensorwright_lab.comparison import operators as op_compare
from tensorwright_lab.competitors import our_operators as op_ours
from tensorwright_lab.competitors import torch_eager_operators as op_torch

FAMILIES = tuple(dict.fromkeys(case.family for case in zoo.operator_cases()))
TARGET = native_target()


def default_trace(program: zoo.OperatorProgram) -> str:
    return format_trace(Chooser(Setting(TARGET, 1), MemoryStore()).choose(program.workload).trace)


def assert_close(found: np.ndarray, answer: np.ndarray) -> None:
    np.testing.assert_allclose(found, answer, atol=1e-5 * float(abs(answer).max()))


@pytest.mark.parametrize("family", FAMILIES)
def test_copies_of_our_kernel_each_give_their_own_answer(family: str) -> None:
    case = small_case(f"{family}.1", batch=16)
    program = zoo.operator_program(case)
    run = op_ours.make(
        {},
        1,
        case=case.to_json(),
        trace=default_trace(program),
        target=TARGET.name,
        copies=3,
        seed=5,
    )
    for copy, found in enumerate(run()):
        answer = zoo.evaluate_program(program, zoo.draw_operands(program, copy, seed=5))
        assert_close(found.reshape(answer.shape), answer)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_variant_of_pytorch_gives_our_answer(family: str) -> None:
    case = small_case(f"{family}.1")
    program = zoo.operator_program(case)
    answers = [zoo.evaluate_program(program, zoo.draw_operands(program, copy)) for copy in range(2)]
    for form in op_compare.torch_forms(program):
        run = op_torch.make({}, 1, case=case.to_json(), form=form, copies=2)
        restore = program.form(form.partition("/")[0]).output.undo
        for found, answer in zip(run(), answers, strict=True):
            assert_close(restore(found), answer)


def test_pytorch_is_given_both_memory_formats() -> None:
    variants = {
        name: op_compare.torch_forms(zoo.operator_program(zoo.find_cases([name], 1)[0]))
        for name in ("C2D.1", "CAP.1", "GMM.1", "NRM.1")
    }
    assert variants == {
        "C2D.1": ("channels_first/dense", "channels_first/last"),
        "CAP.1": ("images/dense", "images/last", "volumes/dense", "volumes/last"),
        "GMM.1": ("matmul/batched", "matmul/single"),
        "NRM.1": ("norm", "squares", "product"),
    }


def test_short_cases_get_as_many_copies_as_last_a_millisecond() -> None:
    peak, bandwidth = 100e9, 10e9
    (small,) = zoo.find_cases(["GMM.1"], 1)
    program = zoo.operator_program(small)
    assert choose_copies(program, peak, bandwidth) == 24  # 42 us of arithmetic each
    (norm,) = zoo.find_cases(["NRM.1"], 1)
    assert choose_copies(zoo.operator_program(norm), peak, bandwidth) == 39  # 26 us of reading
    (small,) = zoo.find_cases(["DEP.3"], 1)
    assert choose_copies(zoo.operator_program(small), 1e15, 1e15) == 256
    (large,) = zoo.find_cases(["C3D.1"], 1)
    assert choose_copies(zoo.operator_program(large), peak, bandwidth) == 1


def test_zeros_between_inputs_are_no_work() -> None:
    (case,) = zoo.find_cases(["T2D.1"], 1)
    assert needed_flops(zoo.operator_program(case)) == pytest.approx(case.gflop * 1e9 / 4, rel=1e-3)


def test_ours_and_two_peers_take_turns() -> None:
    program = zoo.operator_program(small_case("C1D.1"))
    plan = OpPlan(TARGET, 1, ("onnxruntime", "pytorch"), rounds=1, limit_s=2.0)
    times = compare_case(program, default_trace(program), 2, plan)
    assert [(time.peer, time.form) for time in times] == [
        ("ours", ""),
        ("onnxruntime", "channels_first"),
        ("onnxruntime", "channels_last"),
        ("pytorch", "channels_first/dense"),
        ("pytorch", "channels_first/last"),
    ]
    for time in times:
        assert time.failure == ""
        assert time.error is not None
        assert time.error < 1e-5
        assert time.time_s is not None
        assert time.low_s is not None
        assert 0 < time.low_s <= time.time_s < 1


def test_a_wrong_answer_and_a_refusal_are_failures_of_that_form() -> None:
    program = zoo.operator_program(small_case("GMM.1"))
    strange = replace(program, forms=(replace(program.forms[0], build=_double),))
    plan = OpPlan(TARGET, 1, ("onnxruntime",), rounds=1, limit_s=2.0)
    ours, theirs = compare_case(strange, "no trace", 1, plan)
    assert ours.failure.startswith("refused: ScheduleError") or "UsageError" in ours.failure
    assert theirs.failure.startswith("wrong answer: off by")
    assert ours.time_s is None
    assert theirs.time_s is None


def _double(builder, names):  # type: ignore[no-untyped-def]
    product = builder.add("matmul", *names)
    return builder.add("add", product, product)


def test_an_unknown_peer_is_refused() -> None:
    with pytest.raises(UsageError, match="no such kind"):
        require_peer("nobody")
