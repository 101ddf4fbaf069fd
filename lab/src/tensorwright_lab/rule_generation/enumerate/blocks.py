"""Units of work: blocks of applications, and plain functions that evaluate them.

    block = Block(ewadd, left [0, 1], right [1, 2], is_table)    4 applications
    keys(block, tensors, (0, 1), seed)                           (4, 2) words
    values(block.at([1, 3]), tensors, (0, 1))                    (2, 2, size) residues

    Block   one operator with its parameters on classes of given shapes: each left one with each
            right one (`is_table`), or row by row
    keys    the fingerprints of a block's applications, one word for each sample asked for
    values  the values of a block's applications

A block names its arguments by rows of the tensors beside it, so it is a few arrays of numbers; what
comes back is one array.  Both functions depend on nothing else: `shards.py` sends blocks and their
tensors to any process on any machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tensorwright.rewriting.operators import IntShape
from tensorwright.rewriting.terms import Param
from tensorwright_lab.rule_generation.enumerate.classes import NOWHERE, Batch, Ints, Places
from tensorwright_lab.rule_generation.fingerprint.fingerprints import (
    Keys,
    factored_values,
    keys_of,
    keys_of_pairs,
    keys_of_table,
    keys_of_unary,
)
from tensorwright_lab.rule_generation.fingerprint.kernels import SAMPLES, Values, values_of
from tensorwright_lab.rule_generation.fingerprint.structure import (
    BILINEAR_KINDS,
    LINEAR_KINDS,
    Bilinear,
    has_relu,
    structure_of,
)
from tensorwright_lab.rule_generation.operator_facts import facts_of_operator

_ROWS = 1 << 14
"""Applications of a piece of one argument at most."""
_PIECE, _PIECE_EFFORT = 1 << 20, 5e5
"""Applications and microseconds of a piece of a table at most, about."""
_PAIRS = 1 << 15
_CHUNK_EFFORT = 1.5e6
_CHUNK = 1 << 21


class Order(Enum):
    """Which pairs of a block count: all, those of different arguments, or left before right."""

    ANY = "any"
    DIFFERENT = "different"
    RISING = "rising"


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Applications of one operator; see the module docstring.

    code    the number of the application in the preset; `cut` where a split cuts, else 0
    left    first arguments: classes, or rows of the tensors; one -1 for a constant
    right   second arguments; empty for operators that have none
    operands  arguments after these that are the same for all, numbered as those
    """

    code: int
    cut: int
    operator: str
    params: tuple[Param, ...]
    shapes: tuple[IntShape, ...]
    shape: IntShape
    left: Ints
    right: Ints
    is_table: bool = False
    order: Order = Order.ANY
    operands: tuple[int, ...] = ()

    @property
    def arity(self) -> int:
        """How many arguments vary."""
        return len(self.shapes) - len(self.operands)

    def __len__(self) -> int:
        return len(self.left) * len(self.right) if self.is_table else len(self.left)

    def kept(self) -> Places | None:
        """The flat places of the applications that count; None for all."""
        if self.order is Order.ANY or self.shapes[0] != self.shapes[1]:
            return None
        left, right = (self.left[:, None], self.right) if self.is_table else (self.left, self.right)
        mask = left != right if self.order is Order.DIFFERENT else left < right
        return None if mask.all() else np.flatnonzero(mask)

    def count_kept(self) -> int:
        """How many applications count, without listing them."""
        if self.order is Order.ANY or self.shapes[0] != self.shapes[1] or not self.is_table:
            return len(self)
        if self.order is Order.DIFFERENT:
            return len(self) - len(np.intersect1d(self.left, self.right))
        return int((len(self.right) - np.searchsorted(self.right, self.left, "right")).sum())

    def pairs(self, places: NDArray[Any]) -> tuple[Ints, Ints]:
        """The arguments of the applications at some flat places; -1 where there is none."""
        if self.is_table:
            count = len(self.right)
            return self.left[places // count], self.right[places % count]
        left = self.left[places]
        return left, self.right[places] if len(self.right) else np.full(len(left), -1, np.int32)

    def at(self, places: NDArray[Any]) -> Block:
        """Some of the applications, row by row."""
        left, right = self.pairs(places)
        none = self.right[:0]
        right = right if self.arity == 2 else none
        return replace(self, left=left, right=right, is_table=False, order=Order.ANY)

    def pieces(self) -> Iterator[Block]:
        """The block in parts of bounded size, in order; tables in squares, which have the fewest
        arguments for so many applications.
        """
        if not self.is_table:
            step = _PAIRS if len(self.right) else _ROWS
            for at in range(0, len(self.left), step):
                part = slice(at, at + step)
                yield replace(self, left=self.left[part], right=self.right[part])
            return
        area = min(_PIECE, max(1, int(_PIECE_EFFORT / effort(self) * len(self))))
        wide = min(len(self.right), max(math.isqrt(area), area // len(self.left)))
        high = max(1, area // wide)
        for top in range(0, len(self.left), high):
            for at in range(0, len(self.right), wide):
                left, right = self.left[top : top + high], self.right[at : at + wide]
                yield replace(self, left=left, right=right)


Chunk: TypeAlias = tuple[Block, ...]
"""What one worker does in one go, and one file keeps: a second or two."""
Tensors: TypeAlias = Mapping[IntShape, Values]
"""Values by shape, of the samples that are asked for: (rows, samples, size)."""


def effort(block: Block) -> float:
    """About how many microseconds the fingerprints of one sample take."""
    if not block.shapes:
        return 1.0
    size = math.prod(block.shape) / 200
    kind = facts_of_operator(block.operator).structure
    if kind in LINEAR_KINDS:
        return 0.2 * len(block) + (len(block.left) + len(block.right)) * size
    if kind in BILINEAR_KINDS and has_relu(kind, block.params):
        return (4.0 if block.is_table else 40.0) * len(block) * size
    if kind in BILINEAR_KINDS:
        return (0.2 if block.is_table else 10.0 * size) * len(block)
    return 5.0 * len(block) * size


def stored_effort(block: Block) -> float:
    """About how many microseconds the fingerprints of all samples take."""
    return SAMPLES * effort(block)


def value_effort(block: Block) -> float:
    """About how many microseconds the values of a block take, and sending them."""
    return 2 * effort(block) + len(block) * math.prod(block.shape) / 5


def chunk_share(block: Block, effort_of: Callable[[Block], float] = effort) -> float:
    """About how many chunks a block fills."""
    return max(effort_of(block) / _CHUNK_EFFORT, len(block) / _CHUNK)


def chunks_of(
    blocks: Sequence[Block], effort_of: Callable[[Block], float] = effort
) -> tuple[Chunk, ...]:
    """Blocks cut into pieces, and pieces put together, in order, to chunks of like effort."""
    chunks: list[Chunk] = []
    open_: list[Block] = []
    total, count = 0.0, 0
    for block in blocks:
        for piece in block.pieces():
            open_.append(piece)
            total += effort_of(piece)
            count += len(piece)
            if total >= _CHUNK_EFFORT or count >= _CHUNK:
                chunks.append(tuple(open_))
                open_, total, count = [], 0.0, 0
    return (*chunks, tuple(open_)) if open_ else tuple(chunks)


def thinned(blocks: Sequence[Block], share: int) -> tuple[Block, ...]:
    """One of `share` applications of each operator on each shape, for forecasts."""
    if share == 1:
        return tuple(blocks)
    thin = []
    for number, block in enumerate(blocks):
        part = slice(number % share, None, share)
        left = block.left[part]
        right = block.right if block.is_table else block.right[part]
        if len(left):
            thin.append(replace(block, left=left, right=right))
    return tuple(thin)


def batch_of(
    chunk: Chunk, key: Keys, kinds_of: Callable[[Block, Ints, Ints], Ints] | None = None
) -> Batch:
    """The applications of a chunk that count, with their fingerprints; kinds where asked for."""
    parts = []
    first = 0
    for block in chunk:
        kept = block.kept()
        left, right = block.pairs(np.arange(len(block)) if kept is None else kept)
        code, cut, kind = (
            np.full(len(left), number, np.int32) for number in (block.code, block.cut, NOWHERE)
        )
        if kinds_of is not None:
            kind = kinds_of(block, left, right)
        parts.append(Batch(code, cut, left, right, kind, key[first : first + len(left)]))
        first += len(left)
    return Batch.joined(parts)


def keys(block: Block, tensors: Tensors, samples: Sequence[int], seed: int) -> Keys:
    """The fingerprints of the applications that count, (applications, samples)."""
    structure = structure_of(block.operator, block.params, block.shapes)
    if not block.shapes:
        value = values_of(structure, ())
        return keys_of(value, block.shape, seed)[:, list(samples)]
    left = tensors[block.shapes[0]][block.left]
    if block.arity == 1:
        return keys_of_unary(structure, left, block.shape, seed, _operands(block, tensors))
    right = tensors[block.shapes[1]][block.right]
    if not block.is_table:
        if isinstance(structure, Bilinear) and structure.is_relu:
            made = factored_values(structure, left, right, block.left, block.right)
            return keys_of(made, block.shape, seed)
        return keys_of_pairs(structure, left, right, block.shape, seed)
    words = keys_of_table(structure, left, right, block.shape, seed).reshape(-1, len(samples))
    kept = block.kept()
    return words if kept is None else words[kept]


def values(block: Block, tensors: Tensors, samples: Sequence[int]) -> Values:
    """The values of the applications of a block that is not a table."""
    structure = structure_of(block.operator, block.params, block.shapes)
    if not block.shapes:
        return values_of(structure, ())[:, list(samples)]
    arguments = [tensors[block.shapes[0]][block.left]]
    if block.arity == 2:
        arguments.append(tensors[block.shapes[1]][block.right])
        if isinstance(structure, Bilinear):
            left, right = arguments
            return factored_values(structure, left, right, block.left, block.right)
    return values_of(structure, (*arguments, *_operands(block, tensors)))


def _operands(block: Block, tensors: Tensors) -> tuple[Values, ...]:
    shapes = block.shapes[block.arity :]
    rows = zip(shapes, block.operands, strict=True)
    return tuple(tensors[shape][[row]] for shape, row in rows)
