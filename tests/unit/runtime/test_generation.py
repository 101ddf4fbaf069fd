"""Generating: the tokens of a whole computation, sampling as its definitions say, refusals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.decoders import PROMPT, VOCABULARY, decoder, greedy

from tensorwright.base import InputError, UsageError
from tensorwright.compiling import compile as compile_model
from tensorwright.runtime import Executable, Sampling, generate, stream_text

pytestmark = pytest.mark.usefixtures("by_rule")


@pytest.fixture(scope="module")
def executable() -> Executable:
    return compile_model(decoder())


@pytest.fixture(scope="module")
def all_scores() -> Executable:
    return compile_model(decoder(of_all=True))


def test_tokens_are_those_of_the_whole_sequence(executable: Executable) -> None:
    assert list(generate(executable, PROMPT, tokens=20)) == greedy(PROMPT, 20)


@pytest.mark.parametrize(("block", "calls"), [(0, 1), (1, 5), (2, 3), (4, 2), (9, 1)])
def test_a_prompt_is_read_in_blocks(executable: Executable, block: int, calls: int) -> None:
    session = executable.session()
    tokens = generate(session, PROMPT, block=block)
    assert next(tokens) == greedy(PROMPT, 1)[0]
    assert session.steps == calls


def test_a_bound_of_the_model_cuts_the_prompt() -> None:
    session = compile_model(decoder(), sizes={"seq": "1..3"}).session()
    assert list(generate(session, PROMPT, tokens=4)) == greedy(PROMPT, 4)
    assert session.steps == 2 + 3


class Letters:
    """Tokens are letters; 0 is the first half of the character that ends with 1."""

    def decode(self, ids: Sequence[int]) -> str:
        """The letters; a half that nothing follows is unknown."""
        text = "".join(chr(ord("a") + each) for each in ids)
        return text.replace("ab", "\u00e9").replace("a", "\ufffd")


@given(st.lists(st.integers(0, 4), max_size=12), st.lists(st.text("cde", min_size=1), max_size=2))
def test_streamed_text_is_the_whole_text_up_to_a_stop(ids: list[int], stop: list[str]) -> None:
    whole = Letters().decode(ids)
    ends = [whole.find(each) for each in stop if each in whole]
    parts = list(stream_text(ids, Letters(), stop))
    assert "".join(parts) == whole[: min(ends, default=len(whole))]


def test_text_comes_as_soon_as_it_is_sure() -> None:
    tokens = iter([2, 3, 0, 1, 4])
    parts = stream_text(tokens, Letters(), ["dc"])
    assert next(parts) == "c"
    assert next(parts) == "d\u00e9"
    assert list(tokens) == [4]


def test_of_a_long_prompt_only_the_last_scores_are_computed(executable: Executable) -> None:
    session, prompt = executable.session(), 8 * PROMPT
    assert session.advances_alone
    assert list(generate(session, prompt, tokens=9)) == greedy(prompt, 9)
    assert (session.steps, session.position) == (10, len(prompt) + 8)


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


@pytest.mark.parametrize("drafts", [1, 2, 7, 40])
@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=20.0, seed=3)], ids=str)
def test_drafts_change_no_token(all_scores: Executable, sampling: Sampling, drafts: int) -> None:
    prompt = 4 * PROMPT
    right = list(generate(all_scores, prompt, sampling, tokens=40))
    session = all_scores.session()
    assert list(generate(session, prompt, sampling, tokens=40, drafts=drafts)) == right
    assert session.position == len(prompt) + 39
    assert session.steps <= 40


def test_drafts_that_hold_save_calls(all_scores: Executable) -> None:
    repeating = Sampling(repetition_penalty=1e-9)  # tokens that were there are likely
    session = all_scores.session()
    made = list(generate(session, 4 * PROMPT, repeating, tokens=40, drafts=7))
    assert made == list(generate(all_scores, 4 * PROMPT, repeating, tokens=40))
    assert session.steps < 30


def test_a_session_is_at_each_token_that_it_gives(all_scores: Executable) -> None:
    right = list(generate(all_scores, 4 * PROMPT, tokens=30))
    session = all_scores.session()
    for number, token in enumerate(generate(session, 4 * PROMPT, tokens=20, drafts=5)):
        assert session.position == 4 * len(PROMPT) + number
        rest = generate(session.fork(), [token], tokens=10)
        assert list(rest) == right[number + 1 : number + 11]


def test_drafts_that_cannot_be_checked(executable: Executable, all_scores: Executable) -> None:
    with pytest.raises(UsageError, match="output logits has the scores of the last id alone"):
        generate(executable, PROMPT, drafts=3)
    with pytest.raises(UsageError, match="drafts"):
        generate(all_scores, PROMPT, drafts=-1)


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
