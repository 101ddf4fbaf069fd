"""Graphs that are faster than a network, kept as certificates beside the records.

The store does not keep the graph: it keeps the certificate, which proves that the graph computes
the same as the network.  The certificate is replayed on the network.  Its rules are shipped with
the package, or they are proved during the replay, from axioms alone; so compiling does not need Z3.
`tensorwright rewrite --check` proves all rules of a certificate with Z3, too.  The pipeline loads
this module only if the store has a certificate, so that other compiling does not load the code of
the rewriting.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable

from tensorwright.base import InternalError, UsageError, naming_faults
from tensorwright.graph import Graph, simplify
from tensorwright.rewriting import Rule, rule_text
from tensorwright.rewriting.library import load_library
from tensorwright.rewriting.networks import parse_certificate, read_network, replay
from tensorwright.rewriting.prove import (
    Proved,
    most_dimensions,
    names_few_dimensions,
    prove,
    special_case,
)


def follow(text: str, source: Graph) -> Graph | None:
    """The graph to which a certificate leads from a simplified network.

    None if this version cannot replay the certificate; if the cause is a fault of tensorwright, a
    warning says so.
    """
    shipped = (each.rule for each in load_library())
    try:
        with naming_faults("rewrite", "the graph kept beside the records"):
            certificate = parse_certificate(text, "the record store")
            return simplify(replay(certificate, read_network(source), proved_beside(shipped)))
    except UsageError:
        return None
    except InternalError as fault:
        text = f"{fault.where}: {fault.reason}\n  the network stays as it is; please report this"
        warnings.warn(text, RuntimeWarning, stacklevel=3)
        return None


def proved_beside(proved: Iterable[Rule]) -> Callable[[Rule], bool]:
    """A function that says whether a rule may be applied.

    A rule may be applied if it is one of the proved rules.  It may also be applied if it names few
    dimensions and is a special case of a proved rule, or if it is proved now, without Z3.
    """
    rules = tuple(proved)
    texts = frozenset(map(rule_text, rules))

    def is_proved(rule: Rule) -> bool:
        if rule_text(rule) in texts:
            return True
        most = most_dimensions(rule)
        general = (each for each in rules if most_dimensions(each) >= most)
        if names_few_dimensions(rule) and any(special_case(rule, each) for each in general):
            return True
        return isinstance(prove(rule, confirm=False), Proved)

    return is_proved
