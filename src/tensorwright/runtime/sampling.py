"""How the next token is chosen, and guessed.

Sources: temperature, top-k, top-p and min-p as in Hugging Face's transformers; the penalty of
repetitions is that of Keskar et al. 2019 (CTRL), section 4.1; drafts are those of prompt lookup
decoding (Saxena 2023).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tensorwright import base

_DRAFT_RUNS = (3, 2)  # ids that were there before, after which a draft begins


def check(name: str, value: float, fits: bool, demand: str) -> None:
    """Raise a UsageError for a number outside of its bounds."""
    if not fits:
        raise refusal(f"argument {name}", f"{value} is not {demand}", f"give {demand}")


def refusal(where: str, reason: str, remedy: str) -> base.UsageError:
    """An error of a caller of generate."""
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
        check("temperature", self.temperature, self.temperature >= 0, "0 or more")
        check("top_k", self.top_k, self.top_k >= 0, "0 or more")
        check("top_p", self.top_p, 0 < self.top_p <= 1, "above 0, at most 1")
        check("min_p", self.min_p, 0 <= self.min_p < 1, "0 or more, below 1")
        penalty = self.repetition_penalty
        check("repetition_penalty", penalty, penalty > 0, "above 0")

    def choose(
        self, logits: base.Array, before: Sequence[int], generator: np.random.Generator
    ) -> int:
        """A token.

        logits      [vocabulary]                 before   the tokens that were there
        generator   of draws
        """
        is_penalised = self.repetition_penalty != 1 and len(before) > 0
        if self.temperature == 0 and not is_penalised:
            return int(logits.argmax())
        scores = logits.astype(np.float64)
        if is_penalised:
            old = np.unique(before)
            factor = np.where(scores[old] > 0, 1 / self.repetition_penalty, self.repetition_penalty)
            scores[old] *= factor
        if self.temperature == 0:
            return int(scores.argmax())
        tokens = np.arange(len(scores))
        if 0 < self.top_k < len(scores):
            tokens = np.flatnonzero(scores >= np.partition(scores, -self.top_k)[-self.top_k])
            tokens = tokens[np.argsort(-scores[tokens], kind="stable")][: self.top_k]
        shares = np.exp((scores[tokens] - scores.max()) / self.temperature)
        total = shares.sum()
        if self.top_p < 1:
            # Those below this share have less than 1 - top_p together: they need no order.
            likely = np.flatnonzero(shares >= total * (1 - self.top_p) / len(shares))
            likely = likely[np.argsort(-shares[likely], kind="stable")]
            tokens, shares = tokens[likely], shares[likely]
            before_each = np.cumsum(shares / total) - shares / total
            shares = np.where(before_each < self.top_p, shares, 0)
        ends = np.cumsum(np.where(shares >= self.min_p, shares, 0))  # the likeliest share is 1
        return int(tokens[np.searchsorted(ends / ends[-1], generator.random(), side="right")])


GREEDY = Sampling()


class History:
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
