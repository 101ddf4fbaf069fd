"""Rules and terms as text: one line a rule; parsing what was printed gives the same object.

    parse_rule("merge: ewadd(?x, ?y) == ewadd(?y, ?x) if rank(x) = 2")
    rule_text(rule)                        the same line again
    parse_term("relu(?x")                  UsageError that shows the place

    term       ?x | operator[param, ...](term, ...)          brackets stay away where empty
    rule       name: term, term == term, term if atom and atom  [stamp, reassociating]
    atom       rank(x) = 2 | x.1 = y.0 | x.2 >= 3 | w.1 divides x.1 | _a != _b

In a file, lines that begin with # are comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from types import MappingProxyType

from tensorwright.base import UsageError
from tensorwright.rewriting.dims import Size, parse_size
from tensorwright.rewriting.terms import (
    Apply,
    AtLeast,
    Condition,
    ConditionAtom,
    Different,
    Divides,
    Equal,
    Input,
    Param,
    Rank,
    Reordered,
    Rule,
    Term,
)


def term_text(term: Term) -> str:
    """The text of a term."""
    if isinstance(term, Input):
        return f"?{term.name}"
    params = f"[{', '.join(map(str, term.params))}]" if term.params else ""
    return f"{term.operator}{params}({', '.join(map(term_text, term.args))})"


def _atom_text(fact: ConditionAtom) -> str:
    match fact:
        case Rank(name, rank):
            return f"rank({name}) = {rank}"
        case Different(left, right):
            return f"{left} != {right}"
        case Equal(left, right):
            return f"{left} = {right}"
        case AtLeast(left, right):
            return f"{left} >= {right}"
        case Divides(divisor, number):
            return f"{divisor} divides {number}"


def condition_text(condition: Condition) -> str:
    """The text of a condition; "" where there is none."""
    return " and ".join(map(_atom_text, condition))


def rule_text(rule: Rule) -> str:
    """The line of a rule."""
    left, right = (", ".join(map(term_text, side)) for side in (rule.left, rule.right))
    name = f"{rule.name}: " if rule.name else ""
    condition = f" if {condition_text(rule.condition)}" if rule.condition else ""
    marks = [rule.stamp] if rule.stamp else []
    marks += [_REASSOCIATING] if rule.reassociating else []
    stamp = f"  [{', '.join(marks)}]" if marks else ""
    return f"{name}{left} == {right}{condition}{stamp}"


_REASSOCIATING = "reassociating"
REORDERED = re.compile(r"(~?_\w+)@(~?_\w+)")
_NAME = re.compile(r"[A-Za-z_][\w-]*")
_ATOMS = "rank(x) = 2, x.0 = y.1, x.0 >= 2, w.1 divides x.1 or _a != _b"
_DIFFERENT = re.compile(r"(_\w+)\s*!=\s*(_\w+)$")
_RANK = re.compile(r"rank\(\s*(\w+)\s*\)\s*=\s*(\d+)$")
_LINE = re.compile(
    r"(?:(?P<name>[A-Za-z_][\w-]*)\s*:)?(?P<left>.*?)==(?P<right>.*?)"
    r"(?:\sif\s(?P<condition>.*?))?(?:\s+\[(?P<stamp>[^\[\]]*)\])?$"
)


_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_SIGNS = MappingProxyType(
    {
        "**": "ewpow(?x, ?y)",
        "+": "ewadd(?x, ?y)",
        "-": "ewsub(?x, ?y), -x is neg(?x)",
        "*": "ewmul(?x, ?y)",
        "/": "ewdiv(?x, ?y)",
        "@": "matmul(?x, ?y)",
    }
)
_FORM = "a term is ?x or operator[params](term, ...), a rule is LEFT == RIGHT"
_NUMBERS = (
    "a tensor of rank 0 stands for any number, scalar_mul(?x, ?c); 1 is ones(), -x is neg(?x),"
    " 2 * x is ewadd(?x, ?x)"
)


def _fault(text: str, reason: str, remedy: str = _FORM) -> UsageError:
    return UsageError(stage="rules", where=f"rule text {text!r}", reason=reason, remedy=remedy)


def _number_fault(text: str, number: str) -> UsageError:
    return _fault(text, f"{number} is a number, and terms are tensors", _NUMBERS)


class _Reader:
    """A position in a text; the reading functions move it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.offset = 0

    def peek(self) -> str:
        while self.offset < len(self.text) and self.text[self.offset].isspace():
            self.offset += 1
        return self.text[self.offset : self.offset + 1]

    def take(self, wanted: str) -> None:
        if self.peek() != wanted:
            self.refuse_sign()
            rest = self.text[self.offset :].strip() or "its end"
            raise _fault(self.text, f"{wanted!r} is expected before {rest!r}")
        self.offset += 1

    def refuse_number(self) -> None:
        """Refuse a number where a term is expected, and say what to write instead."""
        self.peek()
        match = _NUMBER.match(self.text, self.offset)
        if match is not None:
            raise _number_fault(self.text, match.group())

    def refuse_sign(self) -> None:
        """Refuse an operator between two terms, and say what to write instead."""
        rest = self.text[self.offset :].strip()
        sign = next((each for each in _SIGNS if rest.startswith(each)), "")
        if not sign:
            return
        number = _NUMBER.match(rest.removeprefix(sign).strip())
        if number is not None:
            raise _number_fault(self.text, number.group())
        remedy = f"{_SIGNS[sign]}; `tensorwright rules operators` lists all operators"
        raise _fault(self.text, f"{sign} is not an operator of rules, which have names", remedy)

    def name(self) -> str:
        self.peek()
        match = _NAME.match(self.text, self.offset)
        if match is None:
            rest = self.text[self.offset :].strip() or "its end"
            raise _fault(self.text, f"a name is expected before {rest!r}")
        self.offset = match.end()
        return match.group()

    def term(self) -> Term:
        if self.peek() == "?":
            self.offset += 1
            return Input(self.name())
        self.refuse_number()
        self.refuse_sign()
        operator = self.name()
        params: tuple[Param, ...] = ()
        if self.peek() == "[":
            end = self.text.find("]", self.offset)
            if end < 0:
                raise _fault(self.text, "a [ is not closed")
            listed = self.text[self.offset + 1 : end].split(",")
            params = tuple(self.param(each.strip()) for each in listed)
            self.offset = end + 1
        if self.peek() in ("", ")", ","):
            remedy = f"?{operator} for a tensor, {operator}(?x) for an operator that is applied"
            raise _fault(self.text, f"{operator} alone is not a term", remedy)
        self.take("(")
        args = () if self.peek() == ")" else self.terms()
        self.take(")")
        return Apply(operator, params, args)

    def param(self, text: str) -> Param:
        if re.fullmatch(r"[A-Za-z_]\w*", text):
            return text
        reordered = REORDERED.fullmatch(text)
        if reordered is not None:
            return Reordered(*reordered.groups())
        return self.size(text)

    def size(self, text: str) -> Size:
        try:
            return parse_size(text)
        except ValueError as error:
            raise _fault(self.text, str(error)) from None

    def terms(self) -> tuple[Term, ...]:
        terms = [self.term()]
        while self.peek() == ",":
            self.offset += 1
            terms.append(self.term())
        return tuple(terms)

    def end(self) -> None:
        if not self.peek():
            return
        self.refuse_sign()
        raise _fault(self.text, f"{self.text[self.offset :].strip()!r} is left over")


def parse_term(text: str) -> Term:
    """Read a term."""
    reader = _Reader(text)
    term = reader.term()
    reader.end()
    return term


def _parse_side(text: str) -> tuple[Term, ...]:
    reader = _Reader(text)
    terms = reader.terms()
    reader.end()
    return terms


def _parse_atom(text: str) -> ConditionAtom:
    match = _RANK.match(text.strip())
    if match is not None:
        return Rank(match.group(1), int(match.group(2)))
    match = _DIFFERENT.match(text.strip())
    if match is not None:
        return Different(match.group(1), match.group(2))
    reader = _Reader(text)
    for sign, kind in ((" divides ", Divides), (">=", AtLeast), ("=", Equal)):
        left, separator, right = text.partition(sign)
        if separator:
            return kind(reader.size(left), reader.size(right))
    raise _fault(text, f"a condition is {_ATOMS}")


def parse_rule(line: str) -> Rule:
    """Read a rule."""
    match = _LINE.match(line.strip())
    if match is None:
        raise _fault(line, "there is no ==")
    left, right = _parse_side(match["left"]), _parse_side(match["right"])
    if len(left) != len(right):
        raise _fault(line, f"{len(left)} roots on the left, {len(right)} on the right")
    atoms = match["condition"].split(" and ") if match["condition"] else []
    marks = [mark.strip() for mark in (match["stamp"] or "").split(",")]
    return Rule(
        left=left,
        right=right,
        name=match["name"] or "",
        condition=tuple(map(_parse_atom, atoms)),
        stamp=", ".join(mark for mark in marks if mark != _REASSOCIATING),
        reassociating=_REASSOCIATING in marks,
    )


def logical_lines(text: str) -> Iterator[str]:
    """Lines of a file, without comments; one that begins with spaces continues the one before."""
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


def parse_rules(lines: Iterable[str]) -> tuple[Rule, ...]:
    """Read the lines of a file."""
    return tuple(rule for _, rule in numbered_rules(lines))


def numbered_rules(lines: Iterable[str]) -> Iterator[tuple[int, Rule]]:
    """Read the lines of a file: the rules, each with the number of its line."""
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        try:
            yield number, parse_rule(text)
        except UsageError as error:
            raise error.at(f"line {number}, {error.where}") from None
