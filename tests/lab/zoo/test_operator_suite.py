"""The operator suite: its facts, and that every form of a case means what our expression means."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from tests.lab.zoo.operator_cases import shrink

from tensorwright.base import UsageError
from tensorwright.graph import interpret
from tensorwright.graph.onnx_export import to_onnx
from tensorwright.ops import work
from tensorwright_lab import zoo

CASES = (*zoo.operator_cases(1), *zoo.operator_cases(16)[::4])


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_form_gives_the_answer_of_the_tensor_expression(case: zoo.OperatorCase) -> None:
    program = zoo.operator_program(shrink(case))
    expected = [
        zoo.evaluate_program(program, zoo.draw_operands(program, copy)) for copy in range(2)
    ]
    assert not np.array_equal(expected[0], expected[1])
    for form in program.forms:
        model = to_onnx(zoo.form_graph(program, form, copies=2))
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        outputs = session.run(None, zoo.form_inputs(program, form, copies=2))
        for found, answer in zip(outputs, expected, strict=True):
            restored = form.output.undo(found)
            assert restored.shape == answer.shape
            np.testing.assert_allclose(restored, answer, atol=1e-5 * abs(answer).max())


def test_a_form_as_a_graph_of_ours() -> None:
    (case,) = zoo.find_cases(["CAP.1"], batch=1)
    program = zoo.operator_program(shrink(case))
    form = program.form("volumes")
    (found,) = interpret(zoo.form_graph(program, form), zoo.form_inputs(program, form)).values()
    answer = zoo.evaluate_program(program, zoo.draw_operands(program))
    np.testing.assert_allclose(form.output.undo(found), answer, atol=1e-5 * abs(answer).max())


@pytest.mark.parametrize("case", zoo.operator_cases(1), ids=str)
def test_the_facts_agree_with_the_expressions(case: zoo.OperatorCase) -> None:
    program = zoo.operator_program(case)
    operations = work(program.workload.outputs) / 1e9
    zeros = 4 if case.family == "T2D" else 1  # kernel 4, stride 2: a quarter meets an input
    assert operations == pytest.approx(case.gflop / zeros, rel=0.05, abs=1e-6)
    assert program.constants == frozenset(
        name for name, _ in program.operands if name not in ("x", "a", "b", "q", "k")
    )
    assert len(program.workload.constants) == len(program.constants)


def test_the_suite_has_ten_operators_and_two_subgraphs_of_four_shapes() -> None:
    for batch in (1, 16):
        cases = zoo.operator_cases(batch)
        assert len([case for case in cases if not case.is_subgraph]) == 40
        assert len([case for case in cases if case.is_subgraph]) == 8
    assert (
        len({zoo.operator_program(case).workload.key for case in zoo.operator_cases(1)}) == 48 - 1
    )
    # C2D.2 and DIL.2 are one: a kernel of one element has no dilation


def test_cases_are_found_by_family_and_name() -> None:
    assert [str(case) for case in zoo.find_cases(["GMM.2", "NRM"], batch=1)] == [
        "GMM.2 (1, 512, 32, 512)",
        "NRM.1 (1, 256, 256)",
        "NRM.2 (1, 512, 512)",
        "NRM.3 (1, 1024, 1024)",
        "NRM.4 (1, 4096, 1024)",
    ]
    assert zoo.find_cases([]) == zoo.operator_cases()
    with pytest.raises(UsageError) as caught:
        zoo.find_cases(["C4D"])
    assert str(caught.value).startswith("case 'C4D': the suite has no such case")


def test_a_case_goes_through_json() -> None:
    for case in zoo.operator_cases(16):
        assert zoo.OperatorCase.from_json(case.to_json()) == case


def test_transposed_convolution_keeps_its_channels_last_in_every_stage() -> None:
    (case,) = zoo.find_cases(["T2D.1"], batch=1)
    stages = zoo.operator_program(case).workload.stages
    assert [stage.axes[-1].name for stage in stages] == ["c", "oc", "oc"]


def test_an_arrangement_can_be_undone() -> None:
    shape = (2, 5, 3, 4)
    array = np.arange(120, dtype=np.float32).reshape(shape)
    moved = zoo.Arrangement.moved(shape, (0, 3, 1, 2))
    assert moved.apply(array).shape == (2, 4, 5, 3)
    assert moved.apply(array)[1, 2, 3, 1] == array[1, 3, 1, 2]
    assert moved.layout.order == (0, 2, 3, 1)
    merged = zoo.Arrangement(shape, shape, (3, 0, 1, 2), (8, 15))
    for each in (moved, merged, zoo.Arrangement.same(shape, (10, 12))):
        np.testing.assert_array_equal(each.undo(each.apply(array)), array)
    assert zoo.Arrangement.same(shape).layout.is_plain
