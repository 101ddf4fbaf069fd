"""Generating: the tokens of a whole computation, sampling as its definitions say, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from tensorwright.base import InputError, UsageError
from tensorwright.compiling import compile as compile_model
from tensorwright.runtime import Executable, Sampling, generate

VOCABULARY, WIDTH, PLACES = 23, 6, 64
_SOURCE = np.random.default_rng(5)
WEIGHTS = {
    name: _SOURCE.standard_normal(shape).astype(np.float32)
    for name, shape in {
        "table": (VOCABULARY, WIDTH),
        "places": (PLACES, WIDTH),
        "head": (WIDTH, VOCABULARY),
    }.items()
}
PROMPT = [3, 1, 4, 1, 5]


def decoder(*, further: str = "") -> ModelProto:
    """Logits of the sum of all tokens so far, each with its place; the rows are the cache."""
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["tokens"]),
        helper.make_node("Gather", ["places", "position_ids"], ["placed"]),
        helper.make_node("Add", ["tokens", "placed"], ["rows"]),
        helper.make_node("Concat", ["past_key_values.0.key", "rows"], ["present.0.key"], axis=1),
        helper.make_node("Unsqueeze", ["attention_mask", "last"], ["column"]),
        helper.make_node("Cast", ["column"], ["factors"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["present.0.key", "factors"], ["masked"]),
        helper.make_node("ReduceSum", ["masked", "one"], ["sum"], keepdims=1),
        helper.make_node("MatMul", ["sum", "head"], ["logits"]),
    ]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ("batch", extent))
        for name, extent in (
            ("input_ids", "seq"),
            ("attention_mask", "past + seq"),
            ("position_ids", "seq"),
        )
    ]
    cache = helper.make_tensor_value_info(
        "past_key_values.0.key", TensorProto.FLOAT, ("batch", "past", WIDTH)
    )
    if further:
        inputs.append(helper.make_tensor_value_info(further, TensorProto.INT64, (1,)))
        nodes.append(helper.make_node("Identity", [further], ["same"]))
    outputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
        for name in ("logits", "present.0.key")
    ]
    if further:
        outputs.append(helper.make_tensor_value_info("same", TensorProto.INT64, None))
    axes = {"last": np.array([2]), "one": np.array([1])}
    stored = [numpy_helper.from_array(a, name) for name, a in {**WEIGHTS, **axes}.items()]
    graph = helper.make_graph(nodes, "decoder", [*inputs, cache], outputs, stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


@pytest.fixture(scope="module")
def executable() -> Executable:
    return compile_model(decoder())


def logits_after(ids: list[int]) -> Any:
    """The logits after some tokens, all at once."""
    rows = WEIGHTS["table"][ids] + WEIGHTS["places"][: len(ids)]
    return rows.sum(0) @ WEIGHTS["head"]


def greedy(ids: list[int], count: int) -> list[int]:
    whole = list(ids)
    for _ in range(count):
        whole.append(int(logits_after(whole).argmax()))
    return whole[len(ids) :]


def test_tokens_are_those_of_the_whole_sequence(executable: Executable) -> None:
    assert list(generate(executable, PROMPT, tokens=20)) == greedy(PROMPT, 20)


def test_a_session_continues_from_its_last_token(executable: Executable) -> None:
    session, right = executable.session(), greedy(PROMPT, 12)
    first = list(generate(session, PROMPT, tokens=5))
    assert session.position == len(PROMPT) + 4
    other = session.fork()
    rest = list(generate(session, first[-1:], tokens=7))
    assert first + rest == right
    assert list(generate(other, first[-1:], tokens=7)) == rest


def test_tokens_come_one_by_one_and_may_be_left(executable: Executable) -> None:
    session = executable.session()
    tokens = generate(session, PROMPT)
    assert session.steps == 0
    right = greedy(PROMPT, 3)
    assert [next(tokens), next(tokens)] == right[:2]
    tokens.close()  # type: ignore[attr-defined]  # of a generator
    assert session.steps == 2
    assert next(generate(session, right[1:2])) == right[2]


def test_a_token_ends_it(executable: Executable) -> None:
    right = greedy(PROMPT, 20)
    end = right[4]
    assert list(generate(executable, PROMPT, stop=[end])) == right[: right.index(end) + 1]


def test_draws_are_the_same_for_a_seed(executable: Executable) -> None:
    drawn = [
        tuple(generate(executable, PROMPT, Sampling(temperature=100.0, seed=seed), tokens=12))
        for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]


def shares_of(sampling: Sampling, logits: Any, before: list[int]) -> Any:
    """How often each token is drawn."""
    generator = np.random.default_rng(0)
    drawn = [sampling.choose(logits, before, generator) for _ in range(4000)]
    return np.bincount(drawn, minlength=len(logits)) / len(drawn)


@pytest.mark.parametrize(
    ("options", "right"),
    [
        ({"temperature": 1.0}, [0.4, 0.3, 0.2, 0.1]),
        ({"temperature": 0.5}, [16 / 30, 9 / 30, 4 / 30, 1 / 30]),
        ({"temperature": 1.0, "top_k": 2}, [4 / 7, 3 / 7, 0, 0]),
        ({"temperature": 1.0, "top_p": 0.7}, [4 / 7, 3 / 7, 0, 0]),
        ({"temperature": 1.0, "top_p": 0.71}, [4 / 9, 3 / 9, 2 / 9, 0]),
        ({"temperature": 1.0, "top_p": 1e-9}, [1, 0, 0, 0]),
        ({"temperature": 1.0, "min_p": 0.5}, [4 / 9, 3 / 9, 2 / 9, 0]),
        ({"temperature": 1.0, "top_k": 3, "top_p": 0.5}, [4 / 7, 3 / 7, 0, 0]),
    ],
)
def test_shares_of_tokens(options: dict[str, Any], right: list[float]) -> None:
    logits = np.log(np.array([0.4, 0.3, 0.2, 0.1])) + 3
    shares = shares_of(Sampling(**options), logits, [])
    np.testing.assert_allclose(shares, right, atol=0.03)
    assert (shares[np.array(right) == 0] == 0).all()


def test_tokens_that_were_there_are_less_likely() -> None:
    generator = np.random.default_rng(0)
    penalised = Sampling(repetition_penalty=2.0)
    assert penalised.choose(np.array([3.0, 2.0, 1.0]), [0, 0], generator) == 1
    assert penalised.choose(np.array([-2.0, -3.0, -9.0]), [0], generator) == 1
    assert penalised.choose(np.array([3.0, 2.0, 1.0]), [], generator) == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", -1.0),
        ("top_k", -1),
        ("top_p", 0.0),
        ("top_p", 1.5),
        ("min_p", 1.0),
        ("repetition_penalty", 0.0),
    ],
)
def test_numbers_outside_of_their_bounds(name: str, value: float) -> None:
    with pytest.raises(UsageError, match=f"argument {name}"):
        Sampling(**{name: value})  # type: ignore[arg-type]  # some are whole


@pytest.mark.parametrize("ids", [[], [-1], [1, VOCABULARY]])
def test_ids_that_are_not_in_the_vocabulary(ids: list[int], executable: Executable) -> None:
    session = executable.session()
    with pytest.raises(InputError, match=r"vocabulary|there are none"):
        generate(session, ids)
    assert session.steps == 0


def test_inputs_that_are_unknown_are_named(executable: Executable) -> None:
    with pytest.raises(UsageError, match="does not know what its input speaker is"):
        generate(compile_model(decoder(further="speaker")), PROMPT)
    with pytest.raises(UsageError, match="tokens"):
        generate(executable, PROMPT, tokens=0)
