"""All terms of up to N operators, level by level over classes; equal values meet in one class.

    enumerate_terms(RELEASED, 2, folder)     inputs x1, x2, ... and operators
    found.table                              classes: matmul(x1, w1), relu(x1), ...
    found.equal                              relu(relu(x1)) equals the class of relu(x1), ...

Level k applies every operator to classes whose terms together have k - 1 operators, shared ones
once.  What comes out is grouped by fingerprint (`grouping.py`).  Since only the one term of each
class is an argument, an equality that follows from a smaller one by replacing a subterm is never
found: there are classes where TASO has graphs.  Of the last level only fingerprints are made
(`last_level.py`).

Read on in `classes.py`, `plan.py` (what is tried), `loop_box.py` (how it is evaluated),
`codegen/llvm/math.py`.

Source:  Jia et al., SOSP 2019, section 2.1; Demmel et al. and Schwartz-Zippel for the fingerprints
of polynomials over a field: two different values of degree d agree at a random point with
probability d/P at most.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import UsageError
from tensorwright.farm import Farm, Payload
from tensorwright_lab.rule_generation.answers import CALLER, Say
from tensorwright_lab.rule_generation.enumerate.blocks import (
    Block,
    Chunk,
    batch_of,
    chunks_of,
    stored_effort,
    thinned,
    value_effort,
)
from tensorwright_lab.rule_generation.enumerate.checkpoint import LevelUnits, WorkFolder
from tensorwright_lab.rule_generation.enumerate.classes import (
    MAX_OPERATORS,
    NOWHERE,
    Batch,
    ClassTable,
    Ints,
    Places,
)
from tensorwright_lab.rule_generation.enumerate.grouping import (
    Equalities,
    graphs_of_stored,
    group_equal,
    sizes_of,
    smallest,
)
from tensorwright_lab.rule_generation.enumerate.last_level import LastLevel
from tensorwright_lab.rule_generation.enumerate.plan import Plan
from tensorwright_lab.rule_generation.enumerate.shards import shard
from tensorwright_lab.rule_generation.enumerate.sharing import families
from tensorwright_lab.rule_generation.enumerate.state import begin, restore, save
from tensorwright_lab.rule_generation.fingerprint.kernels import SAMPLES
from tensorwright_lab.rule_generation.preset import Preset

_FORMAT = 3
WHOLE_LEVELS = 3
"""Levels that a sample has whole."""
_ALL = tuple(range(SAMPLES))


@dataclass(frozen=True, slots=True, eq=False)
class Enumeration:
    """The result of an enumeration.

    equal         applications that equal a class and are not its term
    levels        at which level each of them was found
    graphs        how many terms of so many operators were represented, see `grouping.py`
    two_outputs   how many graphs with two outputs: pairs of terms, see `Plan`
    applications  how many applications were fingerprinted, per level
    """

    preset: Preset
    table: ClassTable
    equal: Equalities
    levels: NDArray[np.int8]
    graphs: float
    two_outputs: float
    applications: tuple[int, ...]


def run_of(preset: Preset, max_operators: int, seed: int, sample: int = 1) -> dict[str, Any]:
    """The settings that a work folder must share with a run that continues it."""
    digest = hashlib.sha256(repr(preset).encode()).hexdigest()
    return {
        "format": _FORMAT,
        "preset": preset.name,
        "digest": digest,
        "max_operators": max_operators,
        "seed": seed,
        "sample": sample,
    }


def enumerate_terms(
    preset: Preset,
    max_operators: int,
    folder: WorkFolder,
    seed: int = 0,
    farm: Farm = CALLER,
    say: Say = lambda line: None,
    sample: int = 1,
) -> Enumeration:
    """Enumerate; what is found is the same for the same preset, size, seed and sample.

    folder  is written to, and what it holds of the same run is not done again
    farm    who does the units
    sample  of levels after the third, only one of so many first arguments of an operator is tried

    Raises:  UsageError for too many operators, OutputError, MachineError.
    """
    if not 1 <= max_operators <= MAX_OPERATORS:
        raise UsageError(
            stage="rules",
            where=f"{max_operators} operators",
            reason="graphs have too many",
            remedy=f"1 to {MAX_OPERATORS}",
        )
    return Session(preset, folder, seed, farm, say, sample).run(max_operators)


class Session:
    """An enumeration that grows level by level; see `enumerate_terms`."""

    def __init__(
        self,
        preset: Preset,
        folder: WorkFolder,
        seed: int,
        farm: Farm,
        say: Say,
        sample: int = 1,
    ) -> None:
        self.preset = preset
        self.folder = folder
        self.seed = seed
        self.farm = farm
        self.say = say
        self.sample = sample
        self.family = families(preset)
        self._start_s = time.perf_counter()
        kept = restore(folder)
        if kept is not None:
            say(f"going on after level {len(kept.counts)}")
        self.state = begin(preset, folder, seed) if kept is None else kept
        self.table = self.state.table

    def run(self, max_operators: int) -> Enumeration:
        """Find the levels that are not kept yet."""
        for level in range(len(self.state.counts) + 1, max_operators):
            self.store_level(level)
        graphs = self._last_level(max_operators)
        self._say_level(max_operators)
        counts = list(map(len, self.state.equal))
        return Enumeration(
            self.preset,
            self.table,
            Equalities.joined(self.state.equal),
            np.repeat(np.arange(1, max_operators + 1, dtype=np.int8), counts),
            *graphs,
            tuple(self.state.counts),
        )

    def _say_level(self, level: int) -> None:
        equal, count = len(self.state.equal[-1]), self.state.counts[-1]
        classes = int((self.table.cost == level).sum())
        now_s = time.perf_counter()
        took_s, self._start_s = now_s - self._start_s, now_s
        line = f"level {level}: {count:,} applications, {equal:,} equalities, {classes:,} classes"
        self.say(f"{line} kept; {took_s:.1f} s, {self.folder.nbytes / 1e9:.2f} GB in the folder")

    def _units(self, level: int) -> LevelUnits:
        return LevelUnits(self.folder, self.farm, self.say, level)

    def _shard(self, chunk: Chunk) -> Payload:
        store, shares_files = self.state.store, self.farm.shares_files
        return shard(chunk, store, self.table.row, _ALL, self.seed, shares_files=shares_files)

    def _plan(self, level: int) -> Plan:
        """What a level tries; a sample of it after the whole levels.

        Where an argument is of a level of which a sample was made, the block is a sample already.
        """
        first = WHOLE_LEVELS + 1
        plan = Plan(self.preset, self.table, level, self.sample if level > first else 1)
        if level < first or self.sample == 1:
            return plan
        cost = self.table.cost
        thin: list[Block] = []
        whole: list[Block] = []
        for each in plan.blocks:
            is_whole = each.is_table and max(cost[each.left[0]], cost[each.right[0]]) < first
            (whole if is_whole or level == first else thin).append(each)
        plan.blocks = (*thin, *thinned(whole, self.sample))
        return plan

    def store_level(self, level: int, share: int = 1) -> None:
        """Find the classes of a level and their values; of one of `share` applications only."""
        plan = self._plan(level)
        chunks = chunks_of(thinned(plan.blocks, share), stored_effort)
        names = self._units(level).complete(
            "keys",
            lambda at: self._shard(chunks[at]),
            [sum(map(stored_effort, chunk)) for chunk in chunks],
        )
        parts = []
        for chunk, name in zip(chunks, names, strict=True):
            keys = np.frombuffer(self.folder.unit(name).blobs[0], np.uint64)
            parts.append(batch_of(chunk, keys.reshape(-1, SAMPLES), plan.kinds_of))
        batch = Batch.joined(parts)
        first = len(self.table)
        self.state.equal.append(group_equal(self.table, batch, level, self.family, is_last=False))
        self.state.counts.append(len(batch))
        made = self._compute(first, level)
        save(self.folder, self.state)
        self.folder.remove_units([*names, *made])
        self._say_level(level)

    def _compute(self, first: int, level: int) -> list[str]:
        """The values of the classes from `first` on, which are sorted by shape."""
        table, store = self.table, self.state.store
        chunks = self.value_chunks(first)
        names = self._units(level).complete(
            "values",
            lambda at: self._shard(chunks[at]),
            [sum(map(value_effort, chunk)) for chunk in chunks],
        )
        at = first
        for chunk, name in zip(chunks, names, strict=True):
            blobs = iter(self.folder.unit(name).blobs)
            for shape, blocks in groupby(chunk, lambda block: block.shape):
                own = [np.frombuffer(next(blobs), np.uint32) for _ in blocks]
                values = np.concatenate(own).reshape(-1, SAMPLES, prod(shape))
                row, count = store.append(shape, values), len(values)
                table.row[at : at + count] = np.arange(row, row + count)
                at += count
        return names

    def value_chunks(self, first: int) -> tuple[Chunk, ...]:
        """The applications of the classes from `first` on, as shards of values."""
        return chunks_of(tuple(_value_blocks(self.preset, self.table, first)), value_effort)

    def _last_level(self, level: int) -> tuple[float, float]:
        plan = self._plan(level)
        sizes = sizes_of(self.table, self.state.equal, level - 1)
        graphs = graphs_of_stored(sizes) + plan.graphs(smallest(self.table, sizes))
        two_outputs = plan.two_output_graphs(sizes)
        passes = LastLevel(plan, self.state.store, self._units(level), self.seed)
        batch = passes.run()
        self.state.counts.append(passes.applications)
        self.state.equal.append(group_equal(self.table, batch, level, self.family, is_last=True))
        return graphs, two_outputs


def _value_blocks(preset: Preset, table: ClassTable, first: int) -> Iterator[Block]:
    """The applications of new classes, in order, in blocks of one operator and shape."""
    own = np.arange(first, len(table))
    if not len(own):
        return
    listed, by_kind = table.shapes()
    shape = np.append(by_kind[table.kind], NOWHERE)
    shapes = [shape[own], shape[table.a[own]], shape[table.b[own]]]
    columns = np.stack([table.code[own], table.cut[own], *shapes], axis=1)
    changes = np.flatnonzero((columns[1:] != columns[:-1]).any(axis=1)) + 1
    starts = np.concatenate([[0], changes])
    ends = np.append(changes, len(own))
    for low, high in zip(starts, ends, strict=True):
        yield _value_block(preset, table, listed, columns[low], own[low:high])


def _value_block(
    preset: Preset, table: ClassTable, shapes: list[Any], about: Ints, classes: Places
) -> Block:
    code, cut, shape, left, right = (int(each) for each in about)
    application = preset.applications[code]
    params = application.params if not cut else (*application.params, cut)
    names = [each.name for each in preset.inputs]
    operands = tuple(names.index(name) for name in application.operands)
    of = [shapes[each] for each in (left, right) if each >= 0]
    of += [preset.inputs[number].shape for number in operands]
    a, b = table.a[classes], table.b[classes] if right >= 0 else table.b[:0]
    block = Block(code, cut, application.operator, params, tuple(of), shapes[shape], a, b)
    return replace(block, operands=operands)
