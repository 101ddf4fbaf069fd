"""Rules at tensors of many dimensions: which rule of few has to be proved for them.

relu(concat[3](?x, ?y)) == ...  at (2, 3, 4, 5, 6), (2, 3, 4, 7, 6)
follows from                    relu(concat[1](?x, ?y)) == ... at (24, 5, 6), (24, 7, 6)
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from tensorwright.rewriting.egraph import Applies, Value
from tensorwright.rewriting.operators import IntShape
from tensorwright.rewriting.prove import concrete_rule, longest_list, most_dimensions, reduced_at
from tensorwright.rewriting.terms import Param, Rule

MOST_DIMENSIONS = 8
"""Tensors of more are none of rules' concern."""


def is_of_few(rule: Rule, values: Mapping[str, Value], shapes: Mapping[str, IntShape]) -> bool:
    """Whether no tensor of an application has more dimensions than those for which it is proved."""
    lists = tuple((name, each) for name, each in values.items() if isinstance(each, tuple))
    ranks = (len(shape) for shape in shapes.values())
    return max(_longest_list(rule, lists), *ranks, 0) <= most_dimensions(rule)


@lru_cache(maxsize=1 << 12)
def _longest_list(rule: Rule, lists: tuple[tuple[str, tuple[Param, ...]], ...]) -> int:
    return longest_list(concrete_rule(rule, dict(lists)) if lists else rule)


def rule_of_few(
    rule: Rule, values: Mapping[str, Value], shapes: Mapping[str, IntShape]
) -> Rule | Applies:
    """The rule that holds for few dimensions just where this application does; NO or UNKNOWN where
    there is none.
    """
    return _rule_of_few(rule, tuple(sorted(values.items())), tuple(sorted(shapes.items())))


@lru_cache(maxsize=1 << 12)
def _rule_of_few(
    rule: Rule, values: tuple[tuple[str, Value], ...], shapes: tuple[tuple[str, IntShape], ...]
) -> Rule | Applies:
    listed = {name: value if isinstance(value, tuple) else (value,) for name, value in values}
    return reduced_at(concrete_rule(rule, listed), dict(shapes))
