"""The fixed workloads whose decisions are kept: of networks, of drawn networks, single operators.

A network is the text of its graph after import and simplification, in `networks/`: no change of a
builder or of PyTorch changes it.  Its constants are zeros of the same shapes: no decision depends
on what they hold.  `python -m tests.decisions.cases` writes the texts again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from tests.decisions import card_cases
from tests.targets import AVX2, AVX512

from tensorwright.base import CpuTarget, DType, Target
from tensorwright.cli.arguments.models import read_graph
from tensorwright.graph import Graph, Workload
from tensorwright.pipeline import cut, import_graph
from tensorwright_lab.graph_text import constants_named, parse
from tensorwright_lab.zoo import OperatorCase, operator_cases, operator_program
from tensorwright_lab.zoo.plausible import draw_network

THREADS = 2
_NETWORKS = Path(__file__).with_name("networks")
_OF_SUITES = (
    "zoo:mobilenet_v2",
    "zoo:resnet50",
    "zoo:bert_base",
    "zoo:nasnet_a",
    "zoo:dcgan",
    "light:squeezenet",
    "light:shufflenet",
    "wild:swin_t",
    "wild:wavenet",
    "wild:deberta",
)
_FIRST_SEED, _DRAWN, _PER_PAGE = 25_000_000, 60, 20


@dataclass(frozen=True, slots=True)
class Grouped:
    """Workloads and how often each runs; `text` says how the nodes of a network were grouped."""

    workloads: tuple[tuple[Workload, int], ...]
    text: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """What is decided at once: a network that is cut, or an operator, for one target."""

    name: str
    target: Target
    group: Callable[[Target], Grouped]
    shows_loops: bool = False
    shows_sketches: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """A golden file of decisions: one network, twenty drawn networks, or one family of operators.

    Targets take turns from page to page of networks, and from part to part elsewhere.
    """

    name: str
    parts: tuple[Part, ...]


def pages() -> Iterator[Page]:
    """All of them, in a fixed order."""
    for number, name in enumerate(_OF_SUITES):
        word = name.replace(":", "-")
        yield Page(word, (Part(word, _target(number), _network(word)),))
    for first in range(_FIRST_SEED, _FIRST_SEED + _DRAWN, _PER_PAGE):
        seeds = range(first, first + _PER_PAGE)
        yield Page(f"drawn-{first}", tuple(_drawn(seed) for seed in seeds))
    families = dict.fromkeys(case.family for case in operator_cases(1))
    for family in families:
        yield Page(f"operator-{family}", tuple(_operators(family)))
    yield Page("card-operators", tuple(_card_operators()))
    yield Page("card-f32", tuple(_card_networks(card_cases.NETWORKS, DType.F32)))
    yield Page("card-f16", tuple(_card_networks(card_cases.IN_HALVES, DType.F16)))


def _target(number: int) -> CpuTarget:
    return (AVX2, AVX512)[number % 2]


def _network(word: str) -> Callable[[Target], Grouped]:
    return lambda target: _cut(read_network(word), target)


def _drawn(seed: int) -> Part:
    def group(target: Target) -> Grouped:
        return _cut(import_graph(draw_network(seed)), target)

    return Part(f"network {seed}", _target(seed), group)


def _operators(family: str) -> Iterator[Part]:
    cases = [case for case in operator_cases() if case.family == family]
    for number, case in enumerate(cases):
        name = f"{case.name} batch {case.batch}"
        yield Part(name, _target(number), _operator(case), shows_loops=case.batch == 1)


def _operator(case: OperatorCase) -> Callable[[Target], Grouped]:
    return lambda _: Grouped(((operator_program(case).workload, 1),))


def _card_operators() -> Iterator[Part]:
    cases = {f"{case.name} batch {case.batch}": case for case in operator_cases()}
    for number, name in enumerate(card_cases.OPERATORS):
        yield Part(name, _card(number), _operator(cases[name]), shows_sketches=True)


def _card_networks(names: Iterable[str], dtype: DType) -> Iterator[Part]:
    for number, name in enumerate(names):
        yield Part(name, _card(number), _card_network(name, dtype), shows_sketches=True)


def _card_network(name: str, dtype: DType) -> Callable[[Target], Grouped]:
    return lambda target: _cut(import_graph(card_cases.network(name, dtype)), target)


def _card(number: int) -> Target:
    return card_cases.CARDS[number % len(card_cases.CARDS)]


def _cut(graph: Graph, target: Target) -> Grouped:
    parts = cut(graph, target, THREADS)
    return Grouped(tuple((each, parts.count(each)) for each in parts.workloads), str(parts))


def read_network(word: str) -> Graph:
    """The network of a text in `networks/`."""
    text = (_NETWORKS / f"{word}.txt").read_text()
    named = constants_named(text)
    return parse(text, {c.name: np.zeros(c.type.shape, c.type.dtype.numpy) for c in named})


def write_network(model: str) -> None:
    """Write the text of a network of a suite, its constants as zeros."""
    graph = import_graph(read_graph(model))
    zeros = {name: np.zeros_like(array) for name, array in graph.constants.items()}
    _NETWORKS.mkdir(exist_ok=True)
    text = str(replace(graph, constants=zeros))
    (_NETWORKS / f"{model.replace(':', '-')}.txt").write_text(f"{text}\n")


if __name__ == "__main__":
    for each in _OF_SUITES:
        write_network(each)
