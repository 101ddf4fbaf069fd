"""The rules that lead from the network that was read to the one that was chosen.

A choice takes a node for each present class. Rules that are applied later may merge classes: then
one of two chosen nodes may read the other, or be in a class with another name.  Terms stay valid.
So a search keeps the nodes of the outputs (`chosen_outputs`), whose arguments are nodes as well,
and the choice over which they are written is made when it is needed (`choice_of`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tensorwright.rewriting.egraph import Application, Id, used_applications
from tensorwright.rewriting.networks.read import Network
from tensorwright.rewriting.networks.saturate import NetworkSaturation
from tensorwright.rewriting.traversal import arguments_first


def choice_of(network: Network, outputs: Sequence[Id]) -> dict[Id, Id]:
    """The nodes over which some nodes are written, each for its class. Of several the first is
    taken, whose arguments come before it, so that none needs itself, even if classes were merged
    since.
    """
    terms = network.terms
    choice: dict[Id, Id] = {}
    for name in arguments_first(outputs, terms.children):
        choice.setdefault(terms.find(name), name)
    return choice


def chosen_outputs(network: Network, choice: Mapping[Id, Id]) -> tuple[Id, ...]:
    """The nodes of the outputs as they were chosen: the arguments of each are the chosen ones."""
    terms = network.terms

    def below(leader: Id) -> tuple[Id, ...]:
        return tuple(map(terms.find, terms.children(choice[leader])))

    written: dict[Id, Id] = {}
    leaders = [terms.find(name) for name in network.outputs]
    for leader in arguments_first(leaders, below):
        head = terms.head_of(choice[leader])
        made = terms.put(head, tuple(written[each] for each in below(leader)))
        assert made is not None, "equal arguments have equal data"
        written[leader] = made
    return tuple(written[leader] for leader in leaders)


def steps_between(saturation: NetworkSaturation, outputs: Sequence[Id]) -> tuple[Application, ...]:
    """The applications of rules that the equality of the network's outputs and of others needs, in
    the order in which they came.

    The e-graph of the network must keep proofs.
    """
    goal = tuple(zip(saturation.network.outputs, outputs, strict=True))
    return used_applications(saturation.runner, goal)
