"""Shards: parts of a level as units of work, which any process on any machine can do.

    level 3      conv2d of the classes 0, 1, 2 ... with the kernels 7, 8, 9
    a shard      the prefix "conv2d of the classes 120 to 180"; their values travel with it
    words        one word of fingerprint for each application, sorted, cut into a run for each owner
    keys         the fingerprints of applications, in order
    values       the values of applications, in order

A unit is a payload: what is applied as JSON, arguments and values as bytes.  It has all that its
function needs, so where and how often it is done changes nothing.  A worker that shares files with
the client gets the rows of the values in the client's store, and reads them there.

Owners of fingerprints: who has a range of words finds those that occur twice.

    runs_of(words of a shard, owners=8)      eight runs, sorted: (word, position in the shard)
    owner 3                                  gets run 3 of every shard, and older words of its range
    collisions(payload)                      sorts, joins, answers (word, position) for each shard

The first bits of a word say who owns it, so equal words meet wherever they were made.  Only the
collisions travel back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import keep_freed_memory
from tensorwright.farm import Payload
from tensorwright.rewriting.operators import IntShape
from tensorwright_lab.rule_generation.enumerate.blocks import (
    Block,
    Chunk,
    Order,
    Tensors,
    keys,
    values,
)
from tensorwright_lab.rule_generation.enumerate.classes import Ints, Places, distinct
from tensorwright_lab.rule_generation.enumerate.state import ValueStore
from tensorwright_lab.rule_generation.fingerprint.fingerprints import Keys
from tensorwright_lab.rule_generation.fingerprint.kernels import Values

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


def shard(
    chunk: Chunk,
    store: ValueStore,
    row: Ints,
    samples: Sequence[int],
    seed: int,
    owners: int = 1,
    *,
    shares_files: bool = False,
) -> Payload:
    """A chunk and the values of its arguments as a unit.

    row           of each class in the store
    owners        into how many runs `words` are cut
    shares_files  whether the rows travel instead of the values, see `Farm.shares_files`
    """
    classes = _classes_by_shape(chunk)
    rows = {shape: row[numbers] for shape, numbers in classes.items()}
    if shares_files:
        folder, tensors = str(store.folder.absolute()), list(rows.values())
    else:
        folder, tensors = "", [store.take(shape, own, samples) for shape, own in rows.items()]
    numbered = [_numbered(block, classes) for block in chunk]
    data = {
        "seed": seed,
        "samples": list(samples),
        "owners": owners,
        "blocks": [_head(block) for block in numbered],
        "folder": folder,
        "tensors": [[list(shape), len(own), store.counts[shape]] for shape, own in rows.items()],
    }
    arguments = [side.tobytes() for block in numbered for side in (block.left, block.right)]
    return Payload(data, (b"".join(arguments), b"".join(t.tobytes() for t in tensors)))


def _classes_by_shape(chunk: Chunk) -> dict[IntShape, NDArray[Any]]:
    """The classes that a chunk names, once each, in rising order."""
    named: dict[IntShape, list[NDArray[Any]]] = {}
    for block in chunk:
        for shape, numbers in zip(block.shapes, _arguments(block), strict=True):
            named.setdefault(shape, []).append(numbers)
    return {shape: distinct(np.concatenate(numbers)) for shape, numbers in named.items()}


def _arguments(block: Block) -> list[NDArray[Any]]:
    own = [block.left, block.right][: block.arity]
    return [*own, *(np.array([each]) for each in block.operands)]


def _numbered(block: Block, classes: dict[IntShape, NDArray[Any]]) -> Block:
    """The block by rows of the tensors that travel with it."""
    pairs = zip(block.shapes, _arguments(block), strict=True)
    own = [np.searchsorted(classes[shape], each).astype(np.int32) for shape, each in pairs]
    left, right = (*own, block.right)[:2] if own else (block.left, block.right)
    right = right if block.arity == 2 else block.right
    operands = tuple(int(each[0]) for each in own[block.arity :])
    return replace(block, left=left, right=right, operands=operands)


def _head(block: Block) -> list[Any]:
    about = [block.operator, block.params, block.shapes, block.shape]
    return [*about, block.is_table, block.order.value, block.operands, *map(len, _sides(block))]


def _sides(block: Block) -> tuple[Ints, Ints]:
    return block.left, block.right


def _chunk_of(payload: Payload) -> tuple[Chunk, Tensors]:
    """The chunk and the tensors of a unit."""
    keep_freed_memory()
    rows = np.frombuffer(payload.blobs[0], np.int32)
    blocks = []
    at = 0
    for operator, params, shapes, shape, is_table, order, operands, left, right in payload.data[
        "blocks"
    ]:
        sides = rows[at : at + left], rows[at + left : at + left + right]
        at += left + right
        of = tuple(map(tuple, shapes))
        about = (operator, tuple(params), of, tuple(shape), *sides, is_table, Order(order))
        blocks.append(Block(0, 0, *about, tuple(operands)))
    return tuple(blocks), _tensors_of(payload)


def _tensors_of(payload: Payload) -> Tensors:
    """The values that a unit brings, or those at the rows that it names."""
    data = payload.data
    samples, folder = data["samples"], data["folder"]
    tensors: dict[IntShape, Values] = {}
    at = 0
    for extents, count, stored in data["tensors"]:
        shape = tuple(extents)
        size = count if folder else count * len(samples) * prod(shape)
        own = np.frombuffer(payload.blobs[1], np.uint32, size, 4 * at)
        at += size
        if folder:
            tensors[shape] = ValueStore(Path(folder), {shape: stored}).take(shape, own, samples)
        else:
            tensors[shape] = own.reshape(count, len(samples), -1)
    return tensors


def shard_keys(payload: Payload) -> Payload:
    """The fingerprints of the applications that count, (applications, samples)."""
    return Payload(blobs=(_keys_of(payload).tobytes(),))


def shard_words(payload: Payload) -> Payload:
    """The fingerprints of one sample as sorted runs, one for each owner; `data` is their number."""
    words = _keys_of(payload)[:, 0]
    return Payload(len(words), runs_of(words, payload.data["owners"]))


def shard_values(payload: Payload) -> Payload:
    """The values of the applications of each block, (applications, samples, size)."""
    chunk, tensors = _chunk_of(payload)
    results = (values(block, tensors, payload.data["samples"]) for block in chunk)
    return Payload(blobs=tuple(each.tobytes() for each in results))


def _keys_of(payload: Payload) -> Keys:
    chunk, tensors = _chunk_of(payload)
    samples, seed = payload.data["samples"], payload.data["seed"]
    return np.concatenate([keys(block, tensors, samples, seed) for block in chunk])
