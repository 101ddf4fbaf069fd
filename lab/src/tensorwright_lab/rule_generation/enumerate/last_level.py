"""The last level, hashed and not stored: nothing will be applied to it.

    first pass     20 million applications -> 20 million words, in files
    repeated_words(folder, names, older, ...)     the few words that occur twice
    second pass    those applications alone, with all of their fingerprint: a Batch

First pass   one word of fingerprint for each application, chunk by chunk, into files
Between      the words that occur twice, or in an older class: found range by range of the words,
             so that memory stays within a budget whatever the number of applications
Second pass  only the applications with such words are made again, with all of their fingerprint

The first pass computes one sample of each value, which halves the work; what meets there by
chance parts in the second.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorwright_lab.rule_generation.enumerate.blocks import (
    Block,
    Chunk,
    batch_of,
    chunk_keys,
    chunks_of,
    effort,
    located,
)
from tensorwright_lab.rule_generation.enumerate.checkpoint import WorkFolder
from tensorwright_lab.rule_generation.enumerate.classes import NOWHERE, Batch, Places
from tensorwright_lab.rule_generation.enumerate.plan import Plan
from tensorwright_lab.rule_generation.enumerate.store import ValueStore
from tensorwright_lab.rule_generation.parallel import map_chunks
from tensorwright_lab.rule_generation.progress import Meter, Say

Words = NDArray[np.uint64]
_BUDGET = 1 << 30
"""Bytes of words in memory at one time."""
_WORD_BITS = 62


@dataclass(slots=True)
class LastLevel:
    """Both passes over one plan; what is in the work folder is not done again."""

    plan: Plan
    store: ValueStore
    folder: WorkFolder
    seed: int
    workers: int
    say: Say
    chunks: tuple[Chunk, ...] = field(init=False)
    applications: int = 0

    def __post_init__(self) -> None:
        self.chunks = chunks_of(self.plan.blocks)

    def run(self) -> Batch:
        """The applications that have the fingerprint of an older class, or of another one."""
        names = [f"keys-{n}-{sum(map(len, c))}" for n, c in enumerate(self.chunks)]
        self._first_pass(names)
        words = (self.folder.load(name)["word"] for name in names)
        sizes = [len(each) for each in words]
        self.applications = sum(sizes)
        repeated = repeated_words(self.folder, names, self.plan.table.key[:, 0], self.applications)
        return self._second_pass(names, repeated)

    def _first_pass(self, names: Sequence[str]) -> None:
        todo = [n for n, name in enumerate(names) if not self.folder.has(name)]
        efforts = [sum(map(effort, chunk)) for chunk in self.chunks]
        total = sum(efforts)
        done = total - sum(efforts[n] for n in todo)
        meter = Meter(self.say, f"level {self.plan.level}, fingerprints", total, done)
        job = partial(chunk_keys, self.store, (0,), self.seed)
        chunks = located([self.chunks[n] for n in todo], self.plan.table.row)
        for number, result in zip(todo, map_chunks(job, chunks, self.workers), strict=True):
            self.folder.save(names[number], {"word": result[:, 0]})
            meter.add(efforts[number])

    def _second_pass(self, names: Sequence[str], repeated: Words) -> Batch:
        results = [name.replace("keys", "found") for name in names]
        todo = [n for n, name in enumerate(results) if not self.folder.has(name)]
        chosen = {n: self._chosen(n, names[n], repeated) for n in todo}
        efforts = {n: 2 * sum(map(effort, chunk)) for n, (chunk, _) in chosen.items()}
        meter = Meter(self.say, f"level {self.plan.level}, equal ones", sum(efforts.values()))
        job = partial(chunk_keys, self.store, (1,), self.seed)
        for number in (n for n in todo if not chosen[n][0]):
            self.folder.save(results[number], _without_kinds(Batch.joined([])))
        full = [n for n in todo if chosen[n][0]]
        chunks = located([chosen[n][0] for n in full], self.plan.table.row)
        for number, second in zip(full, map_chunks(job, chunks, self.workers), strict=True):
            blocks, first = chosen[number]
            key = np.stack([first, second[:, 0]], axis=1)
            self.folder.save(results[number], _without_kinds(batch_of(blocks, key)))
            meter.add(efforts[number])
        return Batch.joined([_of_no_kind(self.folder.load(name)) for name in results])

    def _chosen(self, number: int, name: str, repeated: Words) -> tuple[Chunk, Words]:
        """The applications of a chunk whose words are repeated, row by row, and these words."""
        words = self.folder.load(name)["word"]
        places = np.flatnonzero(_among(words, repeated))
        blocks = tuple(_parts(self.chunks[number], places))
        return blocks, words[places]


def _among(words: Words, repeated: Words) -> NDArray[np.bool_]:
    if not len(repeated):
        return np.zeros(len(words), np.bool_)
    place = np.minimum(np.searchsorted(repeated, words), len(repeated) - 1)
    found: NDArray[np.bool_] = repeated[place] == words
    return found


def _parts(chunk: Chunk, places: Places) -> Iterator[Block]:
    """The applications at some places of what a chunk gives, block by block."""
    first = 0
    for block in chunk:
        kept = block.kept()
        count = len(block) if kept is None else len(kept)
        low, high = np.searchsorted(places, [first, first + count])
        own = places[low:high] - first
        first += count
        if len(own):
            yield block.at(own if kept is None else kept[own])


def _without_kinds(batch: Batch) -> dict[str, NDArray[Any]]:
    return {name: column for name, column in batch.columns().items() if name != "kind"}


def _of_no_kind(columns: dict[str, NDArray[Any]]) -> Batch:
    return Batch(kind=np.full(len(columns["code"]), NOWHERE, np.int32), **columns)


def repeated_words(
    folder: WorkFolder, names: Sequence[str], older: Words, count: int, budget: int = _BUDGET
) -> Words:
    """The words, sorted, that are in the files at least twice, or once and in `older`.

    count   how many there are in the files
    budget  bytes of words in memory at one time
    """
    parts = max(1, -(-2 * 8 * (count + len(older)) // budget))
    bounds = [(part << _WORD_BITS) // parts for part in range(parts + 1)]
    found = []
    for low, high in pairwise(bounds):
        words = [_within(older, low, high)]
        words += [_within(folder.load(name)["word"], low, high) for name in names]
        own = np.concatenate(words)
        own.sort()
        found.append(np.unique(own[1:][own[1:] == own[:-1]]))
    return np.concatenate(found)


def _within(words: Words, low: int, high: int) -> Words:
    chosen: Words = words[(words >= np.uint64(low)) & (words < np.uint64(high))]
    return chosen
