"""Which rules lead from the network that was read to the one that was chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tensorwright.rewriting.egraph import Application, Id, used_applications
from tensorwright.rewriting.networks.read import Network
from tensorwright.rewriting.networks.saturate import NetworkSaturation
from tensorwright.rewriting.traversal import arguments_first


def choice_of(network: Network, outputs: Sequence[Id]) -> dict[Id, Id]:
    """The nodes over which some nodes are written, each for its class; of several the first."""
    terms = network.terms
    choice: dict[Id, Id] = {}
    for name in arguments_first(outputs, terms.children):
        choice.setdefault(terms.find(name), name)
    return choice


def chosen_outputs(network: Network, choice: Mapping[Id, Id]) -> tuple[Id, ...]:
    """The nodes of the outputs as they were chosen: the arguments of each are the chosen ones."""
    terms = network.terms
    written: dict[Id, Id] = {}
    leaders = [terms.find(name) for name in network.outputs]
    stack = list(leaders)
    while stack:
        own = stack[-1]
        node = choice[own]
        below = [terms.find(child) for child in terms.children(node)]
        missing = [each for each in below if each not in written]
        if missing:
            stack += missing
            continue
        stack.pop()
        if own not in written:
            made = terms.put(terms.head_of(node), tuple(written[each] for each in below))
            assert made is not None, "equal arguments have equal data"
            written[own] = made
    return tuple(written[leader] for leader in leaders)


def steps_between(saturation: NetworkSaturation, outputs: Sequence[Id]) -> tuple[Application, ...]:
    """The applications of rules that the equality of the network's outputs and of others needs, in
    the order in which they came.

    The e-graph of the network must keep proofs.
    """
    goal = tuple(zip(saturation.network.outputs, outputs, strict=True))
    return used_applications(saturation.runner, goal)
