"""What an enumeration will take, before it starts: graphs, bytes, and seconds of a shard.

    forecast(RELEASED, 5, folder, 0, farm)
    level 1 and 2    enumerated, in seconds
    level 3          planned exactly; one of 11 applications is made, with its classes
    level 4          planned on the classes so far, those of level 3 counted 11 times; thinned, too
    level 5          likewise
    seconds, bytes   of some shards of each level that were done on the workers at hand

The classes of a thinned level meet fewer others than those of the whole one, so a few count twice:
the forecast is high.  Of four operators it says 29.6 million applications for 25.3 million.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tensorwright.farm import Farm, Payload, Unit, answers
from tensorwright_lab.rule_generation.enumerate.blocks import (
    Block,
    chunk_share,
    chunks_of,
    effort,
    thinned,
)
from tensorwright_lab.rule_generation.enumerate.checkpoint import WorkFolder
from tensorwright_lab.rule_generation.enumerate.counting import graphs_of_stored, sizes_of, smallest
from tensorwright_lab.rule_generation.enumerate.enumerate import Session
from tensorwright_lab.rule_generation.enumerate.owners import ENTRY_BYTES, owners_of
from tensorwright_lab.rule_generation.enumerate.plan import Plan
from tensorwright_lab.rule_generation.enumerate.shards import shard
from tensorwright_lab.rule_generation.enumerate.sharing import count_shared
from tensorwright_lab.rule_generation.fingerprint.kernels import SAMPLES
from tensorwright_lab.rule_generation.preset import Preset
from tensorwright_lab.rule_generation.progress import Say

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
    share: int

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
    for level in range(1, max_operators + 1):
        pairs = max(1, round(count_shared(session.table, level - 1) / _MOST_PAIRS))
        plan = Plan(preset, session.table, level, pairs)
        is_last = level == max_operators
        weights = [_weight(plan, block, shares, pairs) for block in plan.blocks]
        timed = _timed(session, plan, weights, is_last=is_last)
        graphs = _graphs(session, plan, costs, timed)
        share, kept = 1, ENTRY_BYTES * timed.applications
        if not is_last:
            share = max(1, round(timed.applications / _MOST))
            before = _kept_bytes(session)
            session.store_level(level, share)
            shares.append(share)
            kept = share * (_kept_bytes(session) - before)
        of_shards = (*timed.of_shards, kept)
        costs.append(LevelCost(level, timed.applications, graphs, *of_shards, timed.tried, share))
    return tuple(costs)


@dataclass(frozen=True, slots=True)
class _Timed:
    """What the shards of a level take by some of them; `of_shards` as the fields of `LevelCost`."""

    applications: float
    of_shards: tuple[float, float, float, float]
    tried: int


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


def _timed(session: Session, plan: Plan, weights: Sequence[float], *, is_last: bool) -> _Timed:
    """Do some shards of a level, spread over all of it."""
    blocks = plan.blocks
    applications = sum(w * block.count_kept() for w, block in zip(weights, blocks, strict=True))
    total = sum(w * effort(block) for w, block in zip(weights, blocks, strict=True))
    samples = (0,) if is_last else tuple(range(SAMPLES))
    step = "words" if is_last else "keys"
    chunks = chunks_of(thinned(blocks, max(1, round(sum(map(len, blocks)) / _MOST / SAMPLES))))
    chosen = chunks[:: max(1, len(chunks) // _SHARDS)]
    owners = owners_of(round(applications))
    row, store = session.table.row, session.state.store
    payloads = [shard(chunk, store, row, samples, session.seed, owners) for chunk in chosen]
    units = [Unit(f"rules.{step}", payload) for payload in payloads]
    for _ in answers(session.farm, units[: session.farm.slots]):
        pass  # processes start, and import what they need
    start = time.perf_counter()
    results = [answer for _, answer in answers(session.farm, units)]
    busy_s = (time.perf_counter() - start) * min(session.farm.slots, len(chosen))
    done = sum(effort(block) for chunk in chosen for block in chunk)
    count = sum(len(block) for chunk in chosen for block in chunk)
    whole = max(1.0, sum(w * chunk_share(block) for w, block in zip(weights, blocks, strict=True)))
    sent, answered = (_bytes_of(each) * total / done for each in (payloads, results))
    if is_last:
        sent += answered  # the owners get the words
    return _Timed(applications, (whole, busy_s * total / done / whole, sent, answered), count)


def _bytes_of(payloads: Sequence[Payload]) -> float:
    return float(sum(len(blob) for payload in payloads for blob in payload.blobs))


def _kept_bytes(session: Session) -> float:
    """Of the table of classes and of their values."""
    table = sum(column.nbytes for column in session.table.columns().values())
    return float(table + session.state.store.nbytes)


def _graphs(session: Session, plan: Plan, costs: Sequence[LevelCost], timed: _Timed) -> float:
    """Terms up to a level: counted, or as many times more an application as at the level before."""
    is_whole = all(cost.share == 1 for cost in costs)
    if is_whole:
        sizes = sizes_of(session.table, session.state.equal, plan.level - 1)
        return graphs_of_stored(sizes) + plan.graphs(smallest(session.table, sizes))
    before, last = (cost.graphs / cost.applications for cost in costs[-2:])
    return timed.applications * last * last / before
