"""Simulated annealing: arrays of chains do what chains one at a time do, and find what is best."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.random import Generator
from tests.unit.tuning.strategies.evolving import BEST_S, SPACE, TASK, Oracle, record_of, time_s

from tensorwright.base import UsageError
from tensorwright.tuning.population import Population, make_space_tables, sample
from tensorwright.tuning.population.population import Keys, default_candidate
from tensorwright.tuning.population.space_tables import SpaceTables, neighbour_pairs
from tensorwright.tuning.population.variation import DRAWS, everything
from tensorwright.tuning.strategies.annealing import (
    VANILLA,
    AnnealingOptions,
    Archive,
    Cooling,
    Pick,
    Scale,
    Temperatures,
    Walk,
    anneal,
    pick_covering,
    unit_of,
    wanted_acceptance,
)
from tensorwright.tuning.strategies.guided import GuidedSearch

TABLES = make_space_tables(SPACE)
ALL = np.ones(len(SPACE.sketches), np.bool_)
NONE: Keys = np.empty(0, np.uint64)
Program = tuple[int, tuple[int, ...]]


def walk_of(tables: SpaceTables, allowed: np.ndarray = ALL, noise: float = 0.3) -> Walk:
    judge = Oracle(noise).scores
    numbers = np.flatnonzero(allowed)
    return Walk(tables, allowed, judge, lambda n, random: sample(tables, n, random, numbers))


# Chains one at a time, in plain Python


@dataclass
class Chain:
    sketch: int
    genes: tuple[int, ...]
    score: float


def stepped(tables: SpaceTables, chain: Chain, drawn: list[float], leap: float) -> Program:
    """A step of one chain from the numbers that are drawn for it."""
    sketch = SPACE.sketches[chain.sketch]
    position = sum(drawn[0] >= chance for chance in tables.chances[chain.sketch])
    if position >= tables.width:
        kin = [n for n, s in enumerate(SPACE.sketches) if s.family == sketch.family]
        others = [n for n in kin if n != chain.sketch]
        if not others:
            return chain.sketch, chain.genes
        to = others[int(drawn[3] * len(others))]
        decisions = sketch.decisions_of(chain.genes[: len(sketch.choices)])
        rows = []
        for choice in SPACE.sketches[to].choices:
            row = tuple(decisions.get(name, -1) for name in choice.names)
            rows.append(choice.values.index(row if row in choice.values else choice.default))
        return to, tuple(rows)
    choice = sketch.choices[position]
    old = chain.genes[position]
    pairs = neighbour_pairs(choice.table).tolist()
    near = [other for one, other in pairs if one == old]
    if not near or drawn[2] < leap:
        others = [row for row in range(len(choice.values)) if row != old]
        new = others[int(drawn[1] * len(others))] if others else old
    else:
        new = near[int(drawn[1] * len(near))]
    genes = list(chain.genes[: len(sketch.choices)])
    genes[position] = new
    return chain.sketch, tuple(genes)


def population_of(programs: list[Program]) -> Population:
    genes = np.zeros((len(programs), TABLES.width), np.int64)
    for row, (_, own) in enumerate(programs):
        genes[row, : len(own)] = own
    return Population(np.array([sketch for sketch, _ in programs], np.int32), genes)


def is_valid(program: Program) -> bool:
    sketch = SPACE.sketches[program[0]]
    return sketch.is_valid(sketch.decisions_of(program[1][: len(sketch.choices)]))


@dataclass
class Rounds:
    """What changes from step to step."""

    chains: list[Chain]
    seen: dict[int, float]
    first: float
    base: float
    begun: int = 0
    idle: int = 0
    reheats: int = 0


def scores_of(walk: Walk, programs: list[Program]) -> list[float]:
    return [float(walk.judge(population_of([each]))[0]) for each in programs]


def programs_of(population: Population) -> list[Program]:
    pairs = zip(population.sketch, population.genes, strict=True)
    return [(int(sketch), tuple(genes.tolist())) for sketch, genes in pairs]


def temperatures_of(now: Rounds, options: AnnealingOptions, last: float, step: int) -> list[float]:
    share = (step - now.begun) / (options.steps - now.begun)
    if options.cooling is Cooling.LINEAR:
        now.base = now.first + share * (last - now.first)
    elif options.cooling is Cooling.EXPONENTIAL:
        now.base = now.first * (last / now.first) ** share
    return [
        now.base * options.coldest ** ((n % options.rungs) / max(options.rungs - 1, 1))
        for n in range(len(now.chains))
    ]


def swap(
    chains: list[Chain], warmth: list[float], rungs: int, turn: int, random: Generator
) -> None:
    pairs = [
        n for n in range(len(chains) - 1) if n % rungs % 2 == turn % 2 and n % rungs < rungs - 1
    ]
    for n, coin in zip(pairs, random.random(len(pairs)), strict=True):
        one, other = chains[n], chains[n + 1]
        cold = 1 / (warmth[n] + 1e-5) - 1 / (warmth[n + 1] + 1e-5)
        if coin < math.exp(min(cold * (other.score - one.score), 1.0)):
            chains[n], chains[n + 1] = other, one


def restart(now: Rounds, walk: Walk, options: AnnealingOptions, random: Generator) -> None:
    worst = sorted(range(len(now.chains)), key=lambda n: now.chains[n].score)
    worst = worst[: round(options.restart_share * len(now.chains))]
    programs = programs_of(walk.fresh(len(worst), random))
    for n, program, score in zip(worst, programs, scores_of(walk, programs), strict=True):
        now.chains[n] = Chain(*program, score)


def go(
    now: Rounds, walk: Walk, options: AnnealingOptions, step: int, last: float, random: Generator
) -> None:
    """One step of all chains, one after the other."""
    chains = now.chains
    warmth = temperatures_of(now, options, last, step)
    drawn = random.random((options.tries, DRAWS, len(chains)))
    found: list[Program] = []
    for n, chain in enumerate(chains):
        tries = [stepped(walk.tables, chain, one[:, n].tolist(), options.leap) for one in drawn]
        good = [each for each in tries if walk.allowed[each[0]] and is_valid(each)]
        found.append(good[0] if good else (chain.sketch, chain.genes))
    scores, coins = scores_of(walk, found), random.random(len(chains))
    accepted = 0
    for n, chain in enumerate(chains):
        if coins[n] < math.exp(min((scores[n] - chain.score) / (warmth[n] + 1e-5), 1.0)):
            chain.sketch, chain.genes, chain.score = *found[n], scores[n]
            accepted += 1
    if options.cooling is Cooling.ADAPTIVE:
        is_hot = accepted / len(chains) > wanted_acceptance(step / options.steps)
        now.base = now.base / 1.05 if is_hot else now.base * 1.05
        now.base = min(max(now.base, last), now.first)
    best = sorted(now.seen.values(), reverse=True)[: options.spare]
    for program, score in zip(found, scores, strict=True):
        now.seen.setdefault(int(population_of([program]).keys[0]), score)
    is_gain = sorted(now.seen.values(), reverse=True)[: options.spare] != best
    now.idle = 0 if is_gain else now.idle + 1
    if options.rungs > 1 and step % options.swap_every == options.swap_every - 1:
        swap(chains, warmth, options.rungs, step // options.swap_every, random)


def one_at_a_time(
    walk: Walk, start: Population, options: AnnealingOptions, unit: float, random: Generator
) -> tuple[list[Chain], dict[int, float]]:
    """What `anneal` should do. Returns the chains at the end, and all that was seen."""
    programs = programs_of(start)
    scores = scores_of(walk, programs)
    chains = [Chain(*each, score) for each, score in zip(programs, scores, strict=True)]
    seen = {int(key): score for key, score in zip(start.keys, scores, strict=True)}
    first, last = options.first * unit, options.last * unit
    now = Rounds(chains, seen, first, first, reheats=options.reheats)
    for step in range(options.steps):
        go(now, walk, options, step, last, random)
        if options.idle_steps and now.idle >= options.idle_steps:
            if not now.reheats:
                break
            now.reheats, now.idle, now.begun = now.reheats - 1, 0, step
            now.first = now.base = max(0.5 * now.first, last)
            restart(now, walk, options, random)
    return now.chains, now.seen


SMALL = AnnealingOptions(chains=12, steps=30, reheats=0, spare=6, idle_steps=0)
VARIATIONS = {
    "vanilla": replace(VANILLA, chains=12, steps=30, spare=6, idle_steps=4),
    "exponential": SMALL,
    "adaptive": replace(SMALL, cooling=Cooling.ADAPTIVE),
    "tempering": replace(SMALL, cooling=Cooling.CONSTANT, rungs=4, swap_every=2),
    "reheating": replace(SMALL, idle_steps=3, reheats=3),
    "two tries": replace(SMALL, tries=2, leap=0.7),
}


@pytest.mark.parametrize("name", VARIATIONS)
@pytest.mark.parametrize("seed", range(3))
def test_chains_do_what_chains_do_one_at_a_time(name: str, seed: int) -> None:
    options = VARIATIONS[name]
    tables = make_space_tables(SPACE, options.weights)
    allowed = ALL.copy()
    allowed[3 + seed % 2] = seed == 0
    walk = walk_of(tables, allowed)
    start = walk.fresh(options.chains, np.random.default_rng(seed))
    archive = Archive(tables.width, options.spare, NONE)
    temperatures = Temperatures(options, 0.7, options.chains)
    ends = anneal(walk, start, options, temperatures, archive, np.random.default_rng(seed + 100))
    chains, seen = one_at_a_time(walk, start, options, 0.7, np.random.default_rng(seed + 100))
    expected = population_of([(one.sketch, one.genes) for one in chains])
    assert ends.sketch.tolist() == expected.sketch.tolist()
    assert ends.genes.tolist() == expected.genes.tolist()
    best = sorted(seen.values(), reverse=True)[: options.spare]
    assert archive.scores.tolist() == pytest.approx(best)
    assert len(archive.population.first_of_each()) == len(archive.scores) == len(best)


# What they find


ENDS = {
    "mended": AnnealingOptions(),
    "linear": AnnealingOptions(cooling=Cooling.LINEAR),
    "adaptive": AnnealingOptions(cooling=Cooling.ADAPTIVE),
    "tempering": AnnealingOptions(cooling=Cooling.CONSTANT, rungs=8),
}


@pytest.mark.parametrize("name", ENDS)
def test_chains_find_the_best_of_a_small_space(name: str) -> None:
    options = replace(ENDS[name], chains=32, steps=150)
    walk = walk_of(TABLES, noise=0.0)
    archive = Archive(TABLES.width, 8, NONE)
    start = walk.fresh(options.chains, np.random.default_rng(0))
    temperatures = Temperatures(options, unit_of(options.scale, walk.judge(start)), len(start))
    anneal(walk, start, options, temperatures, archive, np.random.default_rng(1))
    assert archive.scores[0] == pytest.approx(-math.log(BEST_S))


def test_the_best_of_the_landscape_is_the_best() -> None:
    band = everything(TABLES, 10**7).take(np.arange(0, 166_519, 97))
    assert Oracle().scores(band).max() <= -math.log(BEST_S)


def test_vanilla_finds_the_best_of_a_smaller_space_still() -> None:
    """Its temperature of 1 is a random walk here, where scores differ by less."""
    only = ALL & (np.array([sketch.name for sketch in SPACE.sketches]) == "plain")
    walk = walk_of(TABLES, only, noise=0.0)
    archive = Archive(TABLES.width, 8, NONE)
    options = replace(VANILLA, chains=16, steps=60)
    start = walk.fresh(options.chains, np.random.default_rng(0))
    anneal(walk, start, options, Temperatures(options, 1.0, 16), archive, np.random.default_rng(1))
    whole = everything(TABLES, 10**7)
    plain = whole.take(whole.sketch == int(np.flatnonzero(only)[0]))
    assert archive.scores[0] == Oracle().scores(plain).max()


@pytest.mark.parametrize("cooling", [Cooling.EXPONENTIAL, Cooling.ADAPTIVE])
def test_a_search_finds_the_best_of_a_small_space(cooling: Cooling) -> None:
    options = AnnealingOptions(chains=48, steps=80, cooling=cooling)
    strategy = GuidedSearch(TASK, SPACE, 0, Oracle(0.1), options)
    best = math.inf
    for _ in range(6):
        records = [record_of(one) for one in strategy.propose(16)]
        strategy.observe(records)
        best = min(best, *(one.median_s for one in records))
    assert best == BEST_S


def test_a_search_goes_on_from_its_records_alone() -> None:
    options = AnnealingOptions(chains=32, steps=20)
    through = GuidedSearch(TASK, SPACE, 3, Oracle(), options)
    records = []
    for _ in range(4):
        fresh = [record_of(one) for one in through.propose(16)]
        through.observe(fresh)
        records += fresh
    resumed = GuidedSearch(TASK, SPACE, 3, Oracle(), options)
    resumed.observe(records)
    assert resumed.propose(16) == through.propose(16)


def test_vanilla_begins_at_random_and_plans_for_several_rounds() -> None:
    asked: list[int] = []

    class Counting(Oracle):
        def scores(self, population: Population) -> np.ndarray:
            asked.append(len(population))
            return super().scores(population)

    options = replace(VANILLA, chains=16, steps=10, plan=32, random_first=32)
    strategy = GuidedSearch(TASK, SPACE, 0, Counting(), options)
    calls = []
    for _ in range(6):
        found = strategy.propose(16)
        strategy.observe([record_of(one) for one in found])
        calls.append(len(asked) - 1)  # one asks what to expect of the candidates
        asked.clear()
    assert calls[:2] == [0, 0]
    assert calls[2] > 0
    assert calls[3] == 0, "half of the plan was left"
    assert calls[4] > 0


def test_the_default_comes_first_then_what_rules_promise() -> None:
    options = AnnealingOptions(chains=16, steps=10, start_share=0.25)
    found = GuidedSearch(TASK, SPACE, 0, Oracle(), options).propose(16)
    assert found[0] == default_candidate(SPACE)
    defaults = {sketch.name: tuple(sorted(sketch.defaults.items())) for sketch in SPACE.sketches}
    by_rule = [one.sketch for one in found[:4] if one.decisions == defaults[one.sketch]]
    times = {name: time_s(name, dict(own)) for name, own in defaults.items() if name != "root"}
    assert by_rule == ["root", *sorted(times, key=times.__getitem__)[:3]]


def test_without_a_gain_chains_start_afresh_elsewhere() -> None:
    options = AnnealingOptions(chains=16, steps=5, patience=8, islands=1, epsilon=0.0)
    strategy = GuidedSearch(TASK, SPACE, 0, Oracle(), options)
    first = [record_of(one) for one in strategy.propose(16)]
    strategy.observe(sorted(first, key=lambda one: one.median_s))
    found = strategy.promising(np.random.default_rng(0), 8)
    best, _ = strategy.history.best(1)
    families = TABLES.family
    assert families[best.sketch[0]] == families[0]
    assert (found.sketch != best.sketch[0]).all()


# The parts


def test_temperatures_fall_from_the_first_to_the_last() -> None:
    linear = Temperatures(replace(VANILLA, steps=10), 2.0, 3)
    assert linear.at(0).tolist() == [2.0, 2.0, 2.0]
    assert linear.at(5)[0] == pytest.approx(1.0)
    assert linear.at(10)[0] == 0.0
    options = AnnealingOptions(first=1.0, last=0.01, steps=10)
    exponential = Temperatures(options, 3.0, 1)
    assert exponential.at(5)[0] == pytest.approx(0.3)
    exponential.reheat(5)
    assert exponential.at(5)[0] == pytest.approx(1.5)
    assert exponential.at(10)[0] == pytest.approx(0.03)
    ladder = Temperatures(replace(options, cooling=Cooling.CONSTANT, rungs=3, coldest=0.01), 1.0, 6)
    assert ladder.at(7) == pytest.approx([1.0, 0.1, 0.01] * 2)


def test_adaptive_cooling_follows_the_share_of_accepted_steps() -> None:
    adaptive = Temperatures(AnnealingOptions(cooling=Cooling.ADAPTIVE, steps=100), 1.0, 1)
    before = adaptive.at(30)[0]
    adaptive.note(30, 0.9)
    cooler = adaptive.at(31)[0]
    adaptive.note(31, 0.1)
    assert cooler < before
    assert adaptive.at(32)[0] > cooler
    course = [wanted_acceptance(share) for share in np.linspace(0, 1, 50)]
    assert course == sorted(course, reverse=True)
    assert course[0] == 1.0
    assert course[-1] < 0.01


def test_temperatures_are_told_in_the_spread_of_scores() -> None:
    scores = np.random.default_rng(0).normal(5.0, 3.0, 4000)
    assert unit_of(Scale.SPREAD, scores) == pytest.approx(3.0, rel=0.1)
    assert unit_of(Scale.SPREAD, np.append(scores, -np.inf)) == pytest.approx(3.0, rel=0.1)
    assert unit_of(Scale.SCORES, scores) == 1.0
    assert unit_of(Scale.SPREAD, np.ones(4)) == 1.0
    assert unit_of(Scale.SPREAD, np.array([-np.inf, 0.0])) == 1.0


def test_an_archive_has_the_best_of_all_that_was_seen() -> None:
    random = np.random.default_rng(0)
    known = np.sort(sample(TABLES, 50, random).keys)
    archive = Archive(TABLES.width, 10, known)
    seen: dict[int, float] = {}
    for _ in range(20):
        part = sample(TABLES, 16, random)
        scores = Oracle(0.2).scores(part)
        scores[0] = -np.inf
        seen |= {
            int(key): float(score)
            for key, score in zip(part.keys[1:], scores[1:], strict=True)
            if key not in known
        }
        archive.add(part, scores)
    assert archive.scores.tolist() == sorted(seen.values(), reverse=True)[:10]
    assert archive.population.keys.tolist() == sorted(seen, key=lambda key: -seen[key])[:10]


def gain_of(picked: list[int], population: Population, scores: np.ndarray, variety: float) -> float:
    """What `pick_covering` makes large, counted with sets."""
    worth = 0.0
    taken: set[tuple[str, int, tuple[int, ...]]] = set()
    for n in picked:
        sketch = SPACE.sketches[int(population.sketch[n])]
        rows = {
            (sketch.family, choice.names[0], choice.values[int(gene)])
            for choice, gene in zip(sketch.choices, population.genes[n], strict=False)
        }
        worth += scores[n] / scores.std() + variety * len(rows - taken) / max(len(rows), 1)
        taken |= rows
    return worth


@pytest.mark.parametrize("variety", [0.0, 0.5, 3.0])
def test_picks_are_greedy_for_scores_and_decisions(variety: float) -> None:
    allowed = np.array([0], np.int64)
    population = sample(TABLES, 40, np.random.default_rng(2), allowed)
    scores = np.random.default_rng(3).normal(0.0, 2.0, len(population))
    found = pick_covering(TABLES, population, scores, 8, variety).tolist()
    picked: list[int] = []
    for _ in range(8):
        worths = {
            n: gain_of([*picked, n], population, scores, variety)
            for n in range(len(population))
            if n not in picked
        }
        picked.append(max(worths, key=worths.__getitem__))
    assert found == picked
    if not variety:
        assert found == np.argsort(-scores)[:8].tolist()


@pytest.mark.parametrize(
    "wrong",
    [
        {"chains": 0},
        {"steps": 0},
        {"leap": 1.5},
        {"coldest": 0.0},
        {"last": 2.0},
        {"rungs": 200},
        {"epsilon": -0.1},
    ],
)
def test_numbers_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=f"annealing option {next(iter(wrong))}"):
        AnnealingOptions(**wrong)  # type: ignore[arg-type]


def test_every_way_to_pick_gives_programs_of_the_space() -> None:
    for pick in Pick:
        options = AnnealingOptions(chains=16, steps=5, pick=pick)
        found = GuidedSearch(TASK, SPACE, 0, Oracle(), options).promising(
            np.random.default_rng(0), 5
        )
        assert len(found) >= 5
        assert TABLES.valid(found).all()
