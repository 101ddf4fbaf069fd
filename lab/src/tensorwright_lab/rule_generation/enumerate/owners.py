"""Owners of fingerprints: who has a range of words finds those that occur twice.

    runs_of(words of a shard, owners=8)      eight runs, sorted: (word, position in the shard)
    owner 3                                  gets run 3 of every shard, and older words of its range
    collisions(payload)                      sorts, joins, answers (word, position) for each shard

The first bits of a word say who owns it, so equal words meet wherever they were made.  Only the
collisions travel back.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tensorwright.farm import Payload
from tensorwright_lab.rule_generation.enumerate.classes import Places

Words = NDArray[np.uint64]
WORD_BITS = 62
MOST_WORDS = 1 << 21
"""Words of an owner, about: they are in memory at one time."""
ENTRY_BYTES = 12
"""Of a word and its position."""


class Run(NamedTuple):
    """Words, and the position of each among the applications of its shard."""

    word: Words
    position: NDArray[np.uint32]

    def packed(self) -> bytes:
        """The run as bytes."""
        return self.word.tobytes() + self.position.tobytes()

    @staticmethod
    def of(blob: bytes) -> Run:
        """The inverse of `packed`."""
        count = len(blob) // ENTRY_BYTES
        position = np.frombuffer(blob, np.uint32, count, 8 * count)
        return Run(np.frombuffer(blob, np.uint64, count), position)


def owners_of(count: int) -> int:
    """How many owners so many words have: a power of two."""
    return 1 << max(0, (count - 1) // MOST_WORDS).bit_length()


def runs_of(words: Words, owners: int) -> tuple[bytes, ...]:
    """The words of a shard, sorted, as a run for each owner."""
    order = np.argsort(words, kind="stable")
    run = Run(words[order], order.astype(np.uint32))
    ends = np.searchsorted(run.word, _bounds(owners))
    parts = (slice(low, high) for low, high in pairwise(ends))
    return tuple(Run(run.word[part], run.position[part]).packed() for part in parts)


def owned(words: Words, owner: int, owners: int) -> Words:
    """The words of an owner."""
    low, high = _bounds(owners)[owner : owner + 2]
    chosen: Words = words[(words >= low) & (words < high)]
    return chosen


def _bounds(owners: int) -> Words:
    return np.array([(at << WORD_BITS) // owners for at in range(owners + 1)], np.uint64)


def collisions(payload: Payload) -> Payload:
    """Of each run the entries whose words occur twice, or once and among the older ones.

    The blobs are the older words, then the runs; those of the answer, one for each run.
    """
    older, *blobs = payload.blobs
    runs = [Run.of(blob) for blob in blobs]
    words = np.concatenate([np.frombuffer(older, np.uint64), *(run.word for run in runs)])
    order = np.argsort(words, kind="stable")
    repeated = _repeated(words[order])
    chosen = np.zeros(len(words), np.bool_)
    chosen[order[repeated]] = True
    ends = np.cumsum([len(older) // 8, *(len(run.word) for run in runs)])
    parts = np.split(chosen, ends[:-1])[1:]
    kept = [Run(run.word[own], run.position[own]) for run, own in zip(runs, parts, strict=True)]
    return Payload(blobs=tuple(run.packed() for run in kept))


def _repeated(ordered: Words) -> NDArray[np.bool_]:
    repeated = np.zeros(len(ordered), np.bool_)
    repeated[1:] = ordered[1:] == ordered[:-1]
    repeated[:-1] |= ordered[1:] == ordered[:-1]
    return repeated


def in_order(blobs: Sequence[bytes]) -> tuple[Places, Words]:
    """The places of the collisions of a shard in rising order, and their words."""
    runs = [Run.of(blob) for blob in blobs]
    position = np.concatenate([run.position for run in runs]).astype(np.intp)
    order = np.argsort(position)
    return position[order], np.concatenate([run.word for run in runs])[order]
