"""Proofs by Z3: operators are uninterpreted, shapes are functions, axioms are quantified.

    axiom     for all x, rank(x) = 2: relu(relu(x)) = relu(x)
    goal      rank(a) = 2 and relu(relu(relu(a))) != relu(a)
    Z3        unsat: the rule is proved, and the core says from which axioms

Tensors are one sort; `rank(t)` and `extent(t, i)` are integers.  An operator is a function of
integers (its parameters; words are numbered) and tensors.  An axiom at given ranks, words and
numbers (strides, axes; sizes are variables, and what a rule leaves open is a constant) is

    for all tensors and sizes: ranks, condition, facts of the shapes of both sides -> left = right

and what the shape rule of an operator says is a lemma of the same form.  The goal is that the
assumptions of a rule hold and some pair of roots differs: `unsat` is a proof, and the core names
the axioms that it needs.  Quantifiers are instantiated where their triggers match (E-matching, no
model search); the terms that a saturation met are given as seeds.  Where that does not end, the
axioms are asserted for the tensors and sizes alone at which the saturation used them, preconditions
included.  Z3 counts its resources itself (rlimit), so that the answer is the same on every machine.

This module needs the extra `prove`; `prover.py` loads it by name.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import z3

from tensorwright.expr import FloorDiv, IndexExpr, terms_of
from tensorwright.rewriting.assumptions import Needs, fitting
from tensorwright.rewriting.dims import Extent, Shape, Size, atoms_of
from tensorwright.rewriting.egraph import Rewrite
from tensorwright.rewriting.meaning import infer, symbolic_shape
from tensorwright.rewriting.operators import is_open_word, operator_named
from tensorwright.rewriting.prove.instances import (
    Instance,
    OpenAxiom,
    opened,
    size_parameter,
    sizes_of,
)
from tensorwright.rewriting.prove.problem import Problem
from tensorwright.rewriting.terms import (
    Apply,
    AtLeast,
    Divides,
    Equal,
    Fact,
    Input,
    Param,
    Term,
    applications,
)

RLIMIT, GROUND_RLIMIT = 1_000_000, 4_000_000
"""Proofs that end take a tenth of the first, and up to a third of the second."""
VERSION = z3.get_version_string()


@dataclass(frozen=True, slots=True)
class SmtAnswer:
    """The answer of Z3.

    is_proved  whether the negated goal is unsatisfiable
    core       the names of the axioms in the unsatisfiable core, sorted
    resources  counted by Z3; the same on every machine
    reason     why there is no answer, else ""
    is_ground  whether the axioms were asserted for some tensors alone
    """

    is_proved: bool
    core: tuple[str, ...]
    resources: int
    reason: str = ""
    is_ground: bool = False


Names = Mapping[str, Any]
"""The Z3 constants for inputs (tensors) and size variables (integers)."""


class _Encoder:
    """Terms, sizes and facts as Z3 expressions, in one context."""

    def __init__(self, context: Any) -> None:
        self.context = context
        self.tensor = z3.DeclareSort("Tensor", context)
        self.integer = z3.IntSort(context)
        self.rank = z3.Function("rank", self.tensor, self.integer)
        self.extent = z3.Function("extent", self.tensor, self.integer, self.integer)
        self._words: dict[str, int] = {}
        self._numbers: dict[int, Any] = {}
        self._operators: dict[tuple[str, int], Any] = {}
        self._open: dict[str, Any] = {}

    @property
    def open_numbers(self) -> list[Any]:
        """The facts about parameters that were left open: numbers are positive."""
        return [number >= 1 for number in self._open.values()]

    def number(self, value: int) -> Any:
        if value not in self._numbers:
            self._numbers[value] = z3.IntVal(value, self.context)
        return self._numbers[value]

    def variable(self, name: str) -> Any:
        return z3.Const(name, self.tensor)

    def size_variable(self, name: str) -> Any:
        return z3.Int(name, self.context)

    def size(self, size: Size, names: Names) -> Any:
        if isinstance(size, int):
            return self.number(size)
        parts = []
        for monomial, factor in terms_of(size):
            atoms = [self._atom(atom, names) for atom in monomial]
            if factor != 1 or not atoms:
                atoms.insert(0, self.number(factor))
            parts.append(z3.Product(atoms) if len(atoms) > 1 else atoms[0])
        return z3.Sum(parts) if len(parts) > 1 else parts[0]

    def _atom(self, atom: IndexExpr, names: Names) -> Any:
        if isinstance(atom, FloorDiv):
            return self.size(atom.dividend, names) / self.size(atom.divisor, names)
        assert isinstance(atom, Extent), "a size of a rule has extents and quotients"
        if atom.name.startswith("_"):
            number = names.get(atom.name)
            return self._open_number(atom.name) if number is None else number
        return self.extent(names[atom.name], self.number(atom.axis))

    def _open_number(self, name: str) -> Any:
        return self._open.setdefault(name, self.size_variable(name))

    def param(self, param: Param, names: Names) -> Any:
        if isinstance(param, str) and is_open_word(param):
            return self._open_number(param)
        if isinstance(param, str):
            return self.number(self._words.setdefault(param, len(self._words)))
        assert isinstance(param, int | IndexExpr), "axioms are filled before they are told to Z3"
        return self.size(param, names)

    def term(self, term: Term, names: Names) -> Any:
        if isinstance(term, Input):
            return names[term.name]
        args = [self.term(arg, names) for arg in term.args]
        return self.apply(term.operator, [self.param(each, names) for each in term.params], args)

    def apply(self, operator: str, params: list[Any], args: list[Any]) -> Any:
        key = (operator, len(params))
        if key not in self._operators:
            sorts = [self.integer] * len(params) + [self.tensor] * len(args)
            self._operators[key] = z3.Function(f"{operator}/{len(params)}", *sorts, self.tensor)
        return self._operators[key](*params, *args)

    def fact(self, fact: Fact, names: Names) -> Any:
        match fact:
            case Equal(left, right):
                return self.size(left, names) == self.size(right, names)
            case AtLeast(left, right):
                return self.size(left, names) >= self.size(right, names)
            case Divides(divisor, number):
                return self.size(number, names) % self.size(divisor, names) == self.number(0)

    def choice(self, own: Size, wanted: Size, names: Names) -> Any:
        """A size is 1, or another."""
        size = self.size(own, names)
        return z3.Or(size == self.number(1), size == self.size(wanted, names))

    def has_shape(self, tensor: Any, shape: Shape, names: Names) -> list[Any]:
        """The rank and the extents of a tensor; they are positive."""
        parts = [self.rank(tensor) == len(shape)]
        for axis, extent in enumerate(shape):
            own = self.extent(tensor, self.number(axis))
            parts += [own == self.size(extent, names), own >= 1]
        return parts

    def for_all(self, bound: list[Any], premises: list[Any], conclusion: Any, on: list[Any]) -> Any:
        body = z3.Implies(z3.And(premises), conclusion) if premises else conclusion
        return z3.ForAll(bound, body, patterns=on) if bound else body


def prove_with_z3(
    problem: Problem,
    instances: Iterable[Instance],
    rlimit: int = RLIMIT,
    *,
    ground_first: bool = False,
) -> SmtAnswer:
    """Prove a rule at given ranks from the axioms of some instances, quantified again if possible.

    A question that equals an earlier one up to words that change no shape (`relu` for `none`) gets
    the same answer.

    rlimit        for the attempt with quantifiers
    ground_first  whether that comes second: where it fails, it takes long
    """
    used = tuple(instances)
    key = (_question(problem, used), rlimit, ground_first)
    answer = _ANSWERS.get(key)
    if answer is None:
        if len(_ANSWERS) >= _KEPT_ANSWERS:
            _ANSWERS.pop(next(iter(_ANSWERS)))
        answer = _ANSWERS[key] = _decided(problem, used, rlimit, ground_first=ground_first)
    return answer


_ANSWERS: dict[Hashable, SmtAnswer] = {}
_KEPT_ANSWERS = 1024


def _decided(
    problem: Problem, used: tuple[Instance, ...], rlimit: int, *, ground_first: bool
) -> SmtAnswer:
    attempts = ((GROUND_RLIMIT, True), (rlimit, False))
    spent = 0
    for limit, is_ground in attempts if ground_first else reversed(attempts):
        answer = _attempt(problem, used, limit, is_ground=is_ground)
        spent += answer.resources
        if answer.is_proved:
            break
    return replace(answer, resources=spent)


def _question(problem: Problem, used: tuple[Instance, ...]) -> Hashable:
    """All that an attempt depends on; words are numbered as they come, as far as Z3 is told no more
    of them than whether they are equal.

    Theorem.  Questions that are equal in this sense have the same answer.  Proof: Z3 is told
    numbers for words, in the order in which they come (`_Encoder.param`).  It gets more facts only
    about words that an axiom names, and about words on which a shape depends (`same` and `valid`),
    by the shape lemmas.
    """
    sides = list(problem.rule.roots)
    sides += [side for each in used for side in (each.left, each.right)]
    named = frozenset[str]().union(*(_words_of(each.rewrite) for each in used))
    named |= {word for each in applications(*sides) for word in _words_of_shape(each)}
    words: dict[str, int] = {}

    def param(value: Param) -> Hashable:
        if not isinstance(value, str) or value in named or is_open_word(value):
            return value
        return "word", words.setdefault(value, len(words))

    def term(each: Term) -> Hashable:
        if isinstance(each, Input):
            return each.name
        return each.operator, tuple(map(param, each.params)), tuple(map(term, each.args))

    def instance(each: Instance) -> Hashable:
        listed = ((n, v if isinstance(v, tuple) else (v,)) for n, v in each.params)
        return (
            each.rewrite,
            each.ranks,
            tuple((name, term(arg)) for name, arg in each.args),
            tuple((name, tuple(map(param, values))) for name, values in listed),
            term(each.left),
            term(each.right),
        )

    return (
        problem.shapes,
        problem.facts,
        problem.assumptions.quotients,
        tuple(map(term, problem.rule.roots)),
        tuple(map(instance, used)),
    )


@lru_cache(maxsize=4096)
def _words_of(rewrite: Rewrite) -> frozenset[str]:
    """The words that an axiom names."""
    terms = (pattern.term for trigger in rewrite.triggers for pattern in trigger.patterns)
    applied = applications(*rewrite.rule.roots, *terms)
    return frozenset(param for each in applied for param in each.params if isinstance(param, str))


def _words_of_shape(term: Apply) -> Iterator[str]:
    """The words of an application on which a shape depends."""
    kinds = operator_named(term.operator).kinds_of(term.params)
    for param, kind in zip(term.params, kinds, strict=True):
        if isinstance(param, str) and not kind.is_beside_shape:
            yield param


def _attempt(
    problem: Problem, used: tuple[Instance, ...], rlimit: int, *, is_ground: bool
) -> SmtAnswer:
    """One question to Z3: with the axioms for all tensors, or for those of the instances alone."""
    context = z3.Context()
    encoder = _Encoder(context)
    solver = z3.Solver(ctx=context)
    solver.set(auto_config=False, mbqi=False, unsat_core=True, rlimit=rlimit)
    shapes = dict(problem.shapes)
    names = {name: encoder.variable(f"in_{name}") for name in shapes}
    for name, tensor in names.items():
        solver.add(*encoder.has_shape(tensor, symbolic_shape(name, len(shapes[name])), names))
    for extent, size in problem.assumptions.quotients:
        for atom in (each for each in (extent, *atoms_of(size)) if each.name.startswith("_")):
            names[atom.name] = encoder.size_variable(atom.name)
            shapes[atom.name] = ()
            solver.add(names[atom.name] >= 1)
        solver.add(encoder.fact(Equal(extent, size), names))
    solver.add(*(encoder.fact(fact, names) for fact in problem.facts))
    labels: dict[str, str] = {}
    for name, formula in _axioms(encoder, used, names if is_ground else None):
        label = f"{name}#{len(labels)}"
        labels[label] = name
        solver.assert_and_track(formula, z3.Bool(label, context))
    terms = list(problem.rule.roots)
    terms += [side for instance in used for side in (instance.left, instance.right)]
    solver.add(*_shape_lemmas(encoder, terms, shapes))
    seed = z3.Function("seed", encoder.tensor, z3.BoolSort(context))
    solver.add(*(seed(encoder.term(term, names)) for term in dict.fromkeys(terms)))
    pairs = zip(problem.rule.left, problem.rule.right, strict=True)
    differ = [encoder.term(a, names) != encoder.term(b, names) for a, b in pairs]
    solver.add(z3.Or(differ))
    solver.add(*encoder.open_numbers)
    return replace(_answer(solver, labels), is_ground=is_ground)


def _answer(solver: Any, labels: Mapping[str, str]) -> SmtAnswer:
    verdict = solver.check()
    statistics = solver.statistics()
    counted = "rlimit count" in statistics.keys()  # noqa: SIM118 - not a dict
    resources = int(statistics.get_key_value("rlimit count")) if counted else 0
    if verdict != z3.unsat:
        return SmtAnswer(
            is_proved=False, core=(), resources=resources, reason=solver.reason_unknown()
        )
    core = {labels[str(label)] for label in solver.unsat_core()}
    return SmtAnswer(is_proved=True, core=tuple(sorted(core)), resources=resources)


def _axioms(
    encoder: _Encoder, used: tuple[Instance, ...], names: Names | None
) -> Iterator[tuple[str, Any]]:
    """The axioms with their names: for all tensors, or (names given) for those of the instances."""
    if names is None:
        for axiom in dict.fromkeys(opened(each) for each in used):
            yield axiom.name, _axiom(encoder, axiom, None)
        return
    for instance in used:
        axiom, sizes = opened(instance), sizes_of(instance)
        values = {name: encoder.term(term, names) for name, term in instance.args}
        values |= {name: encoder.param(sizes[name], names) for name in axiom.sizes}
        yield axiom.name, _axiom(encoder, axiom, values)


def _axiom(encoder: _Encoder, axiom: OpenAxiom, values: Names | None) -> Any:
    """An axiom for all tensors of its ranks and all sizes, or for given ones."""
    shapes: dict[str, Shape] = {name: symbolic_shape(name, rank) for name, rank in axiom.ranks}
    names: dict[str, Any] = {name: encoder.variable(f"v_{name}") for name in shapes}
    names |= {name: encoder.size_variable(f"v{name}") for name in axiom.sizes}
    names |= values or {}
    no_shapes: dict[str, Shape] = dict.fromkeys(axiom.sizes, ())
    typing = fitting(infer((axiom.left, axiom.right), shapes | no_shapes))
    premises = [encoder.rank(names[name]) == rank for name, rank in axiom.ranks]
    premises += [encoder.fact(fact, names) for fact in (*axiom.facts, *typing.facts)]
    premises += [encoder.choice(*each, names) for each in typing.choices]
    conclusion = encoder.term(axiom.left, names) == encoder.term(axiom.right, names)
    triggers = [encoder.term(each, names) for each in axiom.triggers]
    bound = [] if values is not None else list(names.values())
    return encoder.for_all(bound, premises, conclusion, triggers)


def _shape_lemmas(
    encoder: _Encoder, terms: Iterable[Term], shapes: Mapping[str, Shape]
) -> Iterator[Any]:
    """The shape rules of every application in some terms, for all arguments."""
    applied = applications(*terms)
    shape_of = dict(zip(applied, fitting(infer(applied, shapes)).shapes, strict=True))
    seen: set[Apply] = set()
    for each in applied:
        ranks = tuple(
            len(shapes[arg.name] if isinstance(arg, Input) else shape_of[arg]) for arg in each.args
        )
        general = _generalised(each, ranks)
        if general not in seen:
            seen.add(general)
            yield _lemma(encoder, general, ranks)


def _generalised(term: Apply, ranks: tuple[int, ...]) -> Apply:
    """The application on variables (named with their ranks), its sizes variables too."""
    params: list[Param] = []
    for number, param in enumerate(term.params):
        is_size = not isinstance(param, str) and size_parameter(term.operator, number)
        params.append(_lemma_size(number) if is_size else param)
    args = tuple(Input(f"a{number}r{rank}") for number, rank in enumerate(ranks))
    return Apply(term.operator, tuple(params), args)


def _lemma_size(number: int) -> IndexExpr:
    return Extent(f"_s{number}", 0)


def _lemma(encoder: _Encoder, term: Apply, ranks: tuple[int, ...]) -> Any:
    inputs = [arg.name for arg in term.args if isinstance(arg, Input)]
    sizes = [f"_s{n}" for n, param in enumerate(term.params) if param == _lemma_size(n)]
    needs = Needs()
    shapes = [symbolic_shape(name, rank) for name, rank in zip(inputs, ranks, strict=True)]
    shape = fitting(operator_named(term.operator).result(term.params, tuple(shapes), needs))
    names: dict[str, Any] = {name: encoder.variable(name) for name in inputs}
    names |= {name: encoder.size_variable(name) for name in sizes}
    premises = [encoder.rank(names[n]) == rank for n, rank in zip(inputs, ranks, strict=True)]
    premises += [encoder.fact(fact, names) for fact in needs.facts]
    premises += [encoder.choice(*each, names) for each in needs.choices]
    result = encoder.term(term, names)
    conclusion = z3.And(encoder.has_shape(result, shape, names))
    return encoder.for_all(list(names.values()), premises, conclusion, [result])
