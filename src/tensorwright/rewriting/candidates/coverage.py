"""Count the places of a network, as it was read, where each rule can be applied.

relu(concat[_axis](?x, ?y)) == ...     at the relu of a concatenation, from left to right; and where
                                       relus are concatenated, from right to left: 2 places
matmul(?x, ?y), matmul(?x, ?z) == ...  a pair of products that share a tensor is a place
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tensorwright.rewriting.derivation import rule_set
from tensorwright.rewriting.egraph import Id, Limits, Match, Rewrite, RootPattern, Runner
from tensorwright.rewriting.networks import Network, TensorData
from tensorwright.rewriting.terms import Rule

Bound = Mapping[str, int]


def places_of_rules(network: Network, rules: Iterable[Rule]) -> dict[str, int]:
    """The number of places of each rule, by its name; those of several roots that share no tensor
    have none, since no search tries them.
    """
    listed = tuple(rules)
    runner = Runner(network.terms, Limits())
    counts = dict.fromkeys((rule.name for rule in listed), 0)
    for rewrite in rule_set(listed).rewrites:
        counts[rewrite.name] = len(set(_places(runner, rewrite)))
    return counts


def _places(runner: Runner[TensorData], rewrite: Rewrite) -> Iterator[tuple[Id, ...]]:
    """The classes of the roots of each match where the rule can be applied."""
    for trigger in rewrite.triggers:
        matches = [list(_matches(runner, pattern)) for pattern in trigger.patterns]
        for roots, bound in _joined(matches, trigger.patterns):
            nodes = tuple(Id(bound[name]) for name in rewrite.variables.tensors)
            values = tuple(bound[name] for name in rewrite.variables.params)
            if runner.planned(rewrite, Match(nodes, values, ())) is not None:
                yield roots


def _matches(runner: Runner[TensorData], pattern: RootPattern) -> Iterator[tuple[Id, Bound]]:
    """The matches of a pattern at tensors that are not constant: their classes and variables."""
    graph, matcher, variables = runner.graph, runner.matcher, pattern.variables
    names = (*variables.tensors, *variables.params)
    for name in graph.with_operator(pattern.node.operator):
        if graph.data(name).is_constant:
            continue
        for match in matcher.at(pattern, name):
            if matcher.sizes_agree(variables, match):
                yield graph.find(name), dict(zip(names, (*match.nodes, *match.values), strict=True))


def _joined(
    matches: list[list[tuple[Id, Bound]]], patterns: tuple[RootPattern, ...]
) -> Iterator[tuple[tuple[Id, ...], Bound]]:
    """The matches of one root, or of two that share a tensor: in either order they are one."""
    if len(matches) == 1:
        yield from (((root,), bound) for root, bound in matches[0])
    if len(matches) != 2:
        return
    shared = set(patterns[0].variables.tensors) & set(patterns[1].variables.tensors)
    shared_params = set(patterns[0].variables.params) & set(patterns[1].variables.params)
    if not shared:
        return
    names = (*sorted(shared), *sorted(shared_params))
    table: dict[tuple[int, ...], list[tuple[Id, Bound]]] = {}
    for root, bound in matches[1]:
        table.setdefault(tuple(bound[name] for name in names), []).append((root, bound))
    for one, bound in matches[0]:
        for other, its in table.get(tuple(bound[name] for name in names), ()):
            if one != other:
                yield (min(one, other), max(one, other)), {**bound, **its}
