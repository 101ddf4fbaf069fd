"""The new matches of a rewrite, at which it has not been applied yet.

    relu(relu(?x)) -> relu(?x)                one root: nodes of relu that are new, or below which
                                              a class changed since the rewrite was looked for last
    matmul(?x, ?y), matmul(?x, ?z) -> ...     several roots: the matches of each, joined by ?x

Matches beyond a limit are left for later.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Generic, TypeAlias

from tensorwright.rewriting.egraph.analysis import Data
from tensorwright.rewriting.egraph.egraph import EGraph, Id
from tensorwright.rewriting.egraph.matching import Bound, Match, Matcher
from tensorwright.rewriting.egraph.patterns import Rewrite, RootPattern, Trigger
from tensorwright.rewriting.egraph.tables import TableMatches, Tables

_MANY = 1000  # nodes, from which on tables pay

Option: TypeAlias = tuple[Id, Bound]
"""A class at which a pattern matches, and the values of its variables there."""
Table: TypeAlias = tuple[tuple[str, ...], dict[tuple[int, ...], list[Option]]]
"""Options of a pattern by the values of the variables that it shares with earlier patterns."""


class GraphIndex(Generic[Data]):
    """The index that searches in one graph share; valid until the graph changes.

    is_open   whether rewrites are tried at a class with these data
    """

    def __init__(
        self,
        graph: EGraph[Data],
        matcher: Matcher[Data],
        is_open: Callable[[Data], bool] | None = None,
    ) -> None:
        self.graph = graph
        self.matcher = matcher
        self._is_open = is_open
        self._version = -1
        self._fresh: dict[tuple[int, int, Id], bool] = {}
        self._options: dict[RootPattern, list[Option]] = {}
        self._by_operator: dict[str, tuple[Id, ...]] = {}
        self._matches: dict[RootPattern, TableMatches[Data]] = {}
        self._tables: Tables[Data] | None = None

    def with_operator(self, operator: str) -> tuple[Id, ...]:
        """The nodes of an operator that rewrites are tried at, one of each congruent set."""
        self._keep_up()
        if operator not in self._by_operator:
            nodes = self.graph.with_operator(operator)
            if self._is_open is not None:
                is_open, data = self._is_open, self.graph.data
                nodes = tuple(name for name in nodes if is_open(data(name)))
            self._by_operator[operator] = nodes
        return self._by_operator[operator]

    def matches(self, pattern: RootPattern, since: int = 0) -> Iterator[tuple[Id, Match]]:
        """The matches of a pattern with a part newer than `since`, and maybe others, each with its
        root.
        """
        joined = self._by_joins(pattern)
        if joined is not None:
            yield from joined.since(since)
            return
        for name in self.with_operator(pattern.node.operator):
            if self._is_fresh(name, pattern.depth, since):
                for match in self.matcher.at(pattern, name):
                    yield name, match

    def _by_joins(self, pattern: RootPattern) -> TableMatches[Data] | None:
        """All matches of a pattern; None where there are few nodes."""
        if len(self.graph) < _MANY:
            return None
        self._keep_up()
        if self._tables is None:
            self._tables = Tables(self.graph, self.matcher, self._is_open)
        if pattern not in self._matches:
            self._matches[pattern] = self._tables.find(pattern)
        return self._matches[pattern]

    def _is_fresh(self, name: Id, depth: int, since: int) -> bool:
        """Whether a node is newer than `since`, or a class up to `depth` levels below changed."""
        if self.graph.born(name) >= since:
            return True
        self._keep_up()
        return self._has_changed(name, depth, since)

    def _has_changed(self, name: Id, depth: int, since: int) -> bool:
        if depth == 0:
            return False
        key = (since, depth, name)
        answer = self._fresh.get(key)
        if answer is None:
            self._fresh[key] = False
            graph = self.graph
            answer = self._fresh[key] = any(
                graph.changed(leader) >= since
                or any(self._has_changed(each, depth - 1, since) for each in graph.members(leader))
                for leader in map(graph.find, graph.children(name))
            )
        return answer

    def options(self, pattern: RootPattern) -> list[Option]:
        """The classes at which a pattern matches, its sizes compared, with what it binds there."""
        self._keep_up()
        if pattern not in self._options:
            variables = pattern.variables
            self._options[pattern] = [
                (self.graph.find(name), match.bound(variables))
                for name, match in self.matches(pattern)
                if self.matcher.sizes_agree(variables, match)
            ]
        return self._options[pattern]

    def _keep_up(self) -> None:
        if self._version != self.graph.version:
            self._version = self.graph.version
            self._fresh.clear()
            self._options.clear()
            self._by_operator.clear()
            self._matches.clear()
            self._tables = None


class Search(ABC, Generic[Data]):
    """A rewrite looked for by one of its triggers.

    is_cut  whether the last look stopped at the limit
    """

    def __init__(
        self, index: GraphIndex[Data], rewrite: Rewrite, trigger: Trigger, done: set[Match]
    ) -> None:
        self.rewrite = rewrite
        self.is_cut = False
        self._index = index
        self._done = done
        self._patterns = trigger.patterns

    @abstractmethod
    def matches(self, limit: int) -> list[Match]:
        """New matches, up to a limit; they count as done."""


class RootSearch(Search[Data]):
    """The search for one pattern, at nodes that are new or above a change."""

    _since = 0

    def matches(self, limit: int) -> list[Match]:
        """New matches; those beyond the limit are found the next time."""
        matches: list[Match] = []
        (pattern,) = self._patterns
        for _, match in self._index.matches(pattern, self._since):
            if match in self._done:
                continue
            self._done.add(match)
            matches.append(match)
            if len(matches) >= limit:
                self.is_cut = True
                return matches
        self.is_cut = False
        self._since = self._index.graph.clock + 1
        return matches


class JoinSearch(Search[Data]):
    """The search for several patterns together, at nodes that are not all equal."""

    def matches(self, limit: int) -> list[Match]:
        """The new ones among the first matches, up to a limit."""
        variables = self.rewrite.variables
        matches: list[Match] = []
        seen = 0
        for bound in islice(self._joined(), limit):
            seen += 1
            match = Match.of(variables, bound)
            if match not in self._done:
                self._done.add(match)
                matches.append(match)
        self.is_cut = seen == limit
        return matches

    def _joined(self) -> Iterator[Bound]:
        """The values of the variables where all patterns match."""
        options = [self._index.options(pattern) for pattern in self._patterns]
        if not all(options):
            return
        bound = set(options[0][0][1])
        tables: list[Table] = []
        for some in options[1:]:
            names = some[0][1]
            shared = tuple(name for name in names if name in bound)
            table: dict[tuple[int, ...], list[Option]] = {}
            for option in some:
                table.setdefault(tuple(option[1][name] for name in shared), []).append(option)
            tables.append((shared, table))
            bound.update(names)
        for root, own in options[0]:
            for whole, is_one in _joined(own, root, tables):
                if not is_one:
                    yield whole


def _joined(bound: Bound, root: Id, tables: Sequence[Table]) -> Iterator[tuple[Bound, bool]]:
    """A match of the first pattern with those of the others that fit; whether all are at one root.

    One after the other: there may be many, and few are asked for.
    """
    if not tables:
        yield bound, True
        return
    shared, table = tables[0]
    for other, own in table.get(tuple(bound[name] for name in shared), ()):
        for whole, is_one in _joined(bound | own, root, tables[1:]):
            yield whole, is_one and other == root


def searches_for(
    index: GraphIndex[Data], rewrites: Iterable[Rewrite]
) -> tuple[list[Search[Data]], list[Search[Data]]]:
    """Every rewrite at every trigger: those of one root, what shrinks terms first, then others."""
    by_growth: list[tuple[int, Search[Data]]] = []
    joins: list[Search[Data]] = []
    for rewrite in rewrites:
        done: set[Match] = set()
        for trigger in rewrite.triggers:
            if len(trigger.patterns) == 1:
                by_growth.append((trigger.growth, RootSearch(index, rewrite, trigger, done)))
            else:
                joins.append(JoinSearch(index, rewrite, trigger, set()))
    by_growth.sort(key=lambda entry: entry[0])
    return [search for _, search in by_growth], joins
