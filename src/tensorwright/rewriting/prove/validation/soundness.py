"""The axioms as a set: whether they contradict each other, and which follow from the others.

    relu(?x) == ?x                    a false goal: the axioms must not prove it
    derivable("concat-ones", axioms)  True: the others prove it
    derivable("relu-relu", axioms)    False: it is a basic property

Validation shows each axiom true at many shapes; a true set cannot contradict itself.  As a check of
the prover, `consistency` asks it for goals that are false: it must prove none.  An axiom whose
preconditions no shapes satisfy would be empty; validation finds shapes for each.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from tensorwright.rewriting.axioms import Axiom
from tensorwright.rewriting.egraph import Limits
from tensorwright.rewriting.prove.instances import concrete_rule
from tensorwright.rewriting.prove.parameters import places_of, random_values
from tensorwright.rewriting.prove.problem import problems_of
from tensorwright.rewriting.prove.saturate import saturate
from tensorwright.rewriting.terms import Rule
from tensorwright.rewriting.text import parse_rules

_LIMITS = Limits(rounds=4, nodes=1500, matches=200)
_INSTANCES = 4

FALSE_GOALS = parse_rules(
    """
    ?x == ?y if rank(x) = 2 and rank(y) = 2 and x.0 = y.0 and x.1 = y.1
    relu(?x) == ?x if rank(x) = 2
    ewadd(?x, ?y) == ewmul(?x, ?y) if rank(x) = 2
    ewadd(?x, ?y) == ?x if rank(x) = 2
    matmul(?x, ?y) == matmul(?y, ?x) if rank(x) = 2 and x.0 = x.1
    transpose[1, 0](?x) == ?x if rank(x) = 2 and x.0 = x.1
    concat[0](?x, ?y) == concat[0](?y, ?x) if rank(x) = 2 and x.0 = y.0
    split0[0, 2](?x) == split1[0, 2](?x) if rank(x) = 2 and x.0 = 4
    relu(ewadd(?x, ?y)) == ewadd(relu(?x), relu(?y)) if rank(x) = 2
    scalar_mul(?x, ?s) == ?x if rank(x) = 2
    relu(scalar_mul(?x, ?s)) == scalar_mul(relu(?x), ?s) if rank(x) = 2
    max_pool[3, 3, 1, 1, same](?x) == avg_pool[3, 3, 1, 1, same](?x)
    max_pool[2, 2, 1, 1, same](ewadd(?x, ?y)) == max_pool[2, 2, 1, 1, same](?x)
    conv2d[1, 1, same, none](?x, ?w) == conv2d[1, 1, same, relu](?x, ?w)
    conv3d[1, 1, 1, same, none](?x, ?w) == conv3d[1, 1, 1, same, relu](?x, ?w)
    conv2d[1, 1, same, none](?x, ?w) == ?x if x.1 = w.1 and w.0 = w.1
    reduce_sum[0](?x) == reduce_mean[0](?x) if rank(x) = 2
    ewsub(?x, ?y) == ewsub(?y, ?x) if rank(x) = 2
    ewdiv(?x, ?y) == ewmul(?x, ?y) if rank(x) = 2
    sigmoid(?x) == tanh(?x) if rank(x) = 2
    pad[0, 1, 0](?x) == pad[0, 0, 1](?x) if rank(x) = 2
    ewsub(?x, ?x) == ewdiv(?x, ?x) if rank(x) = 2
    exp(ewsub(?x, ?x)) == ewsub(?x, ?x) if rank(x) = 2
    reduce_sum[0](broadcast[3, x.1](?x)) == ?x if rank(x) = 2
    slice[0, 0, x.0](pad[0, 1, 1](?x)) == ?x if rank(x) = 2
    batch_norm(?x, ?s, ?b, ?m, ?v) == ?x if rank(x) = 4
    """.splitlines()
)


def consistency(axioms: Sequence[Axiom]) -> tuple[Rule, ...]:
    """The false goals that the axioms prove: none, unless something is wrong."""
    return tuple(goal for goal in FALSE_GOALS if _is_proved(goal, axioms))


def derivable(name: str, axioms: Sequence[Axiom]) -> bool:
    """Whether the axioms of a name follow from the others that are not shortcuts, within the
    limits.

    Parameters are tried at one value each; of an axiom that is written out for many values, a few
    are tried.
    """
    base = [axiom for axiom in axioms if not axiom.shortcut]
    own = [axiom for axiom in axioms if axiom.name == name]
    for axiom in own[:: 1 + len(own) // _INSTANCES]:
        rule = _typical(axiom)
        if rule is None or not _is_proved(rule, base, name):
            return False
    return True


def _is_proved(rule: Rule, axioms: Sequence[Axiom], without: str = "") -> bool:
    problems = problems_of(rule)
    if not problems:
        return False
    for problem in problems:
        proof = saturate(problem, axioms, _LIMITS, without=without)
        if proof is None or not proof.is_proved:
            return False
    return True


def _typical(axiom: Axiom) -> Rule | None:
    """The axiom as a rule, at the first of some values of its parameters that fit and say much."""
    chance = random.Random(1)
    for _ in range(60):
        rule = concrete_rule(axiom.rule, random_values(places_of(axiom.rule), chance, 3))
        if rule.left != rule.right and problems_of(rule):
            return rule
    return None
