"""Generate tokens with a decoder: one after the other, each from the logits of the last call.

    for token in tensorwright.generate(executable, ids, tokens=64, stop=(2,)):
        ...

The first call reads all ids of the prompt, each later call one token.  The mask of attention and
the positions are made here, if the decoder has such inputs; they have the names of transformers'
exports.

Sources: temperature, top-k, top-p and min-p as in Hugging Face's transformers; the penalty of
repetitions is that of Keskar et al. 2019 (CTRL), section 4.1; drafts as in Saxena 2023 (prompt
lookup decoding).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorwright import base
from tensorwright.runtime.executable import Executable
from tensorwright.runtime.plan.plan import TensorSpec
from tensorwright.runtime.sessions import Session

_IDS, _MASK, _LOGITS = "input_ids", "attention_mask", "logits"
_UNFINISHED = "\ufffd"  # what the first bytes of a character become
_POSITIONS = {"position_ids": 2, "cache_position": 1}  # and their numbers of dimensions
_MATRIX = 2


def _check(name: str, value: float, fits: bool, demand: str) -> None:
    if not fits:
        raise _refusal(f"argument {name}", f"{value} is not {demand}", f"give {demand}")


def _refusal(where: str, reason: str, remedy: str) -> base.UsageError:
    return base.UsageError(stage="generate", where=where, reason=reason, remedy=remedy)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How a token is chosen.

    temperature          0 takes the likeliest token; higher numbers are more random
    top_k                draw from so many of the likeliest tokens; 0 for all
    top_p                draw from the likeliest tokens that have this probability together
    min_p                leave out tokens below this part of the highest probability
    repetition_penalty   above 1, tokens that were there before are less likely
    seed                 of the draws

    Raises:  UsageError for a number outside of its bounds.
    """

    temperature: float = base.option(
        0.0, "0 takes the likeliest token; higher numbers are more random.", least=0.0
    )
    top_k: int = base.option(0, "Draw from so many of the likeliest tokens; 0: all.", least=0)
    top_p: float = base.option(
        1.0, "Draw from the likeliest tokens that have this probability together.", kind=float
    )
    min_p: float = base.option(
        0.0, "Leave out tokens below this part of the highest probability.", kind=float
    )
    repetition_penalty: float = base.option(
        1.0, "Above 1, tokens that were there before are less likely.", kind=float
    )
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the numbers."""
        _check("temperature", self.temperature, self.temperature >= 0, "0 or more")
        _check("top_k", self.top_k, self.top_k >= 0, "0 or more")
        _check("top_p", self.top_p, 0 < self.top_p <= 1, "above 0, at most 1")
        _check("min_p", self.min_p, 0 <= self.min_p < 1, "0 or more, below 1")
        penalty = self.repetition_penalty
        _check("repetition_penalty", penalty, penalty > 0, "above 0")

    def choose(
        self, logits: base.Array, before: Sequence[int], generator: np.random.Generator
    ) -> int:
        """A token.

        logits      [vocabulary]                 before   the tokens that were there
        generator   of draws
        """
        scores = logits.astype(np.float64)
        if self.repetition_penalty != 1 and before:
            old = np.unique(before)
            factor = np.where(scores[old] > 0, 1 / self.repetition_penalty, self.repetition_penalty)
            scores[old] *= factor
        if self.temperature == 0:
            return int(scores.argmax())
        order = np.argsort(-scores, kind="stable")[: self.top_k or None]
        shares = np.exp((scores[order] - scores[order[0]]) / self.temperature)
        before_each = np.cumsum(shares / shares.sum()) - shares / shares.sum()
        is_kept = (before_each < self.top_p) & (shares >= self.min_p)  # the likeliest share is 1
        shares = np.where(is_kept, shares, 0)
        return int(generator.choice(order, p=shares / shares.sum()))


GREEDY = Sampling()
_DRAFT_RUNS = (3, 2)  # ids that were there before, after which a draft begins
_LEAST_ALONE = 32  # ids of a prompt: for so many, one more call costs less than their scores


def generate(
    decoder: Executable | Session,
    ids: Sequence[int],
    sampling: Sampling = GREEDY,
    *,
    tokens: int = 128,
    stop: Sequence[int] = (),
    block: int = 0,
    drafts: int = 0,
) -> Iterator[int]:
    """Tokens that continue some ids, each as soon as it is chosen.

    decoder   an executable, or a session that continues where it stands; its ids are
              [1, sequence], its logits [1, sequence or 1, vocabulary] or [1, vocabulary]
    ids       of the prompt; a session continues from its last token, which it has not read, so
              that its ids begin with that token
    sampling  how a token is chosen
    tokens    the most that are generated
    stop      tokens after which generating ends; the token itself is given, too
    block     the most ids of the prompt that a call reads: less memory; 0 for all that it takes
    drafts    the most tokens that a call checks beside its own, if the last tokens were there
              before: it guesses that what followed them follows again. What is chosen does not
              depend on guesses

    The iterator may be left at any time: the session has read all ids but the last token.
    Raises:  UsageError for a decoder whose inputs are not known, for numbers outside of their
             bounds, and for drafts that the decoder cannot check; InputError for ids that are not
             in the vocabulary; the errors of a call.
    """
    session = decoder if isinstance(decoder, Session) else decoder.session()
    feed = _Feed.of(session)
    _check("tokens", tokens, tokens >= 1, "1 or more")
    _check("block", block, block >= 0, "0 or more")
    _check("drafts", drafts, drafts >= 0, "0 or more")
    given = [int(each) for each in ids]
    feed.check(given)
    most = min(filter(None, (block, feed.most, len(given))))
    if drafts:
        session.rewind(session.position)  # refuses states that cannot
        while drafts and feed.scored(drafts + 1) <= drafts:
            drafts -= 1
        if not drafts:
            reason = f"its output {feed.logits.name} has the scores of the last id alone"
            raise _refusal("argument drafts", reason, "give 0, or a model with the scores of all")
    return _tokens(session, feed, given, sampling, tokens, frozenset(stop), most, drafts)


def _tokens(
    session: Session,
    feed: _Feed,
    ids: list[int],
    sampling: Sampling,
    tokens: int,
    stop: frozenset[int],
    most: int,
    drafts: int,
) -> Iterator[int]:
    generator = np.random.default_rng(sampling.seed)
    before, new = _History(ids), ids
    while len(new) > most:
        session.advance(feed.inputs(new[:most], session.position))
        new = new[most:]
    if len(new) > _LEAST_ALONE and session.advances_alone:  # only the last scores are asked
        session.advance(feed.inputs(new[:-1], session.position))
        new = new[-1:]
    left = tokens
    while left:
        draft = before.draft(min(drafts, left - 1)) if len(new) == 1 else []
        position = session.position
        results = session.run(feed.inputs([*new, *draft], position))
        scores = results[feed.logits.name]
        rows = scores.reshape(-1, scores.shape[-1])[-1 - len(draft) :]
        for number, row in enumerate(rows):
            token = sampling.choose(row, before.ids, generator)
            before.append(token)
            left -= 1
            if draft:
                session.rewind(position + 1 + number)
            yield token
            if token in stop:
                return
            if draft[number : number + 1] != [token]:
                break
        new = [token]


class _History:
    """The ids so far, and where each short run of them was followed by another one; mutable."""

    def __init__(self, ids: Sequence[int]) -> None:
        self.ids: list[int] = []
        self._followed: dict[tuple[int, ...], int] = {}
        for each in ids:
            self.append(each)

    def append(self, token: int) -> None:
        """Note what follows the last ids."""
        for length in _DRAFT_RUNS:
            self._followed[tuple(self.ids[-length:])] = len(self.ids)
        self.ids.append(token)

    def draft(self, most: int) -> list[int]:
        """What followed the last ids when they were there before, again and again."""
        for length in _DRAFT_RUNS:
            start = self._followed.get(tuple(self.ids[-length:]))
            if start is not None:
                return (self.ids[start:] * most)[:most]
        return []


def stream_text(tokens: Iterable[int], tokenizer: Any, stop: Sequence[str] = ()) -> Iterator[str]:
    """The text that tokens add, up to the first of some texts.

    tokenizer   has a method `decode`, as those of Hugging Face's package tokenizers

    A text that may be the beginning of one of `stop`, and the first bytes of a character, wait for
    the next token.
    """
    ids: list[int] = []
    done = ""
    for token in tokens:
        ids.append(token)
        text = tokenizer.decode(ids)
        ends = [at for each in stop if (at := text.find(each)) >= 0]
        if ends:
            yield text[len(done) : min(ends)]
            return
        waiting = max((_overlap(text, each) for each in stop), default=0)
        sure = text[: len(text) - waiting]
        if sure.endswith(_UNFINISHED) or len(sure) <= len(done):
            continue
        yield sure[len(done) :]
        done = sure
    yield tokenizer.decode(ids)[len(done) :]


def _overlap(text: str, stop: str) -> int:
    """How much of the end of a text may be the beginning of a stop."""
    return next((n for n in range(len(stop) - 1, 0, -1) if text.endswith(stop[:n])), 0)


@dataclass(frozen=True, slots=True)
class _Feed:
    """What a decoder reads and gives.

    ids          the input of tokens        logits   the output of their scores
    others       its other inputs, which are made from the number of tokens
    vocabulary   None where the model leaves it open
    most         ids that a call reads; 0 where the model leaves it open
    """

    ids: TensorSpec
    others: tuple[TensorSpec, ...]
    logits: TensorSpec
    vocabulary: int | None
    most: int

    @classmethod
    def of(cls, session: Session) -> _Feed:
        """The inputs and the output of a session.  Raises: UsageError for others."""
        free = {spec.name: spec for spec in session.inputs}
        whole = [s for s in free.values() if not s.dtype.is_float and len(s.shape) == _MATRIX]
        is_named = _IDS in free
        ids = free[_IDS] if is_named else next(iter(whole), None)
        others = tuple(spec for spec in free.values() if spec is not ids)
        unknown = [spec.name for spec in others if spec.name not in (_MASK, *_POSITIONS)]
        if ids is None or unknown:
            listed = ", ".join(map(str, free.values()))
            reason = f"it reads {listed}: which input are the ids is not known"
            if ids is not None:
                reason = f"generate does not know what its input {unknown[0]} is"
            remedy = f"give it inputs {_IDS}, {_MASK}, {', '.join(_POSITIONS)}; or call the session"
            raise _refusal("decoder", reason, remedy)
        scores = [spec for spec in session.outputs if spec.dtype.is_float and spec.shape]
        logits = next((spec for spec in scores if spec.name == _LOGITS), next(iter(scores), None))
        if logits is None:
            raise _refusal("decoder", "it has no output of logits", f"name an output {_LOGITS}")
        words, length = logits.shape[-1], ids.shape[-1]
        most = [size.most or 0 for size in session.sizes if size.name == str(length)]
        vocabulary = words if isinstance(words, int) else None
        return cls(ids, others, logits, vocabulary, most[0] if most else 0)

    def scored(self, count: int) -> int:
        """Of how many of so many ids a call gives the scores."""
        *_, rows, _ = (1, *self.logits.shape)
        names = () if isinstance(rows, int) else rows.names
        return base.amount_at(rows, {**dict.fromkeys(names, 1), str(self.ids.shape[-1]): count})

    def check(self, ids: Sequence[int]) -> None:
        """Raise an InputError for no ids, and for ids that are not in the vocabulary."""
        most = self.vocabulary
        bad = [each for each in ids if each < 0 or (most is not None and each >= most)]
        if bad or not ids:
            bound = "" if most is None else f" and below {most}"
            raise base.InputError(
                stage="run",
                where="ids",
                reason=f"{bad[0]} is not in the vocabulary" if bad else "there are none",
                remedy=f"give ids from 0 on{bound}, at least one",
            )

    def inputs(self, ids: Sequence[int], position: int) -> Mapping[str, base.Array]:
        """The inputs of a call that reads some ids at a position."""
        end = position + len(ids)
        arrays = {self.ids.name: np.array([ids], self.ids.dtype.numpy)}
        for spec in self.others:
            if spec.name == _MASK:
                arrays[spec.name] = np.ones((1, end), spec.dtype.numpy)
            else:
                places = np.arange(position, end, dtype=spec.dtype.numpy)
                arrays[spec.name] = places.reshape((1,) * (_POSITIONS[spec.name] - 1) + (-1,))
        return arrays
