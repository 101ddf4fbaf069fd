"""The new matches of a rewrite, at which it has not been applied yet.

    relu(relu(?x)) -> relu(?x)                one root: nodes of relu that are new, or below which
                                              a class changed since the rewrite was looked for last
    matmul(?x, ?y), matmul(?x, ?z) -> ...     several roots: the matches of each, joined by ?x

Matches beyond a limit are left for later.

Matching as work on arrays: a table for each operator, and a pattern as a join of tables.

    matmul     node  head  class  arguments          the pattern matmul(?x, matmul(?y, ?z))
                  3     7      3      0      1        joins rows with rows whose class is the second
                  4     7      4      3      2        argument: no row here; had 4 the class 1, one

A join sorts the rows of the inner table by class once, and finds those of each outer row by binary
search.  Only matches that are newer than the last search become Python objects.

Source:  Zhang et al., Relational e-matching, POPL 2022.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tensorwright.rewriting.egraph.analysis import Data
from tensorwright.rewriting.egraph.egraph import EGraph, Head, Id
from tensorwright.rewriting.egraph.matching import Bound, Match, Matcher, Sizes
from tensorwright.rewriting.egraph.patterns import NodePattern, Rewrite, RootPattern, Trigger

Numbers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class OperatorTable:
    """The nodes of an operator, one of each congruent set, in the order in which they came.

    node, head, born   of each row
    arguments          the classes of the arguments, a column for each
    by_class           the rows in the order of their classes, which `classes` are
    is_open            whether rewrites are tried there
    """

    node: Numbers
    head: Numbers
    born: Numbers
    arguments: tuple[Numbers, ...]
    by_class: Numbers
    classes: Numbers
    is_open: NDArray[np.bool_]


@dataclass(slots=True)
class _Matches:
    """Partial matches, a row each: the values of variables, and the time of the newest part."""

    tensors: list[Numbers | None]
    params: list[Numbers | None]
    stamp: Numbers
    root: Numbers
    heads: list[tuple[NodePattern, Numbers]] = field(default_factory=list)
    waiting: list[Numbers] = field(default_factory=list)  # rows of the tables further out

    def take(self, kept: Numbers) -> None:
        """Keep some rows, in this order, maybe repeatedly."""
        self.tensors = [None if each is None else each[kept] for each in self.tensors]
        self.params = [None if each is None else each[kept] for each in self.params]
        self.stamp, self.root = self.stamp[kept], self.root[kept]
        self.heads = [(pattern, heads[kept]) for pattern, heads in self.heads]
        self.waiting = [each[kept] for each in self.waiting]


@dataclass(frozen=True, slots=True, eq=False)
class TableMatches(Generic[Data]):
    """All matches of a pattern in one version of a graph."""

    _matches: _Matches
    _matcher: Matcher[Data]

    def since(self, clock: int) -> Iterator[tuple[Id, Match]]:
        """The matches with a part from this time or later, each with its root."""
        chosen = np.flatnonzero(self._matches.stamp >= clock)
        tensors, params = (
            [each[chosen].tolist() for each in columns if each is not None]
            for columns in (self._matches.tensors, self._matches.params)
        )
        sizes: list[Sizes] = [()] * len(chosen)
        for pattern, heads in self._matches.heads:
            bindings = (self._matcher.bindings(pattern, Head(at)) for at in heads[chosen].tolist())
            own_sizes = [() if each is None else each[1] for each in bindings]
            if any(own_sizes):
                sizes = [one + other for one, other in zip(sizes, own_sizes, strict=True)]
        empty = [()] * len(chosen)
        rows = zip(
            self._matches.root[chosen].tolist(),
            zip(*tensors, strict=True) if tensors else empty,
            zip(*params, strict=True) if params else empty,
            sizes,
            strict=True,
        )
        for root, nodes, values, its_sizes in rows:
            yield Id(root), Match(nodes, values, its_sizes)


class Tables(Generic[Data]):
    """The tables of one version of a graph.

    is_open   whether rewrites are tried at a class with these data
    """

    def __init__(
        self,
        graph: EGraph[Data],
        matcher: Matcher[Data],
        is_open: Callable[[Data], bool] | None,
    ) -> None:
        self._graph = graph
        self._matcher = matcher
        self._is_open = is_open
        self._tables: dict[str, OperatorTable] = {}
        size = len(graph)
        self._leader = np.fromiter(map(graph.find, map(Id, range(size))), np.int64, size)
        self._changed = np.zeros(size, np.int64)
        for leader in np.unique(self._leader).tolist():
            self._changed[leader] = graph.changed(leader)

    def find(self, pattern: RootPattern) -> TableMatches[Data]:
        """All matches of a pattern at nodes where rewrites are tried."""
        variables = pattern.variables
        table = self._table(pattern.node)
        rows = np.flatnonzero(table.is_open)
        matches = _Matches(
            [None] * len(variables.tensors),
            [None] * len(variables.params),
            np.zeros(len(rows), np.int64),
            table.node[rows],
        )
        self._join(pattern.node, rows, matches)
        return TableMatches(matches, self._matcher)

    def _join(self, pattern: NodePattern, rows: Numbers, matches: _Matches) -> None:
        """Extend each match by the rows of the pattern's table that fit."""
        table = self._table(pattern)
        rows, has_sizes = self._bind_params(pattern, table, rows, matches)
        matches.stamp = np.maximum(matches.stamp, table.born[rows])
        if has_sizes:
            matches.heads.append((pattern, table.head[rows]))
        for number, arg in enumerate(pattern.args):
            child = table.arguments[number][rows]
            if isinstance(arg, int):
                bound = matches.tensors[arg]
                if bound is None:
                    matches.tensors[arg] = child
                    continue
                kept = np.flatnonzero(bound == child)
                matches.take(kept)
                rows, child = rows[kept], child[kept]
                matches.stamp = np.maximum(matches.stamp, self._changed[child])
                continue
            inner = self._table(arg)
            first = np.searchsorted(inner.classes, child, "left")
            counts = np.searchsorted(inner.classes, child, "right") - first
            kept = np.repeat(np.arange(len(child)), counts)
            starts = np.repeat(first - np.cumsum(counts) + counts, counts)
            theirs = inner.by_class[starts + np.arange(len(kept))]
            matches.take(kept)
            matches.stamp = np.maximum(matches.stamp, self._changed[child[kept]])
            matches.waiting.append(rows[kept])
            self._join(arg, theirs, matches)
            rows = matches.waiting.pop()

    def _bind_params(
        self, pattern: NodePattern, table: OperatorTable, rows: Numbers, matches: _Matches
    ) -> tuple[Numbers, bool]:
        """The rows whose parameters fit, and whether some have sizes that are compared later."""
        heads, which = np.unique(table.head[rows], return_inverse=True)
        bindings = [self._matcher.bindings(pattern, Head(head)) for head in heads.tolist()]
        fits = np.array([each is not None for each in bindings], bool)[which]
        bound = [dict(each[0]) if each is not None else {} for each in bindings]
        columns = {
            index: np.array([each.get(index, -1) for each in bound], np.int64)[which]
            for index in {index for each in bound for index in each}
        }
        for index, column in columns.items():
            former = matches.params[index]
            if former is None:
                matches.params[index] = column
            else:
                fits &= former == column
        has_sizes = any(each is not None and each[1] for each in bindings)
        if fits.all():
            return rows, has_sizes
        kept = np.flatnonzero(fits)
        matches.take(kept)
        return rows[kept], has_sizes

    def _table(self, pattern: NodePattern) -> OperatorTable:
        table = self._tables.get(pattern.operator)
        if table is None:
            made = self._made(pattern.operator, len(pattern.args))
            table = self._tables[pattern.operator] = made
        return table

    def _made(self, operator: str, arity: int) -> OperatorTable:
        graph = self._graph
        names = graph.with_operator(operator)
        node = np.array(names, np.int64)
        children = np.array([graph.children(name) for name in names], np.int64)
        children = children.reshape(len(names), arity)
        own = self._leader[node] if len(names) else node
        by_class = np.argsort(own, kind="stable")
        is_open = np.ones(len(names), bool)
        if self._is_open is not None:
            test, data = self._is_open, graph.data
            is_open = np.array([test(data(name)) for name in names], bool)
        return OperatorTable(
            node,
            np.array([graph.head_of(name) for name in names], np.int64),
            np.array([graph.born(name) for name in names], np.int64),
            tuple(self._leader[children[:, number]] for number in range(arity)),
            by_class,
            own[by_class],
            is_open,
        )


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
        """The matches of a pattern with a part newer than `since`, and others, with their roots."""
        joined = self._by_joins(pattern)
        if joined is not None:
            yield from joined.since(since)
            return
        for name in self.with_operator(pattern.node.operator):
            if self.graph.born(name) >= since or self._has_changed(name, pattern.depth, since):
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

    def _has_changed(self, name: Id, depth: int, since: int) -> bool:
        """Whether a class up to `depth` levels below a node changed."""
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


class Search(Generic[Data]):
    """A rewrite looked for by one of its triggers.

    is_cut  whether the last look stopped at the limit
    """

    def __init__(
        self, index: GraphIndex[Data], rewrite: Rewrite, trigger: Trigger, done: set[Match]
    ) -> None:
        self.rewrite = rewrite
        self.is_cut = False
        self.has_one_root = len(trigger.patterns) == 1
        self._index = index
        self._done = done
        self._patterns = trigger.patterns
        self._since = 0

    def matches(self, limit: int) -> list[Match]:
        """New matches, which count as done.

        limit   of the matches of one pattern, of which others come next time; of several patterns
                together, no more matches are looked at, new or not
        """
        new: list[Match] = []
        old = 0
        for match in self._all():
            if match in self._done:
                old += not self.has_one_root
            else:
                self._done.add(match)
                new.append(match)
            if len(new) + old >= limit:
                self.is_cut = True
                return new
        self.is_cut = False
        self._since = self._index.graph.clock + 1
        return new

    def _all(self) -> Iterator[Match]:
        """Of one pattern, the matches at nodes that are new or above a change, and maybe others; of
        several patterns those at nodes that are not all equal.
        """
        if self.has_one_root:
            (pattern,) = self._patterns
            return (match for _, match in self._index.matches(pattern, self._since))
        variables = self.rewrite.variables
        options = [self._index.options(pattern) for pattern in self._patterns]
        together = joined(options)
        return (Match.of(variables, bound) for roots, bound in together if len(set(roots)) > 1)


def joined(options: Sequence[Sequence[Option]]) -> Iterator[tuple[tuple[Id, ...], Bound]]:
    """The matches of several patterns that agree: their classes, and the values of all variables.

    One after the other: there may be many, and few are asked for.
    """
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
        yield from _extended((root,), own, tables)


def _extended(
    roots: tuple[Id, ...], bound: Bound, tables: Sequence[Table]
) -> Iterator[tuple[tuple[Id, ...], Bound]]:
    """A match of the first patterns with those of the others that agree with it."""
    if not tables:
        yield roots, bound
        return
    shared, table = tables[0]
    for other, own in table.get(tuple(bound[name] for name in shared), ()):
        yield from _extended((*roots, other), bound | own, tables[1:])


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
                by_growth.append((trigger.growth, Search(index, rewrite, trigger, done)))
            else:
                joins.append(Search(index, rewrite, trigger, set()))
    by_growth.sort(key=lambda entry: entry[0])
    return [search for _, search in by_growth], joins
