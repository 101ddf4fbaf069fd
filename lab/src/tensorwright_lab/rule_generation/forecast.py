"""What an enumeration will take, before it starts: graphs, bytes, and seconds of a shard.

    forecast(RELEASED, 5, folder, 0, farm)
    level 1 and 2    enumerated, in seconds
    level 3          planned exactly; one of 9 applications is made, with its classes
    level 4          planned on the classes so far, those of level 3 counted 9 times; thinned, too
    level 5          the same
    seconds, bytes   of some shards of each level that were done on the workers at hand

The classes of a thinned level meet fewer others than those of the whole one, so a few count twice:
the forecast is high.  Of four operators it says 26.0 million applications for 25.3 million.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tensorwright.farm import Farm, Payload, Unit
from tensorwright_lab.rule_generation.answers import Say, answers
from tensorwright_lab.rule_generation.enumerate.blocks import (
    Block,
    Chunk,
    chunk_share,
    chunks_of,
    effort,
    stored_effort,
    thinned,
    value_effort,
)
from tensorwright_lab.rule_generation.enumerate.checkpoint import WorkFolder
from tensorwright_lab.rule_generation.enumerate.enumerate import Session
from tensorwright_lab.rule_generation.enumerate.grouping import graphs_of_stored, sizes_of, smallest
from tensorwright_lab.rule_generation.enumerate.plan import Plan
from tensorwright_lab.rule_generation.enumerate.shards import ENTRY_BYTES, owners_of, shard
from tensorwright_lab.rule_generation.enumerate.sharing import count_shared
from tensorwright_lab.rule_generation.fingerprint.kernels import SAMPLES
from tensorwright_lab.rule_generation.preset import Preset

_MOST = 4e4
"""Applications of a level that are made for a forecast, about."""
_MOST_PAIRS = 5e5
"""Pairs of classes that share operators that are looked at for a forecast, about."""
_SHARDS = 6
"""Shards of a level that are done for a forecast."""


@dataclass(frozen=True, slots=True)
class LevelCost:
    """What a level takes.

    applications     that are fingerprinted       graphs   terms that they stand for
    shards           units of fingerprints        shard_s  seconds of one on one worker
    sent_bytes       from the client, words of fingerprints for their owners included
    answered_bytes   to the client                kept_bytes   classes and values, or words
    tried            applications whose shards were timed
    share            one of so many applications was made, so that the next level could be planned
    """

    level: int
    applications: float
    graphs: float
    shards: float
    shard_s: float
    sent_bytes: float
    answered_bytes: float
    kept_bytes: float
    tried: int
    share: float
    took_s: float = 0.0
    expected_s: float = 0.0

    @property
    def work_s(self) -> float:
        """Seconds of one worker."""
        return self.shards * self.shard_s

    def elapsed_s(self, workers: int, bytes_per_s: float) -> float:
        """Seconds on so many workers, where the client sends and hears so much a second."""
        return max(self.work_s / workers, (self.sent_bytes + self.answered_bytes) / bytes_per_s)


def forecast(
    preset: Preset, max_operators: int, folder: WorkFolder, seed: int, farm: Farm, say: Say
) -> tuple[LevelCost, ...]:
    """The cost of each level.  The folder is of no use afterwards."""
    session = Session(preset, folder, seed, farm, say)
    shares = [1.0]
    costs: list[LevelCost] = []
    pace_s = 0.0
    for level in range(1, max_operators + 1):
        pairs = max(1, round(count_shared(session.table, level - 1) / _MOST_PAIRS))
        plan = Plan(preset, session.table, level, pairs)
        is_last = level == max_operators
        weights = [_weight(plan, block, shares, pairs) for block in plan.blocks]
        count = sum(w * b.count_kept() for w, b in zip(weights, plan.blocks, strict=True))
        steps = [_fingerprints(session, plan, weights, count, is_last=is_last)]
        graphs = _graphs(session, plan, costs, count)
        share, kept = 1.0, ENTRY_BYTES * count
        if not is_last:
            before, first = _kept_bytes(session), len(session.table)
            session.store_level(level, max(1, round(count / _MOST)))
            share = count / session.state.counts[-1]
            shares.append(share)
            kept = share * (_kept_bytes(session) - before)
            steps.append(_values(session, first, share))
        expected_s = steps[0].effort * pace_s
        pace_s = steps[0].took_s / steps[0].effort
        costs.append(_level_cost(level, count, graphs, steps, kept, share, expected_s))
    return tuple(costs)


@dataclass(frozen=True, slots=True)
class _Step:
    """What a step of a level takes, by some of its shards; fields as those of `LevelCost`.

    effort  of the shards that were done, in about microseconds
    """

    shards: float
    work_s: float
    sent_bytes: float
    answered_bytes: float
    tried: int
    took_s: float
    effort: float


def _level_cost(
    level: int,
    count: float,
    graphs: float,
    steps: Sequence[_Step],
    kept: float,
    share: float,
    expected_s: float,
) -> LevelCost:
    """The steps of a level together; those shards that are compared with a level before are of its
    fingerprints.
    """
    first = steps[0]
    shards = sum(step.shards for step in steps)
    shard_s = sum(step.work_s for step in steps) / shards
    sent = sum(step.sent_bytes for step in steps)
    answered = sum(step.answered_bytes for step in steps)
    tried, took_s = first.tried, first.took_s
    whole = level, count, graphs, shards, shard_s, sent, answered, kept
    return LevelCost(*whole, tried, share, took_s, expected_s)


def _weight(plan: Plan, block: Block, shares: Sequence[float], pairs: int) -> float:
    """For how many applications of the whole level one of a block stands."""
    cost = plan.table.cost
    if not block.shapes:
        return 1.0
    of_cost = np.array(shares)
    left = of_cost[cost[block.left]]
    if not len(block.right):
        return float(left.mean())
    right = of_cost[cost[block.right]]
    if block.is_table:
        return float(left.mean() * right.mean())
    both_smaller = np.maximum(cost[block.left], cost[block.right]) < plan.level - 1
    containing = np.maximum(left, right)  # one has all operators of the other
    return float(np.where(both_smaller, pairs, containing).mean())


def _fingerprints(
    session: Session, plan: Plan, weights: Sequence[float], count: float, *, is_last: bool
) -> _Step:
    """The step `words` of the last level, `keys` of others."""
    blocks = plan.blocks
    total = sum(w * effort(block) for w, block in zip(weights, blocks, strict=True))
    of_unit = effort if is_last else stored_effort
    shares = (chunk_share(block, of_unit) for block in blocks)
    whole = max(1.0, sum(w * share for w, share in zip(weights, shares, strict=True)))
    thin = thinned(blocks, max(1, round(sum(map(len, blocks)) / _MOST / SAMPLES)))
    chunks = chunks_of(thin, of_unit)
    if not is_last:
        return _timed(session, "keys", chunks, effort, total, whole, count)
    step = _timed(session, "words", chunks, effort, total, whole, count, owners_of(round(count)))
    return replace(step, sent_bytes=step.sent_bytes + step.answered_bytes)  # owners get the words


def _values(session: Session, first: int, share: float) -> _Step:
    """The step `values` of a stored level, of whose classes one of `share` was made."""
    chunks = session.value_chunks(first)
    blocks = [block for chunk in chunks for block in chunk]
    total = share * sum(map(value_effort, blocks))
    whole = max(1.0, share * sum(chunk_share(block, value_effort) for block in blocks))
    count = share * sum(map(len, blocks))
    return _timed(session, "values", chunks, value_effort, total, whole, count)


def _timed(
    session: Session,
    step: str,
    chunks: Sequence[Chunk],
    effort_of: Callable[[Block], float],
    total: float,
    whole: float,
    count: float,
    owners: int = 1,
) -> _Step:
    """Do some shards of a step, spread over all of it.

    total    effort of all of it, in `whole` shards of `count` applications together
    owners   of words; of the other steps all samples are made
    """
    if not chunks:
        return _Step(0.0, 0.0, 0.0, 0.0, 0, 0.0, 0.0)
    chosen = chunks[:: max(1, len(chunks) // _SHARDS)]
    samples = (0,) if step == "words" else tuple(range(SAMPLES))
    row, store = session.table.row, session.state.store
    payloads = [shard(chunk, store, row, samples, session.seed, owners) for chunk in chosen]
    units = [Unit(f"rules.{step}", payload) for payload in payloads]
    for _ in answers(session.farm, units[: session.farm.slots]):
        pass  # processes start, and import what they need
    start = time.perf_counter()
    results = [answer for _, answer in answers(session.farm, units)]
    busy_s = (time.perf_counter() - start) * min(session.farm.slots, len(chosen))
    done = sum(effort_of(block) for chunk in chosen for block in chunk)
    times = total / done
    tried = max(1, sum(block.count_kept() for chunk in chosen for block in chunk))
    sent, answered = _bytes_of(payloads) * times, _bytes_of(results) * count / tried
    return _Step(whole, busy_s * times, sent, answered, tried, busy_s, done * len(samples))


def _bytes_of(payloads: Sequence[Payload]) -> float:
    return float(sum(len(blob) for payload in payloads for blob in payload.blobs))


def _kept_bytes(session: Session) -> float:
    """Of the table of classes and of their values."""
    table = sum(column.nbytes for column in session.table.columns().values())
    return float(table + session.state.store.nbytes)


def _graphs(session: Session, plan: Plan, costs: Sequence[LevelCost], count: float) -> float:
    """Terms up to a level: counted, or as many times more an application as at the level before."""
    is_whole = all(cost.share == 1 for cost in costs)
    if is_whole:
        sizes = sizes_of(session.table, session.state.equal, plan.level - 1)
        return graphs_of_stored(sizes) + plan.graphs(smallest(session.table, sizes))
    before, last = (cost.graphs / cost.applications for cost in costs[-2:])
    return count * last * last / before
