"""Generating: the tokens of a whole computation, sampling as its definitions say, refusals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.decoders import PLACES, PROMPT, VOCABULARY, decoder, greedy, logits_after

from tensorwright.base import InputError, UsageError
from tensorwright.compiling import compile as compile_model
from tensorwright.runtime import (
    Executable,
    Sampling,
    generate,
    generate_batch,
    generate_beams,
    stream_text,
)

pytestmark = pytest.mark.usefixtures("by_rule")


@pytest.fixture(scope="module")
def executable() -> Executable:
    return compile_model(decoder())


@pytest.fixture(scope="module")
def all_scores() -> Executable:
    return compile_model(decoder(of_all=True))


def test_tokens_are_those_of_the_whole_sequence(executable: Executable) -> None:
    assert list(generate(executable, PROMPT, tokens=20)) == greedy(PROMPT, 20)


@pytest.mark.parametrize("written", ["TensorScatter", "ScatterND"])
def test_a_cache_of_fixed_length_is_written_until_it_is_full(written: str) -> None:
    session = compile_model(decoder(written=written)).session()
    assert list(generate(session, PROMPT, tokens=20, block=2)) == greedy(PROMPT, 20)
    assert (session.position, session.room) == (24, PLACES)
    with pytest.raises(InputError, match="the cache has 64 rows, and 65 ids would be in it"):
        list(generate(session, [7], tokens=50))
    assert session.position == PLACES


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


def test_a_session_has_its_state_already(executable: Executable) -> None:
    state = {"past_key_values.%d.key": "present.%d.key"}
    assert list(generate(executable, PROMPT, tokens=4, state=state)) == greedy(PROMPT, 4)
    with pytest.raises(UsageError, match="the session has its state already"):
        generate(executable.session(), PROMPT, state=state)


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
    assert session.steps <= 1 + 40  # one reads the prompt


def test_drafts_are_no_longer_than_a_call() -> None:
    few = compile_model(decoder(of_all=True), sizes={"seq": "1..3"})
    assert list(generate(few, 4 * PROMPT, tokens=20, drafts=9)) == greedy(4 * PROMPT, 20)


def test_drafts_that_hold_save_calls(all_scores: Executable) -> None:
    repeating = Sampling(repetition_penalty=1e-9)  # tokens that were there are likely
    session = all_scores.session()
    made = list(generate(session, 4 * PROMPT, repeating, tokens=40, drafts=7))
    assert made == list(generate(all_scores, 4 * PROMPT, repeating, tokens=40))
    assert session.steps < 36


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


PROMPTS = [PROMPT, [7], PROMPT * 9, [2, 2, 20]]


@pytest.mark.parametrize("block", [0, 4])
@pytest.mark.parametrize("is_open", [True, False], ids=["rows", "sessions"])
def test_prompts_of_any_lengths(is_open: bool, block: int, executable: Executable) -> None:
    own = executable if is_open else compile_model(decoder(), sizes={"batch": 1})
    right = [greedy(ids, 9) for ids in PROMPTS]
    assert [*generate_batch(own, PROMPTS, tokens=9, block=block)] == [*zip(*right, strict=True)]
    sampling = Sampling(temperature=100.0, seed=2)
    drawn = zip(*generate_batch(own, PROMPTS, sampling, tokens=9), strict=True)
    for row, (ids, tokens) in enumerate(zip(PROMPTS, drawn, strict=True)):
        assert list(tokens) == [*generate(own, ids, replace(sampling, seed=2 + row), tokens=9)]


@pytest.mark.parametrize("sizes", [None, {"batch": 1}], ids=["rows", "sessions"])
def test_prompts_end_by_themselves(sizes: Any) -> None:
    right = [greedy(ids, 20) for ids in PROMPTS]
    end = right[0][3]
    cut = [row[: row.index(end) + 1] if end in row else row for row in right]
    made = generate_batch(compile_model(decoder(), sizes=sizes), PROMPTS, tokens=20, stop=[end])
    assert [*made] == [*zip_longest(*cut)]


def test_prompts_that_are_none(executable: Executable) -> None:
    for wrong in ([], [PROMPT, []], [[VOCABULARY]]):
        with pytest.raises(InputError, match=r"vocabulary|there are none"):
            generate_batch(executable, wrong)
    for use in (lambda: generate_batch(executable, [1]), lambda: generate(executable, [PROMPT])):  # type: ignore[list-item]
        with pytest.raises(UsageError, match="generate_batch a list of prompts"):
            use()


def logs_after(ids: list[int]) -> Any:
    scores = np.asarray(logits_after(ids), np.float64)
    return scores - scores.max() - np.log(np.exp(scores - scores.max()).sum())


def beams_of(beams: int, penalty: float, tokens: int, stop: tuple[int, ...]) -> list[Any]:
    """Tokens and scores as transformers' BeamSearchScorer says, from whole sequences."""
    going, ended = [([], 0.0)], []
    for length in range(1, tokens + 1):
        longer = [
            ([*made, token], total + float(log))
            for made, total in going
            for token, log in enumerate(logs_after([*PROMPT, *made]))
        ]
        longer = sorted(longer, key=lambda each: -each[1])[: beams * max(2, 1 + len(stop))]
        first = longer[:beams]
        ended += [(made, total / length**penalty) for made, total in first if made[-1] in stop]
        ended = sorted(ended, key=lambda each: -each[1])[:beams]
        going = [each for each in longer if each[0][-1] not in stop][:beams]
        if len(ended) == beams and ended[-1][1] >= longer[0][1] / length**penalty:
            return ended
    ended += [(made, total / tokens**penalty) for made, total in going]
    return sorted(ended, key=lambda each: -each[1])[:beams]


@pytest.mark.parametrize("penalty", [1.0, 0.0, 2.5, -1.0])
@pytest.mark.parametrize("beams", [1, 2, 5])
@pytest.mark.parametrize("ends", [0, 1, 3])
def test_beams(executable: Executable, beams: int, ends: int, penalty: float) -> None:
    stop = tuple(np.argsort(-logs_after([*PROMPT, *greedy(PROMPT, 2)]))[1 : 1 + ends].tolist())
    session = executable.session()
    made = generate_beams(session, PROMPT, beams, length_penalty=penalty, tokens=7, stop=stop)
    right = beams_of(beams, penalty, 7, stop)
    assert [list(each.tokens) for each in made] == [tokens for tokens, _ in right]
    np.testing.assert_allclose([each.score for each in made], [s for _, s in right], atol=1e-4)
    assert session.steps == 0
    if beams == 1 and not ends:
        assert list(made[0].tokens) == greedy(PROMPT, 7)


def test_beams_continue_a_session(executable: Executable) -> None:
    session = executable.session()
    first = list(generate(session, PROMPT, tokens=3))
    whole = generate_beams(executable, [*PROMPT, *first], tokens=5)
    for _ in range(2):
        made = generate_beams(session, first[-1:], tokens=5)
        assert [each.tokens for each in made] == [each.tokens for each in whole]
    with pytest.raises(UsageError, match="argument beams"):
        generate_beams(session, PROMPT, 0)


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
