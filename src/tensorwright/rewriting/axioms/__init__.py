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
    for _p; _a; _sizes in moved axes     permutations that move one dimension, that, x's new shape
    for _f in functions                  operators of single elements; `pairs`: of two
    for _conv; _s in convolutions        over planes and over volumes, and their strides
    _q@_p  ~_p@_a                        computed parameters, see `terms.Reordered`
    on TERM                              the next axiom is also tried where TERM matches
    [reassociating]                      after an axiom: true of reals, not of floats
    [forward]                            it is read from left to right alone
    [shortcut]                           it follows from those without this mark; proofs get short

Lines that begin with # are comments; a line that begins with spaces continues the one before.

The axioms that ship with the package.

load_axioms()                     the axioms of taso.rules, then of the other files
set_hash(load_axioms())           eight digits that change when an axiom does
instances(load_axioms())          by name: {"relu-relu": (relu-relu,), ...}
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import permutations
from pathlib import Path
from typing import TypeAlias
from tensorwright.base import UsageError
from tensorwright.rewriting.egraph import can_be_matched, variables_of
from tensorwright.rewriting.operators import FUNCTIONS, PAIRS, RewriteOperator, operator_named
from tensorwright.rewriting.terms import Apply, Reordered, Rule, Term, applications
from tensorwright.rewriting.text import REORDERED, logical_lines, parse_rule, parse_term, rule_text


_AXES = ("0", "1", "2", "3")
_FLAGS = frozenset({"forward", "shortcut"})
_DIFFERENT = tuple(permutations(_AXES, 2))
_KEPT = re.compile(rf"\w+|{REORDERED.pattern}")


def _moved_axes() -> Iterator[tuple[str, ...]]:
    """Permutations that move one of up to four dimensions, that dimension, the result's shape."""
    for rank in range(2, len(_AXES) + 1):
        for perm in permutations(_AXES[:rank]):
            for axis in perm:
                others = [other for other in perm if other != axis]
                if others == sorted(others) and perm != _AXES[:rank]:
                    yield ", ".join(perm), axis, ", ".join(f"x.{at}" for at in perm)


def _applied(operators: Iterable[RewriteOperator]) -> tuple[tuple[str, ...], ...]:
    """Operators with variables for their parameters."""
    applied: list[tuple[str, ...]] = []
    for each in operators:
        params = ", ".join(f"_{parameter.name}" for parameter in each.parameters)
        applied.append((f"{each.name}[{params}]" if params else each.name,))
    return tuple(applied)


_LISTS = {
    "different axes": _DIFFERENT,
    "rising axes": tuple(pair for pair in _DIFFERENT if pair[0] < pair[1]),
    "moved axes": tuple(_moved_axes()),
    "functions": _applied(FUNCTIONS),
    "convolutions": (("conv2d", "_h, _v"), ("conv3d", "_d, _h, _v")),
    "pairs": _applied(operator_named(name) for name in sorted(PAIRS)),
}


Choice: TypeAlias = tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]
"""Parameter variables, and the values that they take together."""


@dataclass(frozen=True, slots=True, eq=False)
class Axiom:
    """An equality that is taken as true.

    rule      the equality; names with an underscore are parameter variables
    triggers  terms at which it is tried: each binds all variables
    shortcut  whether it follows from the others and only makes proofs short
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
    """Read a file of axioms; `origin` names it in errors."""
    axioms: list[Axiom] = []
    choices: list[Choice] = []
    extra: list[str] = []
    for line in logical_lines(text):
        if line.startswith("for "):
            choices.append(_parse_for(line, origin))
        elif line.startswith("on "):
            extra.append(line[3:])
        else:
            for one, triggers in _written_out(line, tuple(extra), tuple(choices)):
                axioms.append(_parse_axiom(one, triggers, origin))
            choices, extra = [], []
    return tuple(axioms)


def _parse_for(line: str, origin: str) -> Choice:
    names, separator, values = line[4:].partition(" in ")
    wanted = tuple(name.strip() for name in names.split(";"))
    groups = _LISTS.get(values.strip()) or tuple(
        tuple(part.strip() for part in group.split(";"))
        for group in re.findall(r"\(([^()]*)\)", values)
    )
    if not separator or not groups or any(len(group) != len(wanted) for group in groups):
        raise _fault(origin, line, "it is not `for _a; _b in (1; 2) (2; 1)`")
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
    for side in rule.roots:
        for each in applications(side):
            operator_named(each.operator)
    wanted = variables_of(*rule.roots)
    candidates: list[Term] = list(rule.left)
    if "forward" not in flags:
        candidates += rule.right
    candidates += [parse_term(_sized(each)) for each in triggers]
    tried = [
        each
        for each in candidates
        if isinstance(each, Apply) and wanted <= variables_of(each) and can_be_matched(each)
    ]
    if not tried or not _computed_from(rule) <= wanted:
        raise _fault(origin, line, "neither side binds all of its variables; add a line `on TERM`")
    return Axiom(
        rule=replace(rule, stamp=""),
        triggers=tuple(tried),
        shortcut="shortcut" in flags,
    )


def _computed_from(rule: Rule) -> set[str]:
    """The variables of which parameters are computed."""
    return {
        name
        for each in applications(*rule.roots)
        for param in each.params
        if isinstance(param, Reordered)
        for name in param.names
    }


def _sized(line: str) -> str:
    """Write a parameter variable in arithmetic as the extent `_v.0`: sizes are made of extents."""
    head, colon, body = line.partition(":") if re.match(r"[\w-]+\s*:", line) else ("", "", line)

    def in_brackets(match: re.Match[str]) -> str:
        if not match.group(1).strip():
            return ""
        parts = [part.strip() for part in match.group(1).split(",")]
        kept = [part if _KEPT.fullmatch(part) else _dotted(part) for part in parts]
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
    by_name: dict[str, list[Axiom]] = {}
    for axiom in axioms:
        by_name.setdefault(axiom.name, []).append(axiom)
    return {name: tuple(each) for name, each in by_name.items()}


def _fault(origin: str, line: str, reason: str) -> UsageError:
    remedy = "correct the line; rewriting/axioms/__init__.py says how an axiom is written"
    return UsageError(stage="rules", where=f"{origin}: {line}", reason=reason, remedy=remedy)


AXIOM_FILES = ("taso", "full", "functions", "folds", "reshapes")
"""In order: TASO's operators, then the others and their laws with those before."""


@cache
def load_axioms() -> tuple[Axiom, ...]:
    """The axioms of the files of this folder."""
    folder = Path(__file__).parent
    axioms: list[Axiom] = []
    for name in AXIOM_FILES:
        path = folder / f"{name}.rules"
        axioms.extend(parse_axioms(path.read_text(encoding="utf-8"), path.name))
    return tuple(axioms)


@lru_cache(maxsize=16)
def set_hash(axioms: tuple[Axiom, ...]) -> str:
    """Eight hexadecimal digits that change when an axiom does, but not with the order of axioms.

    Kept by the identity of the axioms, which do not change.
    """
    lines = sorted({str(axiom) for axiom in axioms})
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:8]
