"""Operator properties: equalities that are taken as true, and how they are written.

An axiom is a rule (`terms.py`) with parameter variables, named with an underscore:

    concat-ewadd: ewadd(concat[_axis](?x, ?y), concat[_axis](?z, ?w))
                  == concat[_axis](ewadd(?x, ?z), ewadd(?y, ?w))

holds for all parameters and all inputs for which both sides are well-typed and the condition is
true.  `x._axis` is the extent of ?x along a parameter; an axiom with such an extent, and one under
a line `for NAMES in (VALUES) ...`, is written out for each value.  Where a variable stands for all
parameters that are left (`transpose[_perm](?x)`), it takes them all.

    for _p; _a in (1, 0; 0) (1, 0; 1)    the next axiom, once for each pair; several `for` multiply
    for _a; _b in different axes         each pair of two axes; `rising axes`: the first is smaller
    for _p; _a; _b in permuted axes      each axis of some permutations, and where it goes
    on TERM                              the next axiom is also tried where TERM matches
    [reassociating]                      after an axiom: true of reals, not of floats
    [forward]                            it is read from left to right alone
    [shortcut]                           it follows from those without this mark; proofs get short

Lines that begin with # say nothing; a line that begins with spaces continues the one before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import permutations
from typing import TypeAlias

from tensorwright.base import UsageError
from tensorwright.rewriting.egraph import variables_of
from tensorwright.rewriting.operators import operator_named
from tensorwright.rewriting.terms import Apply, Rule, Term, applications
from tensorwright.rewriting.text import parse_rule, parse_term, rule_text

_AXES = ("0", "1", "2", "3")
_FLAGS = frozenset({"forward", "shortcut"})
_DIFFERENT = tuple(permutations(_AXES, 2))
_PERMUTATIONS = ("10", "021", "102", "210", "0132", "1023", "0213", "0231", "0312", "3210")
_LISTS = {
    "different axes": _DIFFERENT,
    "rising axes": tuple(pair for pair in _DIFFERENT if pair[0] < pair[1]),
    "permuted axes": tuple(
        (", ".join(perm), axis, str(perm.index(axis)))
        for perm in _PERMUTATIONS
        for axis in sorted(perm)
    ),
}


Choice: TypeAlias = tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]
"""Parameter variables, and the values that they take together."""


@dataclass(frozen=True, slots=True, eq=False)
class Axiom:
    """An equality that is taken as true.

    rule      what it says; names with an underscore are parameter variables
    triggers  terms at which it is tried: each binds all variables
    shortcut  whether it follows from the others, and is there to make proofs short
    """

    rule: Rule
    triggers: tuple[Apply, ...]
    shortcut: bool = False

    @property
    def name(self) -> str:
        """The name of the line in the file; all instances of one line share it."""
        return self.rule.name

    def __str__(self) -> str:
        return rule_text(self.rule)


def parse_axioms(text: str, origin: str) -> tuple[Axiom, ...]:
    """Read a file of axioms; `origin` names it in errors.

    Raises:  UsageError that names the line.
    """
    found: list[Axiom] = []
    choices: list[Choice] = []
    extra: list[str] = []
    for line in _joined(text):
        if line.startswith("for "):
            choices.append(_parse_for(line, origin))
        elif line.startswith("on "):
            extra.append(line[3:])
        else:
            for one, triggers in _written_out(line, tuple(extra), tuple(choices)):
                found.append(_parse_axiom(one, triggers, origin))
            choices, extra = [], []
    return tuple(found)


def _joined(text: str) -> Iterator[str]:
    """The logical lines."""
    waiting = ""
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith(" "):
            waiting = f"{waiting} {line.strip()}"
            continue
        if waiting:
            yield waiting
        waiting = line.strip()
    if waiting:
        yield waiting


def _parse_for(line: str, origin: str) -> Choice:
    names, found, values = line[4:].partition(" in ")
    wanted = tuple(name.strip() for name in names.split(";"))
    groups = _LISTS.get(values.strip()) or tuple(
        tuple(part.strip() for part in group.split(";"))
        for group in re.findall(r"\(([^()]*)\)", values)
    )
    if not found or not groups or any(len(group) != len(wanted) for group in groups):
        raise _fault(origin, line, "it is no `for _a; _b in (1; 2) (2; 1)`")
    return wanted, groups


def _written_out(
    line: str,
    triggers: tuple[str, ...],
    choices: tuple[Choice, ...],
) -> Iterator[tuple[str, tuple[str, ...]]]:
    if choices:
        names, groups = choices[0]
        for group in groups:
            values = dict(zip(names, group, strict=True))
            line_of, *rest = (_put(each, values) for each in (line, *triggers))
            yield from _written_out(line_of, tuple(rest), choices[1:])
        return
    axis = re.search(r"\w\.(_\w+)", line)
    if axis is None:
        yield line, triggers
        return
    for value in _AXES:
        put = {axis.group(1): value}
        yield from _written_out(_put(line, put), tuple(_put(t, put) for t in triggers), ())


def _put(text: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", value, text)
    return text


def _parse_axiom(line: str, triggers: tuple[str, ...], origin: str) -> Axiom:
    rule = parse_rule(_sized(line))
    flags = {flag.strip() for flag in rule.stamp.split(",") if flag.strip()}
    if not rule.name or flags - _FLAGS or len(rule.left) != 1:
        raise _fault(origin, line, "an axiom has a name, one root, and no such mark")
    for side in (*rule.left, *rule.right):
        for each in applications(side):
            operator_named(each.operator)
    wanted = variables_of(*rule.left, *rule.right)
    candidates: list[Term] = list(rule.left)
    if "forward" not in flags:
        candidates += rule.right
    candidates += [parse_term(_sized(each)) for each in triggers]
    tried = [c for c in candidates if isinstance(c, Apply) and wanted <= variables_of(c)]
    if not tried:
        raise _fault(origin, line, "neither side binds all of its variables; add a line `on TERM`")
    return Axiom(
        rule=replace(rule, stamp=""),
        triggers=tuple(tried),
        shortcut="shortcut" in flags,
    )


def _sized(line: str) -> str:
    """Write a parameter variable in arithmetic as the extent `_v.0`: sizes are made of extents."""
    head, colon, body = line.partition(":") if re.match(r"[\w-]+\s*:", line) else ("", "", line)

    def in_brackets(match: re.Match[str]) -> str:
        if not match.group(1).strip():
            return ""
        parts = [part.strip() for part in match.group(1).split(",")]
        kept = [part if re.fullmatch(r"\w+", part) else _dotted(part) for part in parts]
        return f"[{', '.join(kept)}]"

    terms, has_condition, condition = body.partition(" if ")
    text = re.sub(r"\[([^\[\]]*)\]", in_brackets, terms)
    if has_condition:
        text += has_condition + _dotted(condition)
    return head + colon + text


def _dotted(text: str) -> str:
    return re.sub(r"(?<![\w.])(_\w+)(?![\w.])", r"\1.0", text)


def instances(axioms: Iterable[Axiom]) -> dict[str, tuple[Axiom, ...]]:
    """The axioms by name: one line of a file may be written out for several values."""
    found: dict[str, list[Axiom]] = {}
    for axiom in axioms:
        found.setdefault(axiom.name, []).append(axiom)
    return {name: tuple(each) for name, each in found.items()}


def _fault(origin: str, line: str, reason: str) -> UsageError:
    return UsageError(stage="rules", where=f"{origin}: {line}", reason=reason)
