"""Graphs that a search found faster than a network, kept as certificates beside the records.

What is kept is no graph but why it is equal: it is replayed, with rules that ship or are proved on
the spot, on the network at hand.  The pipeline loads this module where a store has such a text:
what rewrites is not needed to compile.
"""

from __future__ import annotations

from tensorwright.base import UsageError
from tensorwright.graph import Graph, simplify
from tensorwright.rewriting import Rule, rule_text
from tensorwright.rewriting.library import load_library
from tensorwright.rewriting.networks import parse_certificate, read_network, replay
from tensorwright.rewriting.prove import Proved, prove


def follow(text: str, source: Graph) -> Graph | None:
    """The graph that a certificate leads to from a simplified network; None where this version
    cannot follow it.
    """
    try:
        certificate = parse_certificate(text, "the record store")
        return simplify(replay(certificate, read_network(source), _is_proved))
    except UsageError:
        return None


def _is_proved(rule: Rule) -> bool:
    """Whether a rule ships, or is proved now."""
    shipped = {rule_text(each.rule) for each in load_library()}
    return rule_text(rule) in shipped or isinstance(prove(rule, confirm=False), Proved)
