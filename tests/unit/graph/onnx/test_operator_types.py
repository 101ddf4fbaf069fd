"""Every operator of ONNX with every type that its schema allows, against ONNX Runtime.

Where ONNX Runtime has no kernel for a type, f16 and bf16 are compared with its f32, and the others
with the reference evaluator of the onnx package, if that agrees with it where it has a kernel.
"""

from __future__ import annotations

import functools
import itertools
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, defs, helper
from onnx.reference import ReferenceEvaluator
from tests.unit.graph.onnx import operator_cases
from tests.unit.graph.onnx.operator_cases import OF_ONNXRUNTIME, ONNX_TYPES, RECIPES, Case, Recipe

import tensorwright
from tensorwright.base import DType, TensorwrightError
from tensorwright.graph import interpret, simplify, verify
from tensorwright.graph.imports import load_onnx
from tensorwright.graph.imports.com_microsoft import COM_MICROSOFT
from tensorwright.graph.imports.converters import AT_IMPORT, CONVERTERS
from tensorwright.ops import Array

pytestmark = [
    pytest.mark.usefixtures("by_rule"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]

ALL = (*RECIPES, *OF_ONNXRUNTIME)
TOLERANCES = {DType.F64: 2e-6, DType.F32: 2e-5, DType.F16: 4e-3, DType.BF16: 3e-2}

LISTED: Mapping[str, Sequence[str]] = {
    "ONNX Runtime computes in f32, and what does not fit into integers becomes anything": (
        "Shrink: T=u32",
        "Shrink: T=u64",
        "Shrink: T=i32",
        "Shrink: T=i64",
        "Shrink: T=f64",
    ),
    "the sign of NaN is NaN, as ONNX Runtime has it for f32": ("Sign: T=f16", "Sign: T=bf16"),
    "the mean of nothing is NaN, as in NumPy and PyTorch; ONNX Runtime gives 0": (
        "ReduceMean of nothing: usual",
        "ReduceMean of nothing: T=f16",
        "ReduceMean of nothing: T=bf16",
        "ReduceMean of nothing: T=f64",
    ),
    "a bound that is left out bounds nothing, as in PyTorch; ONNX Runtime makes inf finite": (
        "Clip below: usual",
        "Clip below: T=f16",
        "Clip below: T=f64",
        "Clip above: usual",
        "Clip above: T=f16",
        "Clip above: T=f64",
    ),
    "the standard's function multiplies two types; ONNX Runtime refuses it": (
        "Attention: T1=bf16",
        "Attention: T1=f16",
        "Attention: T1=f64",
        "Attention: T2=bf16",
        "Attention: T2=f16",
        "Attention: T2=f64",
    ),
    "the standard's function compares i64 and i32; ONNX Runtime refuses it": (
        "CenterCropPad: Tind=i32",
        "CenterCropPad: T=i32 Tind=i32",
    ),
    "the reference interpolates integers in integers": tuple(
        f"GridSample: T1={sign}{bits}" for sign in "iu" for bits in (8, 16, 32, 64)
    ),
    "the reference rounds; we drop fractions, as ONNX Runtime does for u8, i8 and i32": tuple(
        f"Resize linear: T1={dtype}" for dtype in ("u16", "u32", "u64", "i16", "i64")
    ),
    "nothing lies between two booleans": ("Resize linear: T1=bool",),
    "ONNX Runtime reads exponentials from a table of integers": (
        "com.microsoft.QLinearSoftmax: usual",
        "com.microsoft.QLinearSoftmax: T=i8",
    ),
}
REFUSED = ("Attention", "CenterCropPad", "Resize linear: T1=bool")
MOST_LISTED = 41


def by_onnxruntime(model: ModelProto, inputs: Mapping[str, Array]) -> list[Array] | None:
    """The outputs, or None where it has no kernel; it gives no array of bf16: they become f32."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    values = {}
    for name, array in inputs.items():
        if array.dtype == DType.BF16.numpy:
            make = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type
            values[name] = make(array.view(np.uint16), ONNX_TYPES[DType.BF16])
        else:
            values[name] = onnxruntime.OrtValue.ortvalue_from_numpy(array)
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options)
        narrow = [out.name for out in session.get_outputs() if out.type == "tensor(bfloat16)"]
        if narrow:
            session = onnxruntime.InferenceSession(
                _with_casts(model, narrow).SerializeToString(), options
            )
        return [value.numpy() for value in session.run_with_ort_values(None, values)]
    except Exception:  # noqa: BLE001 - its errors have no common base
        return None


def _with_casts(model: ModelProto, names: Sequence[str]) -> ModelProto:
    wide = ModelProto()
    wide.CopyFrom(model)
    for output in wide.graph.output:
        if output.name in names:
            cast = helper.make_node("Cast", [output.name], [f"{output.name}_wide"], to=1)
            wide.graph.node.append(cast)
            output.name += "_wide"
    return wide


def by_reference(model: ModelProto, inputs: Mapping[str, Array]) -> list[Array] | None:
    """The outputs by the evaluator of the onnx package, or None where it has none."""
    try:
        return [np.asarray(array) for array in ReferenceEvaluator(model).run(None, dict(inputs))]
    except Exception:  # noqa: BLE001 - NumPy's errors of any kind
        return None


@functools.cache
def is_reference_right(recipe: Recipe) -> bool:
    """Whether it agrees with ONNX Runtime for the usual types."""
    usual = operator_cases.cases_of(recipe)[0].as_usual()
    model, inputs = operator_cases.model_of(usual, operator_cases.arrays_of(usual))
    left, right = by_onnxruntime(model, inputs), by_reference(model, inputs)
    return left is None or (right is not None and not difference(right, left))


def expected(case: Case, arrays: Sequence[Array | None]) -> tuple[str, list[Array]] | None:
    """What the outputs should be, and who says so."""
    model, inputs = operator_cases.model_of(case, arrays)
    found = by_onnxruntime(model, inputs)
    if found is not None:
        return "ONNX Runtime", found
    wide = case.widened()
    if wide != case:
        widened = [a.astype(np.float32) if is_narrow(a) else a for a in arrays]
        found = by_onnxruntime(*operator_cases.model_of(wide, widened))
        if found is not None:
            return "ONNX Runtime in f32", found
    found = by_reference(model, inputs) if is_reference_right(case.recipe) else None
    return None if found is None else ("the reference", found)


def is_narrow(array: Array | None) -> bool:
    return array is not None and array.dtype in (DType.BF16.numpy, np.float16)


def difference(found: Sequence[Array], wanted: Sequence[Array]) -> str:
    """What differs, in words; "" for nothing. Types are those of `found`."""
    for left, other in zip(found, wanted, strict=True):
        if left.shape != other.shape:
            return f"shape {left.shape}, not {other.shape}"
        dtype = DType.from_numpy(left.dtype)
        right = other.astype(left.dtype)
        if dtype.is_float:
            numbers = left.astype(np.float64), right.astype(np.float64)
            most = TOLERANCES[dtype]
            same = np.isclose(*numbers, rtol=most, atol=most, equal_nan=True)
        else:
            same = left == right
        if not same.all():
            at = tuple(np.argwhere(~same)[0])
            return f"{left[at]}, not {right[at]}, at {[*map(int, at)]}"
    return ""


def answer(case: Case, arrays: Sequence[Array | None]) -> list[Array]:
    """Our outputs; their types are those of the schema."""
    model, inputs = operator_cases.model_of(case, arrays)
    graph = verify(simplify(load_onnx(model)))
    results = interpret(graph, inputs)
    for name, dtype in zip(graph.outputs, operator_cases.output_types(case), strict=True):
        assert dtype in (None, DType.from_numpy(results[name].dtype))
    return [results[name] for name in graph.outputs]


def differences(recipe: Recipe) -> Iterator[tuple[Case, str]]:
    """The cases of a recipe that nobody answers as we do, and in what they differ."""
    for case in operator_cases.cases_of(recipe):
        arrays = operator_cases.arrays_of(case)
        try:
            found = answer(case, arrays)
        except TensorwrightError as error:
            yield case, f"refused: {error.reason}"
            continue
        wanted = expected(case, arrays)
        COUNTS[wanted[0] if wanted else "nobody"] += 1
        if wanted and (text := difference(found, wanted[1])):
            yield case, f"{text} by {wanted[0]}"


COUNTS: Counter[str] = Counter()
OPERATORS = sorted({str(each).split()[0] for each in ALL})
_LISTED_CASES = [case for cases in LISTED.values() for case in cases]


@pytest.mark.parametrize("operator", OPERATORS)
def test_an_operator_of_each_type(operator: str) -> None:
    """A case that is listed as refused is refused; others that are listed may also agree."""
    of_it = [each for each in ALL if str(each).split()[0] == operator]
    found = {str(case): text for each in of_it for case, text in differences(each)}
    assert {case: text for case, text in found.items() if case not in _LISTED_CASES} == {}
    of_it_refused = {case for case, text in found.items() if text.startswith("refused")}
    listed = {each for each in _LISTED_CASES if re.split("[ :]", each)[0] == operator}
    assert of_it_refused == {each for each in listed if each.startswith(REFUSED)}


def test_the_list_does_not_grow_and_nearly_all_have_somebody_to_compare_with(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert len(_LISTED_CASES) == len(set(_LISTED_CASES)) == MOST_LISTED
    cases = [case for each in ALL for case in operator_cases.cases_of(each)]
    assert {str(case) for case in cases} >= set(_LISTED_CASES)
    with capsys.disabled():
        print(f"\n{len(OPERATORS)} operators, {len(cases)} cases, {MOST_LISTED} listed; ", end="")
        print(f"compared with {dict(COUNTS)}")
    assert COUNTS["nobody"] <= len(cases) / 50


def test_each_operator_has_a_recipe() -> None:
    functions = {
        schema.name
        for schema in defs.get_all_schemas()
        if not schema.domain and (schema.has_function or schema.has_context_dependent_function)
    }
    functions -= {"Bernoulli"}  # random numbers
    every = {*CONVERTERS, *AT_IMPORT, *COM_MICROSOFT, *functions} - {"ReverseSequence"}
    own = {each.operator for each in ALL} - {"ReverseSequence"}
    assert own == {each for each in every if "Sequence" not in each}  # of tensors, not of sequences


CHUNKS = 8


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_compiled(chunk: int) -> None:
    """One case of each recipe: many nodes in one network."""
    chosen = []
    for number, recipe in enumerate(ALL[chunk::CHUNKS]):
        cases = operator_cases.cases_of(recipe)
        case = cases[zlib.crc32(str(recipe).encode()) % len(cases)]
        if recipe.opset == operator_cases.OPSET and str(case) not in _LISTED_CASES:
            arrays = operator_cases.arrays_of(case)
            chosen.append(operator_cases.model_of(case, arrays, f"n{number}_"))
    model = chosen[0][0]
    for other, _ in chosen[1:]:
        for part in ("node", "input", "output", "initializer"):
            getattr(model.graph, part).extend(getattr(other.graph, part))
    inputs = dict(itertools.chain.from_iterable(given.items() for _, given in chosen))
    wanted = interpret(simplify(load_onnx(model)), inputs)
    found = tensorwright.compile(model, threads=1).run(inputs)
    differing = {
        name: text for name, array in wanted.items() if (text := difference([found[name]], [array]))
    }
    assert differing == {}
