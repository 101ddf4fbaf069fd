"""One rule: refute it by evaluation, else prove it by saturation and confirm with Z3, else unknown.

    split0[0, x.0](concat[0](?x, ?y)) == ?x
    evaluated at 5 shapes             both sides agree: it may be true
    at each rank from 1 to 4          saturation finds a chain of axioms, Z3 confirms it: proved

Every search is bounded by counts (shapes, rounds, nodes, Z3's rlimit), never by time, so that the
answer is the same on every machine.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from types import ModuleType

from tensorwright.base import MachineError
from tensorwright.farm import Farm, Payload, Unit
from tensorwright.processes import Done, Raised
from tensorwright.rewriting.axioms import Axiom, load_axioms, set_hash
from tensorwright.rewriting.egraph import Chain, Limits, Saturated, Step
from tensorwright.rewriting.prove.instances import (
    Instance,
    cases_of,
    has_parameter_variables,
    sampled_instances,
)
from tensorwright.rewriting.prove.problem import (
    Problem,
    most_dimensions,
    names_few_dimensions,
    problems_of,
)
from tensorwright.rewriting.prove.ranks import instance_problem, is_validated, largest_rank, reduced
from tensorwright.rewriting.prove.refute import (
    Basis,
    Outcome,
    Proved,
    Refuted,
    Unknown,
    divides,
    has_values,
    outcome_of,
    plain_outcome,
    refute,
)
from tensorwright.rewriting.prove.saturate import Saturation, chains_of, instances_of, saturate
from tensorwright.rewriting.prove.specialization import special_case
from tensorwright.rewriting.terms import Rule, operator_names
from tensorwright.rewriting.text import parse_rule, rule_text

PROVER_VERSION = 8
"""Raise it with every change that may change an answer."""

_FEW, _MANY, _LARGE = 5, 40, 8
"""The numbers of shapes at which a rule is evaluated before a proof is searched and after none was
found; then as many shapes with extents up to the last number.
"""
_DRAWN, _INSTANCES, _RANKS_EACH, _FEWEST = 80, 12, 2, 2
"""With parameter variables: values that are drawn, rules evaluated, ranks and shapes of each."""


def stamp_of(axioms: Sequence[Axiom] | None = None) -> str:
    """The stamp of a proved rule: the hash of the axioms and the version of the prover."""
    return f"{set_hash(load_axioms() if axioms is None else tuple(axioms))}/{PROVER_VERSION}"


def stamped(outcome: Proved) -> Rule:
    """The rule as it is shipped: with the stamp, and a mark where floats may not satisfy it."""
    return replace(outcome.rule, stamp=stamp_of(), reassociating=outcome.reassociating)


@dataclass(frozen=True, slots=True)
class _Part:
    """A proof at one choice of ranks: from which axioms, whether one of them reassociates."""

    axioms: frozenset[str]
    reassociating: bool
    chains: tuple[Chain, ...]
    resources: int


def _part_of(instances: tuple[Instance, ...], chains: tuple[Chain, ...], resources: int) -> _Part:
    return _Part(
        frozenset(instance.rewrite.name for instance in instances),
        any(instance.rewrite.rule.reassociating for instance in instances),
        chains,
        resources,
    )


def prove(
    rule: Rule,
    limits: Limits | None = None,
    confirm: bool = True,
) -> Outcome:
    """Decide a rule.

    confirm   have Z3 make each proof again, from the axioms that it needs

    What a proof rests on stands in `Proved.basis`.  A rule with parameter variables that says what
    an axiom says, but for the names of its variables, rests on that axiom alone, whatever `confirm`
    is: there is nothing to be made again, and the axiom is validated, not proved (`rules prove`
    counts these).  All other proofs are chains of axioms that saturation finds.  Those that the
    search for a graph needs on the spot (`graph_record.proved_beside`) are not confirmed; `rewrite
    --check` and `rules prove` confirm.

    Raises:  MachineError where Z3 is wanted and is not installed; UsageError for unknown operators.
    """
    used = load_axioms()
    smt = _z3_module() if confirm else None
    by_axiom = _proof_by_axiom(rule, used)
    if by_axiom is not None:
        return by_axiom
    looked_at = _looked_at(rule)
    if not isinstance(looked_at, _Open):
        return looked_at
    problems, tried, is_general = looked_at.problems, looked_at.tried, has_parameter_variables(rule)
    search = _Proofs(used, limits, smt)
    parts: list[_Part] = []
    for problem in problems:
        part = search.part(problem)
        if isinstance(part, str):
            again = None if is_general else refute(tried, _MANY) or refute(tried, _MANY, _LARGE)
            return Unknown(rule, part) if again is None else Refuted(rule, again)
        parts.append(part)
    return Proved(
        rule=rule,
        axioms=tuple(sorted(frozenset[str]().union(*(part.axioms for part in parts)))),
        chains=parts[0].chains,
        reassociating=any(part.reassociating for part in parts),
        ranks=len(parts),
        resources=sum(part.resources for part in parts),
        basis=Basis.Z3 if confirm else Basis.CHAIN,
    )


@dataclass(frozen=True, slots=True)
class _Open:
    """A rule that evaluation does not refute: its problems, and where it was evaluated."""

    problems: tuple[Problem, ...]
    tried: tuple[Problem, ...]


@lru_cache(maxsize=64)
def _looked_at(rule: Rule) -> Refuted | Unknown | _Open:
    """The result of evaluating a rule; remembered: a rule is often tried before its proof."""
    problems = tuple(problem for case in cases_of(rule) for problem in problems_of(case))
    if not problems:
        return Unknown(rule, "there are no shapes at which both sides are well-typed")
    tried = problems_to_evaluate(rule)
    counterexample = refute(tried, _FEWEST if has_parameter_variables(rule) else _FEW)
    if counterexample is not None:
        return Refuted(rule, counterexample)
    if not has_values(tried) if tried else divides(rule):
        return Unknown(rule, "a divisor seems to be zero whatever the inputs: nothing is compared")
    return _Open(problems, tried)


def problems_to_evaluate(rule: Rule) -> tuple[Problem, ...]:
    """Problems at which a rule is evaluated: all, or those of some values of its variables."""
    if not has_parameter_variables(rule):
        return problems_of(rule)
    seed = zlib.crc32(rule_text(replace(rule, name="", stamp="")).encode())
    instances: dict[Rule, None] = {}
    return tuple(
        problem
        for each in sampled_instances(rule, _DRAWN, seed)
        if instances.setdefault(each) is None and len(instances) <= _INSTANCES
        for problem in islice(problems_of(each), _RANKS_EACH)
    )


def _proof_by_axiom(rule: Rule, axioms: Sequence[Axiom]) -> Proved | None:
    """The proof of a rule that is an axiom up to the names of its variables."""
    if len(rule.left) > 1 or not has_parameter_variables(rule) or not names_few_dimensions(rule):
        return None
    for axiom in axioms:
        if most_dimensions(rule) > most_dimensions(axiom.rule):
            continue
        special = special_case(rule, axiom.rule)
        if special is not None and special.is_renaming:
            sides = (rule.left[0], rule.right[0])
            chain = (Step(sides[0], axiom.name, not special.is_reversed, sides[1]),)
            is_reassociating = axiom.rule.reassociating
            return Proved(rule, (axiom.name,), (chain,), is_reassociating, 1, 0, Basis.AXIOM)
    return None


class _Proofs:
    """Proofs at choices of ranks; those over fewer dimensions are made once."""

    def __init__(
        self, axioms: Sequence[Axiom], limits: Limits | None, smt: ModuleType | None
    ) -> None:
        self._axioms = axioms
        self._limits = limits
        self._smt = smt
        self._parts: dict[Rule, _Part | str] = {}
        self._is_ground = False  # whether Z3 once found no proof with quantifiers

    def part(self, problem: Problem) -> _Part | str:
        """The proof at one choice of ranks, or why there is none."""
        merged = reduced(problem)
        largest, most = largest_rank(problem), most_dimensions(problem.rule)
        if merged is not None and merged.largest < largest:
            if merged.rule not in self._parts:
                self._parts[merged.rule] = self._of_few(merged.rule)
            part = self._parts[merged.rule]
            if not isinstance(part, str):
                return part
            if largest > most:
                return f"{rule_text(merged.rule)} is not proved ({_ranks_text(problem)})"
        elif largest > most:
            ranks = _ranks_text(problem)
            return f"its operators tell more than {most} dimensions apart ({ranks})"
        return self._at(problem)

    def _of_few(self, rule: Rule) -> _Part | str:
        """The proof of the rule over fewer dimensions, see `ranks.py`."""
        problems = problems_of(rule)
        if not problems:
            return "nothing is well-typed"
        parts: list[_Part] = []
        for problem in problems:
            most = most_dimensions(rule)
            if largest_rank(problem) > most:
                return f"more than {most} dimensions are left"
            part = self._at(problem)
            if isinstance(part, str):
                return part
            parts.append(part)
        return _joined_parts(parts)

    def _at(self, problem: Problem) -> _Part | str:
        saturation = _saturated(problem, self._axioms, self._limits)
        ranks = _ranks_text(problem)
        if saturation is None:
            return f"the sides need not have the same shape ({ranks})"
        if not saturation.is_proved:
            nodes = saturation.stop.nodes
            reason = f"no proof within the limits, {nodes} terms"
            if isinstance(saturation.stop, Saturated):
                reason = f"the axioms say nothing more after {nodes} terms"
            return f"{reason} ({ranks})"
        instances = instances_of(saturation)
        for each in instances:
            axiom = None if is_validated(each) else self.part(instance_problem(each, problem))
            if isinstance(axiom, str):
                return f"the axiom {each.rewrite.name} need not hold: {axiom} ({ranks})"
        chains = chains_of(saturation.runner, saturation.goal, problem.assumptions)
        if self._smt is None:
            return _part_of(instances, chains, 0)
        answer = self._smt.prove_with_z3(problem, instances, ground_first=self._is_ground)
        self._is_ground |= answer.is_ground
        if not answer.is_proved:
            return f"Z3 did not confirm the proof: {answer.reason} ({ranks})"
        return _part_of(instances, chains, answer.resources)


def _ranks_text(problem: Problem) -> str:
    return ", ".join(f"{name} of rank {len(shape)}" for name, shape in problem.shapes)


def _joined_parts(parts: Sequence[_Part]) -> _Part:
    return _Part(
        frozenset[str]().union(*(part.axioms for part in parts)),
        any(part.reassociating for part in parts),
        parts[0].chains,
        sum(part.resources for part in parts),
    )


def _saturated(
    problem: Problem, axioms: Sequence[Axiom], limits: Limits | None
) -> Saturation | None:
    """With the axioms of the rule's own operators alone, which are fewer; else with all."""
    rule = problem.rule
    own = operator_names(*rule.roots)
    saturation = saturate(problem, axioms, limits, among=own)
    if saturation is None or saturation.is_proved:
        return saturation
    return saturate(problem, axioms, limits)


def _z3_module() -> ModuleType:
    try:
        return importlib.import_module("tensorwright.rewriting.prove.smt")
    except ModuleNotFoundError:
        raise MachineError(
            stage="rules",
            where="Z3",
            reason="proofs need the package z3-solver, which is not installed",
            remedy="pip install '.[prove]', in the folder of tensorwright's sources",
        ) from None


def decided(payload: Payload) -> Payload:
    """Decide a rule as a unit of a farm: its text gives an outcome without the chains."""
    return Payload(plain_outcome(prove(parse_rule(payload.data))))


def prove_all(
    rules: Sequence[Rule], farm: Farm, patience_s: float = 120.0
) -> Iterator[tuple[int, Outcome]]:
    """Decide rules with the shipped axioms; yields (index, outcome) as they are decided.

    No worker should take long, for every rule is decided within counted bounds; one that does is
    given up after `patience_s`, and the answer is unknown.

    Raises:  MachineError where Z3 is not installed.
    """
    units = (Unit("rules.prove", Payload(rule_text(rule)), patience_s) for rule in rules)
    for index, outcome in farm.results(units):
        if isinstance(outcome, Raised) and outcome.error is not None:
            raise outcome.error
        if isinstance(outcome, Done):
            yield index, outcome_of(outcome.value.data)
        else:
            yield index, Unknown(rules[index], str(outcome))
