"""Generate tokens with a decoder: one after the other, each from the logits of the last call.

    for token in tensorwright.generate(executable, ids, tokens=64, stop=(2,)):
        ...

The first call reads all ids of the prompt, each later call one token.  The mask of attention and
the positions are made here, if the decoder has such inputs; they have the names of transformers'
exports.

Source of beams and their scores: BeamSearchScorer of Hugging Face's transformers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from types import MappingProxyType
from typing import Any

import numpy as np

from tensorwright import base
from tensorwright.runtime.executable import Executable
from tensorwright.runtime.plan.plan import TensorSpec
from tensorwright.runtime.sampling import GREEDY, History, Sampling, check, refusal
from tensorwright.runtime.sessions import Session

_IDS, _MASK, _LOGITS = "input_ids", "attention_mask", "logits"
_UNFINISHED = "\ufffd"  # what the first bytes of a character become
_POSITIONS = ("position_ids", "cache_position")
_COUNTS: Mapping[str, Callable[[int, int], int]] = {  # from a position, and more ids there
    "write_indices": lambda position, more: position,
    "nonpad_kv_seqlen": lambda position, more: position + more,
    "total_sequence_length": lambda position, more: position + more,
    "seqlens_k": lambda position, more: position + more - 1,
}
_OF_ROWS = set(_COUNTS) - {"total_sequence_length"}
_MATRIX = 2
_LEAST_ALONE = 12  # ids of a prompt: for so many, one more call costs less than their scores


def generate(
    decoder: Executable | Session,
    ids: Sequence[int],
    sampling: Sampling = GREEDY,
    *,
    tokens: int = 128,
    stop: Sequence[int] = (),
    block: int = 0,
    drafts: int = 0,
    state: Mapping[str, str] | None = None,
    inputs: Mapping[str, Any] | None = None,
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
    state     as of `session`, where neither names nor the graph say what the cache is
    inputs    arrays that each call reads, as the keys and values of an encoder

    The iterator may be left at any time: the session has read all ids but the last token.
    Raises:  UsageError for a decoder whose inputs are not known, for numbers outside of their
             bounds, and for drafts that the decoder cannot check; InputError for ids that are not
             in the vocabulary; the errors of a call.
    """
    if isinstance(decoder, Session) and state is not None:
        reason, remedy = "the session has its state already", "name it when you make the session"
        raise refusal("argument state", reason, remedy)
    session = decoder if isinstance(decoder, Session) else decoder.session(state)
    feed = _Feed.of(session, inputs or {})
    check("drafts", drafts, drafts >= 0, "0 or more")
    given = _numbers(ids)
    most = feed.checked([given], tokens, block)
    if drafts:
        session.rewind(session.position)  # refuses states that cannot
        if feed.scored(2) < 2:
            reason = f"its output {feed.logits.name} has the scores of the last id alone"
            raise refusal("argument drafts", reason, "give 0, or a model with the scores of all")
        drafts = min(drafts, feed.most - 1) if feed.most else drafts
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
    before, new = History(ids), _read(session, feed, [ids], most)[0]
    left, streak = tokens, 0  # guesses that were right since the last wrong one
    while left:
        position, room = session.position, session.room
        spare = left - 1 if room is None else max(0, min(left, room - position) - 1)
        guess = before.draft(max(1, min(drafts, spare, streak))) if drafts else []
        streak = streak if guess and len(new) == 1 else 0
        draft = guess[: min(streak, spare)]
        results = session.run(feed.inputs([[*new, *draft]], session))
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
            if number < len(guess):
                streak = streak + 1 if token == guess[number] else 0
            if not streak:
                break
        new = [token]


def _numbers(ids: Sequence[int]) -> list[int]:
    try:
        return [int(each) for each in ids]
    except TypeError:
        reason = "it is not a list of numbers"
        remedy = "give generate the ids of one prompt, generate_batch a list of prompts"
        raise refusal("prompt", reason, remedy) from None


def _read(
    session: Session,
    feed: _Feed,
    rows: Sequence[Sequence[int]],
    most: int,
    pads: Sequence[int] = (0,),
) -> list[list[int]]:
    """Let a session read rows of ids but for the last ones, whose scores are asked."""
    start, end = 0, len(rows[0])
    is_alone = session.advances_alone
    while end - start > most or (end - start > _LEAST_ALONE and is_alone):
        stop = min(start + most, end - 1)
        session.advance(feed.inputs([row[start:stop] for row in rows], session, pads))
        start = stop
    return [list(row[start:]) for row in rows]


def generate_batch(
    executable: Executable,
    prompts: Sequence[Sequence[int]],
    sampling: Sampling = GREEDY,
    *,
    tokens: int = 128,
    stop: Sequence[int] = (),
    block: int = 0,
    state: Mapping[str, str] | None = None,
) -> Iterator[tuple[int | None, ...]]:
    """The next token of each of some prompts, again and again; None where a prompt has ended.

    prompts    ids, of any lengths
    sampling   as for `generate`; draws for prompt i have the seed plus i

    If the decoder takes several rows, and a mask where their lengths differ, a call reads all:
    shorter prompts are padded on the left.  Otherwise each prompt has a session.
    As for `generate`: executable, tokens, stop, block, state, and what is raised.
    """
    session = executable.session(state)
    feed = _Feed.of(session)
    rows = [_numbers(ids) for ids in prompts]
    most = feed.checked(rows, tokens, block)
    samplings = [replace(sampling, seed=sampling.seed + row) for row in range(len(rows))]
    if feed.takes(rows):
        return _rows_of_tokens(session, feed, rows, samplings, tokens, frozenset(stop), most)
    sessions = [executable.session(state) for _ in rows]
    how: Any = {"tokens": tokens, "stop": stop, "block": block}
    return zip_longest(*map(partial(generate, **how), sessions, rows, samplings))


def _rows_of_tokens(
    session: Session,
    feed: _Feed,
    prompts: Sequence[list[int]],
    samplings: Sequence[Sampling],
    tokens: int,
    stop: frozenset[int],
    most: int,
) -> Iterator[tuple[int | None, ...]]:
    before = [*map(list, prompts)]
    generators = [np.random.default_rng(each.seed) for each in samplings]
    width = max(map(len, before))
    pads = [width - len(ids) for ids in before]
    rows = [[0] * pad + ids for pad, ids in zip(pads, before, strict=True)]
    new = _read(session, feed, rows, most, pads)
    has_ended = [False] * len(rows)
    for _ in range(tokens):
        results = session.run(feed.inputs(new, session, pads))
        scores = results[feed.logits.name]
        scores = scores.reshape(len(rows), -1, scores.shape[-1])[:, -1]
        chosen: list[int | None] = [None] * len(rows)
        for row, own in enumerate(samplings):
            if not has_ended[row]:
                token = own.choose(scores[row], before[row], generators[row])
                before[row].append(token)
                chosen[row], has_ended[row] = token, token in stop
        yield tuple(chosen)
        if all(has_ended):
            return
        new = [ids[-1:] for ids in before]


@dataclass(frozen=True, slots=True)
class Beam:
    """Tokens, and the sum of the logarithms of their shares over a power of their number."""

    tokens: tuple[int, ...]
    score: float


def generate_beams(
    decoder: Executable | Session,
    ids: Sequence[int],
    beams: int = 4,
    *,
    length_penalty: float = 1.0,
    tokens: int = 128,
    stop: Sequence[int] = (),
    block: int = 0,
) -> tuple[Beam, ...]:
    """The likeliest continuations that a search with so many beams finds, the best first.

    ids, beams       of the prompt; how many continuations go on at a time
    length_penalty   the power of the number of tokens that divides a sum: longer ones are better
                     above 0, shorter ones below
    As for `generate`: decoder, tokens, stop, block, and what is raised.  A session stays where it
    is.

    The search ends when as many have ended as there are beams, and none of those that go on is
    better now than the worst of them.
    """
    session = decoder.fork() if isinstance(decoder, Session) else decoder.session()
    feed = _Feed.of(session)
    given = _numbers(ids)
    most = feed.checked([given], tokens, block)
    check("beams", beams, beams >= 1, "1 or more")
    (new,) = _read(session, feed, [given], most)
    many = beams * max(2, 1 + len(stop))  # if as many as may be are ends, enough go on
    running: list[tuple[float, tuple[int, ...], Session]] = [(0.0, (), session)]
    ended: list[Beam] = []
    for length in range(1, tokens + 1):
        best: list[tuple[float, tuple[int, ...], Session]] = []
        for total, made, own in running:
            results = own.run(feed.inputs([[*made[-1:]] or new], own))
            scores = results[feed.logits.name]
            scores = scores.reshape(-1, scores.shape[-1])[-1].astype(np.float64)
            totals = total + scores - scores.max() - np.log(np.exp(scores - scores.max()).sum())
            likeliest = np.argsort(-totals, kind="stable")[:many].tolist()
            best += [(float(totals[token]), (*made, token), own) for token in likeliest]
        best = sorted(best, key=lambda each: -each[0])[:many]
        running = []
        for rank, (total, made, own) in enumerate(best):
            if made[-1] in stop:
                ended += [Beam(made, total / length**length_penalty)] * (rank < beams)
            elif len(running) < beams:
                is_taken = any(own is other for *_, other in running)
                running.append((total, made, own.fork() if is_taken else own))
        ended = sorted(ended, key=lambda each: -each.score)[:beams]
        if len(ended) == beams and ended[-1].score >= best[0][0] / length**length_penalty:
            return tuple(ended)
    ended += [Beam(made, total / tokens**length_penalty) for total, made, _ in running]
    return tuple(sorted(ended, key=lambda each: -each.score)[:beams])


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
    fixed        inputs that are the same in each call
    """

    ids: TensorSpec
    others: tuple[TensorSpec, ...]
    logits: TensorSpec
    vocabulary: int | None
    most: int
    fixed: Mapping[str, Any]

    @classmethod
    def of(cls, session: Session, fixed: Mapping[str, Any] = MappingProxyType({})) -> _Feed:
        """The inputs and the output of a session.  Raises: UsageError for others."""
        named = {spec.name: spec for spec in session.inputs}
        for each in fixed:
            if each not in named:
                reason = f"the decoder has no input {each}"
                raise refusal("argument inputs", reason, base.did_you_mean(each, [*named], ""))
        free = {name: spec for name, spec in named.items() if name not in fixed}
        whole = [s for s in free.values() if not s.dtype.is_float and len(s.shape) == _MATRIX]
        is_named = _IDS in free
        ids = free[_IDS] if is_named else next(iter(whole), None)
        others = tuple(spec for spec in free.values() if spec is not ids)
        made = (_MASK, *_POSITIONS, *_COUNTS)
        unknown = [spec.name for spec in others if spec.name not in made]
        if ids is None or unknown:
            listed = ", ".join(map(str, free.values()))
            reason = f"it reads {listed}: which input are the ids is not known"
            if ids is not None:
                reason = f"generate does not know what its input {unknown[0]} is"
            remedy = f"give it inputs {_IDS}, {', '.join(made)}; or call the session"
            raise refusal("decoder", reason, remedy)
        scores = [spec for spec in session.outputs if spec.dtype.is_float and spec.shape]
        logits = next((spec for spec in scores if spec.name == _LOGITS), next(iter(scores), None))
        if logits is None:
            raise refusal("decoder", "it has no output of logits", f"name an output {_LOGITS}")
        words, length = logits.shape[-1], ids.shape[-1]
        most = [size.most or 0 for size in session.sizes if size.name == str(length)]
        vocabulary = words if isinstance(words, int) else None
        return cls(ids, others, logits, vocabulary, most[0] if most else 0, fixed)

    def scored(self, count: int) -> int:
        """Of how many of so many ids a call gives the scores."""
        *_, rows, _ = (1, *self.logits.shape)
        names = () if isinstance(rows, int) else rows.names
        return base.amount_at(rows, {**dict.fromkeys(names, 1), str(self.ids.shape[-1]): count})

    def takes(self, prompts: Sequence[Sequence[int]]) -> bool:
        """Whether a call takes several rows, of as different lengths as these."""
        is_open = not isinstance(self.ids.shape[0], int)
        has_mask = any(spec.name == _MASK for spec in self.others)
        return is_open and (has_mask or len({len(ids) for ids in prompts}) == 1)

    def checked(self, prompts: Sequence[Sequence[int]], tokens: int, block: int) -> int:
        """The most ids of a row that a call reads.

        Raises:  InputError for no ids, and for ids that are not in the vocabulary; UsageError.
        """
        check("tokens", tokens, tokens >= 1, "1 or more")
        check("block", block, block >= 0, "0 or more")
        most = self.vocabulary
        all_ids = [each for ids in prompts for each in ids]
        bad = [each for each in all_ids if each < 0 or (most is not None and each >= most)]
        if bad or not all(map(len, prompts)) or not prompts:
            bound = "" if most is None else f" and below {most}"
            raise base.InputError(
                stage="run",
                where="ids",
                reason=f"{bad[0]} is not in the vocabulary" if bad else "there are none",
                remedy=f"give ids from 0 on{bound}, at least one",
            )
        return min(filter(None, (block, self.most, max(map(len, prompts)))))

    def inputs(
        self, ids: Sequence[Sequence[int]], session: Session, pads: Sequence[int] = (0,)
    ) -> Mapping[str, base.Array]:
        """The inputs of a session's next call, which reads rows of ids behind so many pads each.

        Raises:  InputError if its cache has no room for them.
        """
        position, room = session.position, session.room
        new = np.array(ids, self.ids.dtype.numpy)
        end = position + new.shape[1]
        if room is not None and end > room:
            raise base.InputError(
                stage="run",
                where=f"position {position}",
                reason=f"the cache has {room} rows, and {end} ids would be in it",
                remedy="generate fewer tokens, give fewer ids, or begin a new session",
            )
        arrays: dict[str, Any] = {**self.fixed, self.ids.name: new}
        if not self.others:
            return arrays
        places = np.arange(end) - np.array(pads)[:, None]
        made = {
            _MASK: places >= 0,
            "position_ids": places[:, position:].clip(0),
            "cache_position": np.arange(position, end),
        }
        for spec in self.others:
            if spec.name in _COUNTS:
                count = _COUNTS[spec.name](position, new.shape[1])
                rows = len(ids) if spec.name in _OF_ROWS else 1
                arrays[spec.name] = np.full((rows,) * len(spec.shape), count, spec.dtype.numpy)
                continue
            arrays[spec.name] = made[spec.name].astype(spec.dtype.numpy)
            extent = spec.shape[-1]
            if spec.name == _MASK and isinstance(extent, int):
                arrays[spec.name] = np.pad(arrays[spec.name], ((0, 0), (0, extent - end)))
        return arrays
