"""The outcome for a rule: proved, refuted or unknown, with the evidence.

relu(relu(?x)) == relu(?x)        Proved: the axioms, and the chain of terms
relu(?x) == ?x                    Refuted: a counterexample, x = [-1]
tanh(relu(?x)) == relu(tanh(?x))  Unknown: the axioms find nothing more
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

import numpy as np

from tensorwright.rewriting.egraph import Chain
from tensorwright.rewriting.prove.refute import Counterexample
from tensorwright.rewriting.terms import Rule
from tensorwright.rewriting.text import parse_rule, rule_text, term_text


class Basis(Enum):
    """The basis of a proof; the value is its text."""

    AXIOM = "an axiom under other names, Z3 is not asked"
    CHAIN = "a chain of axioms, Z3 is not asked"
    Z3 = "a chain of axioms, confirmed by Z3"


@dataclass(frozen=True, slots=True)
class Proved:
    """The rule holds for all shapes that fit it.

    axioms         the names of those that the proof needs, sorted
    chains         for each pair of roots, the terms from left to right, at the first ranks
    reassociating  whether it holds over the reals and need not over floats
    ranks          at how many choices of ranks of the inputs it was proved: all that fit it
    resources      counted by Z3; 0 where Z3 was not asked
    basis          whether Z3 was
    """

    rule: Rule
    axioms: tuple[str, ...]
    chains: tuple[Chain, ...]
    reassociating: bool
    ranks: int
    resources: int
    basis: Basis

    def __str__(self) -> str:
        names = ", ".join(self.axioms) or "nothing"
        lines = [
            f"proved at {self.ranks} choice(s) of ranks from {names}",
            f"  it rests on {self.basis.value}",
        ]
        for chain in self.chains:
            if chain:
                lines.append(f"  {term_text(chain[0].before)}")
            for step in chain:
                way = "" if step.forward else ", read from right to left"
                lines.append(f"    by {step.rule}{way}")
                lines.append(f"  {term_text(step.after)}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Refuted:
    """The rule is false: here are inputs for which the sides differ."""

    rule: Rule
    counterexample: Counterexample

    def __str__(self) -> str:
        return f"refuted by\n{self.counterexample}"


@dataclass(frozen=True, slots=True)
class Unknown:
    """Neither proved nor refuted.

    reason  what ended the search for a proof
    """

    rule: Rule
    reason: str

    def __str__(self) -> str:
        return f"unknown: {self.reason}"


Outcome: TypeAlias = Proved | Refuted | Unknown


def plain_outcome(outcome: Outcome) -> dict[str, Any]:
    """An outcome as plain data, without the chains of its proof."""
    match outcome:
        case Proved(_, axioms, _, reassociating, ranks, resources, basis):
            about = [list(axioms), reassociating, ranks, resources, basis.name]
            return {"outcome": "proved", "rule": rule_text(outcome.rule), "about": about}
        case Refuted(rule, example):
            sides = example.root, example.left.tolist(), example.right.tolist()
            inputs = [(name, value.tolist()) for name, value in example.inputs]
            texts = rule_text(rule), rule_text(example.rule)
            return {"outcome": "refuted", "rules": texts, "inputs": inputs, "sides": sides}
        case Unknown(rule, reason):
            return {"outcome": "unknown", "rule": rule_text(rule), "reason": reason}


def outcome_of(plain: Mapping[str, Any]) -> Outcome:
    """The inverse of `plain_outcome`."""
    if plain["outcome"] == "proved":
        axioms, reassociating, ranks, resources, basis = plain["about"]
        about = (reassociating, ranks, resources, Basis[basis])
        return Proved(parse_rule(plain["rule"]), tuple(axioms), (), *about)
    if plain["outcome"] == "unknown":
        return Unknown(parse_rule(plain["rule"]), plain["reason"])
    rule, of = map(parse_rule, plain["rules"])
    inputs = tuple((name, np.array(value, np.float64)) for name, value in plain["inputs"])
    root, left, right = plain["sides"]
    sides = np.array(left, np.float64), np.array(right, np.float64)
    return Refuted(rule, Counterexample(of, inputs, root, *sides))
