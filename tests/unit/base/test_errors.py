from __future__ import annotations

import pickle
import re

import pytest

from tensorwright.base import (
    InternalError,
    ModelError,
    ScheduleError,
    TensorwrightError,
    UnsupportedError,
    UserError,
    errors,
)

KINDS = sorted(
    (
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, TensorwrightError)
    ),
    key=lambda kind: kind.__name__,
)


def example(kind: type[TensorwrightError], **changes: str) -> TensorwrightError:
    texts = {name: f"the {name}" for name in kind.field_names}
    return kind(**{**texts, **changes})


@pytest.mark.parametrize("kind", KINDS)
def test_survives_pickling(kind: type[TensorwrightError]) -> None:
    error = example(kind)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert copy == error
    assert str(copy) == str(error)
    assert hash(copy) == hash(error)


@pytest.mark.parametrize("kind", KINDS)
def test_equality_looks_at_every_field(kind: type[TensorwrightError]) -> None:
    for name in kind.field_names:
        assert example(kind) != example(kind, **{name: "another"})
    assert example(kind) != "the text"


@pytest.mark.parametrize("kind", KINDS)
def test_repr_rebuilds_it(kind: type[TensorwrightError]) -> None:
    assert eval(repr(example(kind)), vars(errors)) == example(kind)


def test_kinds_differ_even_with_equal_fields() -> None:
    assert example(ModelError) != example(InternalError)


def test_the_tree_at_the_top_is_true() -> None:
    assert errors.__doc__ is not None
    drawn = dict(re.findall(r"^\s+(\w+Error)\s+(\d+)\s", errors.__doc__, re.MULTILINE))
    # other modules derive kinds of their own (a competitor that failed is a MachineError)
    bases = {base for kind in KINDS for base in kind.__bases__}
    leaves = {kind.__name__: str(kind.exit_code) for kind in KINDS if kind not in bases}
    assert drawn == leaves
    assert len(set(drawn.values())) == len(drawn)
    users = [kind for kind in KINDS if issubclass(kind, UserError)]
    assert len(users) == len(KINDS) - 2


def test_fields_are_keyword_only() -> None:
    with pytest.raises(TypeError):
        ModelError("import", "file x", "bad")  # type: ignore[call-arg, misc]


def test_text_names_place_reason_and_remedy() -> None:
    error = ModelError(
        stage="import",
        where="file x.onnx",
        reason="it ends in the middle of a tensor",
        remedy="fetch it again",
    )
    assert str(error) == ("file x.onnx: it ends in the middle of a tensor\n  try: fetch it again")
    assert str(ModelError(stage="import", where="file x", reason="no")) == "file x: no"


def test_unsupported_names_the_operator_first() -> None:
    error = UnsupportedError(stage="import", where="node n", reason="no rule", operator="FooBar")
    assert str(error) == "operator FooBar: node n: no rule"


def test_schedule_error_shows_the_program() -> None:
    error = ScheduleError(
        step="vectorize(k)",
        where="loop k carries a reduction",
        reason="every k writes the same C[i]",
        remedy="vectorize(i), or split(k) and unroll the inner loop",
        program="for i in 0..128:\n  for k in 0..64:    <- here\n    C[i] += A[i, k]",
    )
    assert str(error) == (
        "vectorize(k): loop k carries a reduction\n"
        "  for i in 0..128:\n"
        "    for k in 0..64:    <- here\n"
        "      C[i] += A[i, k]\n"
        "  why: every k writes the same C[i]      "
        "try: vectorize(i), or split(k) and unroll the inner loop"
    )
