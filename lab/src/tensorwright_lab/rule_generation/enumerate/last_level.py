"""The last level, hashed and not stored: nothing will be applied to it.

    words       of 20 million applications, shard by shard: one word each, in sorted runs
    collisions  owner by owner: the few words that occur twice, or in an older class
    keys        those applications alone, shard by shard: the other word of their fingerprints

The first word is that of one sample of each value, which halves the work; what meets there by
chance parts at the second.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tensorwright.farm import Payload
from tensorwright_lab.rule_generation.enumerate import shards
from tensorwright_lab.rule_generation.enumerate.blocks import (
    Block,
    Chunk,
    batch_of,
    chunks_of,
    effort,
)
from tensorwright_lab.rule_generation.enumerate.checkpoint import LevelUnits
from tensorwright_lab.rule_generation.enumerate.classes import Batch, Places
from tensorwright_lab.rule_generation.enumerate.plan import Plan
from tensorwright_lab.rule_generation.enumerate.state import ValueStore

_OWNER_EFFORT = 0.3
"""Microseconds that an owner takes for a word, about."""


@dataclass(slots=True)
class LastLevel:
    """The three steps over one plan.

    applications  how many were fingerprinted, after `run`
    """

    plan: Plan
    store: ValueStore
    units: LevelUnits
    seed: int
    applications: int = 0

    def run(self) -> Batch:
        """The applications that have the fingerprint of an older class, or of another one."""
        chunks = chunks_of(self.plan.blocks)
        tried = sum(len(block) for chunk in chunks for block in chunk)
        owners = shards.owners_of(tried)
        words = self.units.complete(
            "words",
            lambda at: self._shard(chunks[at], 0, owners),
            [sum(map(effort, chunk)) for chunk in chunks],
        )
        self.applications = sum(self.units.folder.unit(name, ()).data for name in words)
        met = self.units.complete(
            "collisions",
            lambda owner: self._of_owner(owner, owners, words),
            [_OWNER_EFFORT * tried / owners] * owners,
        )
        return self._second_words(chunks, met)

    def _shard(self, chunk: Chunk, sample: int, owners: int = 1) -> Payload:
        shares_files = self.units.farm.shares_files
        row, samples = self.plan.table.row, (sample,)
        return shards.shard(
            chunk, self.store, row, samples, self.seed, owners, shares_files=shares_files
        )

    def _of_owner(self, owner: int, owners: int, words: Sequence[str]) -> Payload:
        older = shards.owned(self.plan.table.key[:, 0], owner, owners)
        runs = (self.units.folder.unit(name, (owner,)).blobs[0] for name in words)
        return Payload(blobs=(older.tobytes(), *runs))

    def _second_words(self, chunks: Sequence[Chunk], met: Sequence[str]) -> Batch:
        """The applications that collide, shard by shard, with both words."""
        of_owners = [self.units.folder.unit(name).blobs for name in met]
        entries = [shards.in_order(blobs) for blobs in zip(*of_owners, strict=True)]
        pairs = zip(chunks, entries, strict=True)
        colliding = [(tuple(_parts(chunk, places)), words) for chunk, (places, words) in pairs]
        colliding = [(blocks, words) for blocks, words in colliding if blocks]
        names = self.units.complete(
            "keys",
            lambda at: self._shard(colliding[at][0], 1),
            [sum(map(effort, blocks)) for blocks, _ in colliding],
        )
        batches = []
        for name, (blocks, first) in zip(names, colliding, strict=True):
            second: shards.Words = np.frombuffer(self.units.folder.unit(name).blobs[0], np.uint64)
            batches.append(batch_of(blocks, np.stack([first, second], axis=1)))
        return Batch.joined(batches)


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
