"""Substitutions of operator graphs. Read `terms.py` first, then `operators/` and `meaning.py`.

    relu(relu(?x)) == relu(?x)                      a rule: `parse_rule`, `rule_text`
    prove(rule)                                     whether it holds, and why
    load_library()                                  the rules that ship: `library/shipped.rules`

`axioms/` are the properties of operators and `prove/` proves rules from them. `library/` has the
rules that ship; the laboratory generates them. `networks/` reads and writes networks as terms.
"""

from tensorwright.rewriting.meaning import evaluate_terms
from tensorwright.rewriting.operators import operator_named
from tensorwright.rewriting.terms import Rule, Term, applications, operator_names
from tensorwright.rewriting.text import (
    condition_text, parse_rule, parse_rules, parse_term, rule_text, term_text,
)
