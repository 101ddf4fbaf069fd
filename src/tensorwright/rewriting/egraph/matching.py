"""Find the instances of patterns in an e-graph.

    relu(relu(?x))                         looked for at relu(n3); n3's class is {n3, relu(n1)}
    the class of n3 has one relu           below the pattern's outer relu: the node relu(n1)
    Match(nodes=(n1,), values=(), sizes=())

The bindings of a pattern's parameters at a head (an operator with its parameters) are remembered.
A match is three tuples: the classes of the tensor variables, the values of the parameter variables
(numbered, so that they compare fast), and the sizes that can be compared only when all is bound.

Rules of two equal roots, applied to whole groups instead of to all pairs.

    matmul(?x, ?v), matmul(?x, ?w) -> split0[...](matmul(?x, concat[1](?v, ?w))), split1[...](...)
    matmul(a, u), matmul(a, v), matmul(a, w)
        pairs of neighbours     u v | v w
        the chain               u v | (u v) w

Such a rule is a merge: its two roots have the same pattern, and its right side applies that pattern
once, to the operands of both.  A group of n members has n * (n - 1) pairs in both orders, and
merges of merges multiply them again. Neighbours and the chain are only 2 * n - 3 merges, and the
end of the chain merges all members that can be merged.

Source:  Yang et al., TENSAT, MLSys 2021, section 4 names the growth; the chain is ours.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeAlias

from tensorwright.expr import IndexExpr
from tensorwright.rewriting.egraph.analysis import Analysis, Data, Scope, Value, listed
from tensorwright.rewriting.egraph.egraph import EGraph, Head, Id
from tensorwright.rewriting.egraph.patterns import (
    NodePattern,
    Pattern,
    Rewrite,
    RootPattern,
    Variables,
    is_parameter_variable,
)
from tensorwright.rewriting.terms import Apply, Input, Param, Reordered, Term

_FREE = Id(-1)

Sizes: TypeAlias = tuple[tuple[IndexExpr, Param], ...]
"""Sizes in a pattern with the parameters that they must be equal to."""
Bound: TypeAlias = dict[str, int]
"""The values of variables by name: classes, and numbers of parameter values."""
Swaps: TypeAlias = tuple[Id, ...]
Partial: TypeAlias = tuple[tuple[Id, ...], tuple[int, ...], Sizes, Swaps]
Bindings: TypeAlias = "tuple[tuple[tuple[int, int], ...], Sizes]"
"""(index, number of the value) for each parameter variable, and the sizes to be compared."""


class Match(NamedTuple):
    """The values of a pattern's variables, by their indices.

    values  numbers of parameter values, see `Matcher.value`
    sizes   those in the pattern with the parameters that they must be equal to
    swaps   nodes of which the operands were swapped to match
    """

    nodes: tuple[Id, ...]
    values: tuple[int, ...]
    sizes: Sizes = ()
    swaps: Swaps = ()

    @staticmethod
    def of(variables: Variables, bound: Bound) -> Match:
        """The match with these values of variables, its sizes compared."""
        nodes = tuple(Id(bound[name]) for name in variables.tensors)
        return Match(nodes, tuple(bound[name] for name in variables.params))

    def bound(self, variables: Variables) -> Bound:
        """The values of variables, by name."""
        names = (*variables.tensors, *variables.params)
        return dict(zip(names, (*self.nodes, *self.values), strict=True))


class Matched(Protocol):
    """The graph to match in: an e-graph, or a graph in which each node is its own class."""

    @property
    def commutative(self) -> Container[str]:
        """Operators whose operands may be swapped."""
        ...

    def head_of(self, name: Id) -> Head:
        """The head of a node."""
        ...

    def children(self, name: Id) -> tuple[Id, ...]:
        """The nodes below a node."""
        ...

    def find(self, name: Id) -> Id:
        """The representative of all nodes that are equal to a node."""
        ...

    def members(self, name: Id, operator: str) -> Iterable[Id]:
        """The nodes of an operator that are equal to a node."""
        ...


def instance_params(
    params: tuple[Param, ...], scope: Scope[Data], analysis: Analysis[Data]
) -> tuple[Param, ...] | None:
    """Parameters of a pattern where its variables have values; None where one does not exist.

    Raises:  KeyError for a variable without a value.
    """
    replaced: list[Param] = []
    for param in params:
        if isinstance(param, IndexExpr):
            size = analysis.size(param, scope)
            if size is None:
                return None
            replaced.append(size)
        elif isinstance(param, Reordered):
            elements = param.value({name: listed(scope.values[name]) for name in param.names})
            if elements is None:
                return None
            replaced.extend(elements)
        elif is_parameter_variable(param):
            replaced.extend(listed(scope.values[str(param)]))
        else:
            replaced.append(param)
    return tuple(replaced)


class Matcher(Generic[Data]):
    """Looks for patterns in a graph."""

    def __init__(self, graph: EGraph[Data]) -> None:
        self._graph = graph
        self._numbers: dict[Value, int] = {}
        self._values: list[Value] = []
        self._bindings: dict[tuple[int, Head], Bindings | None] = {}

    def value(self, number: int) -> Value:
        """The parameter, or several, of this number."""
        return self._values[number]

    def values(self, variables: Variables, match: Match) -> dict[str, Value]:
        """The values of the parameter variables, by name."""
        return dict(zip(variables.params, map(self.value, match.values), strict=True))

    def scope(
        self, variables: Variables, match: Match, data: tuple[int, ...] | None = None
    ) -> Scope[Data]:
        """The values of the variables; those of tensor variables are the data of their classes.

        data   the numbers of those, where the nodes are not of this graph
        """
        numbers = map(self._graph.data_number, match.nodes) if data is None else data
        tensors = dict(zip(variables.tensors, map(self._graph.data_at, numbers), strict=True))
        return Scope(self.values(variables, match), tensors)

    def sizes_agree(
        self, variables: Variables, match: Match, data: tuple[int, ...] | None = None
    ) -> bool:
        """Whether the sizes in the pattern equal the parameters at their positions."""
        if not match.sizes:
            return True
        scope = self.scope(variables, match, data)
        return all(self._graph.analysis.size(size, scope) == param for size, param in match.sizes)

    def at(self, pattern: RootPattern, name: Id, terms: Matched | None = None) -> list[Match]:
        """The ways in which a node is an instance of a pattern.

        terms   where the node is, if not in this graph; its heads are those of this graph
        """
        variables, terms = pattern.variables, terms or self._graph
        if self.bindings(pattern.node, terms.head_of(name)) is None:  # most often
            return []
        free = (_FREE,) * len(variables.tensors), (-1,) * len(variables.params)
        matches = self._node(terms, pattern.node, name, (*free, (), ()))
        return [Match(*each) for each in matches]

    def bindings(self, pattern: NodePattern, head: Head) -> Bindings | None:
        """The bindings of a pattern's parameters at a head; None where they do not fit."""
        key = (pattern.number, head)
        if key not in self._bindings:
            self._bindings[key] = self._bind_params(pattern, head)
        return self._bindings[key]

    def _node(
        self, terms: Matched, pattern: NodePattern, name: Id, partial: Partial
    ) -> list[Partial]:
        bindings = self.bindings(pattern, terms.head_of(name))
        if bindings is None:
            return []
        nodes, values, sizes, swaps = partial
        for index, value in bindings[0]:
            bound = values[index]
            if bound < 0:
                values = (*values[:index], value, *values[index + 1 :])
            elif bound != value:
                return []
        partial = (nodes, values, sizes + bindings[1], swaps)
        children = terms.children(name)
        matches = self._args(terms, pattern, children, partial)
        if pattern.operator in terms.commutative and children[0] != children[1]:
            partial = (*partial[:3], (*swaps, name))
            matches += self._args(terms, pattern, children[::-1], partial)
        return matches

    def _args(
        self, terms: Matched, pattern: NodePattern, children: tuple[Id, ...], partial: Partial
    ) -> list[Partial]:
        """The ways in which the arguments of a pattern stand for some nodes."""
        matches = [partial]
        for arg, child in zip(pattern.args, children, strict=True):
            if isinstance(arg, int):
                matches = _bind(matches, arg, terms.find(child))
            else:
                matches = [
                    more
                    for each in matches
                    for member in terms.members(child, arg.operator)
                    for more in self._node(terms, arg, member, each)
                ]
            if not matches:
                break
        return matches

    def _bind_params(self, pattern: NodePattern, head: Head) -> Bindings | None:
        """Bind parameter variables; a last variable takes all that are left; sizes come later."""
        operator, actual = self._graph.parts(head)
        wanted = pattern.params
        if operator != pattern.operator or len(wanted) > len(actual):
            return None
        if not wanted and actual:
            return None
        bound: dict[int, int] = {}
        sizes: list[tuple[IndexExpr, Param]] = []
        for index, param in enumerate(wanted):
            value: Value = actual[index]
            if index == len(wanted) - 1 and len(actual) > len(wanted):
                value = actual[index:]
            if isinstance(param, str) and is_parameter_variable(param):
                number = self._numbers.setdefault(value, len(self._values))
                if number == len(self._values):
                    self._values.append(value)
                if bound.setdefault(pattern.variables.params.index(param), number) != number:
                    return None
            elif isinstance(value, tuple):
                return None
            elif isinstance(param, IndexExpr):
                sizes.append((param, value))
            elif param != value:
                return None
        return tuple(bound.items()), tuple(sizes)


def _bind(partials: list[Partial], index: int, leader: Id) -> list[Partial]:
    """The partial matches in which a tensor variable is, or becomes, a class."""
    kept: list[Partial] = []
    for partial in partials:
        nodes = partial[0]
        if nodes[index] == _FREE:
            nodes = (*nodes[:index], leader, *nodes[index + 1 :])
            kept.append((nodes, *partial[1:]))
        elif nodes[index] == leader:
            kept.append(partial)
    return kept


@dataclass(frozen=True, slots=True, eq=False)
class Merge:
    """A rule of two roots that are alike.

    root     the pattern of the first root
    shared   its variables that have the same value in the second
    second   the name of each of its variables in the second
    merged   the pattern of the merged application
    """

    rewrite: Rewrite
    root: RootPattern
    shared: tuple[str, ...]
    second: Mapping[str, str]
    merged: NodePattern

    def match(self, one: Bound, other: Bound) -> Match:
        """The match of both roots, from the values of the first root's variables at each."""
        renamed = {self.second[name]: value for name, value in other.items()}
        return Match.of(self.rewrite.variables, {**renamed, **one})


def merges_among(rewrites: Iterable[Rewrite]) -> tuple[Merge, ...]:
    """The rules that are merges and whose roots share a tensor."""
    merges = (_merge(rewrite) for rewrite in rewrites if len(rewrite.left) == 2)
    return tuple(each for each in merges if each is not None)


def _merge(rewrite: Rewrite) -> Merge | None:
    rule = rewrite.rule
    one, other = rule.left
    patterns = next(
        (
            trigger.patterns
            for trigger in rewrite.triggers
            if tuple(pattern.term for pattern in trigger.patterns) == rule.left
        ),
        None,
    )
    second = _renaming(one, other)
    if patterns is None or second is None or not isinstance(one, Apply):
        return None
    inner = tuple(_inner(root, one.operator) for root in rule.right)
    merged = _inner(rewrite.right[0], one.operator)
    if not isinstance(merged, NodePattern) or inner[0] is None or inner[0] != inner[1]:
        return None
    shared = tuple(name for name, its in second.items() if name == its)
    if not set(shared) & set(patterns[0].variables.tensors):
        return None
    return Merge(rewrite, patterns[0], shared, second, merged)


def _renaming(one: Term, other: Term) -> dict[str, str] | None:
    """The renaming of variables that makes one term the other; None where there is none."""
    if isinstance(one, Input) and isinstance(other, Input):
        return {one.name: other.name}
    if not isinstance(one, Apply) or not isinstance(other, Apply):
        return None
    if one.operator != other.operator or len(one.params) != len(other.params):
        return None
    renaming: dict[str, str] = {}
    pairs: list[dict[str, str] | None] = []
    for own, its in zip(one.params, other.params, strict=True):
        if is_parameter_variable(own) and is_parameter_variable(its):
            pairs.append({str(own): str(its)})
        elif own != its:
            return None
    for each in (*pairs, *map(_renaming, one.args, other.args)):
        if each is None:
            return None
        for own, its in each.items():
            if renaming.setdefault(own, its) != its:
                return None
    return renaming


def _inner(side: Term | Pattern, operator: str) -> Apply | NodePattern | None:
    """The application of an operator below operators of one argument."""
    while isinstance(side, Apply | NodePattern) and side.operator != operator:
        if len(side.args) != 1:
            return None
        (side,) = side.args
    return side if isinstance(side, Apply | NodePattern) else None
