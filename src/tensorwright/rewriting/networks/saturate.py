"""Apply rules to a network until they find nothing new, or a limit is reached.

A rule of one root changes a term where it stands.  A merge joins terms from all over the network,
and each round of merges multiplies the matches of the next, so there are few rounds.  Constants
cost nothing in any form, so no rule is tried there.

Source:  Yang et al., TENSAT, MLSys 2021, section 4 (k_multi).

A merge is tried on groups (`egraph/matching.py`).  Other rules of several roots, and merges whose
roots share no tensor, are not tried: any two tensors of a network can be put into one, which never
pays.  A rule of one root is not tried where it only adds operators that move elements: any tensor
can be reshaped there and back, padded and cut.

A choice takes a node for each present class. Rules that are applied later may merge classes: then
one of two chosen nodes may read the other, or be in a class with another name.  Terms stay valid.
So a search keeps the nodes of the outputs (`chosen_outputs`), whose arguments are nodes as well,
and the choice over which they are written is made when it is needed (`choice_of`).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tensorwright.processes import never
from tensorwright.rewriting import egraph
from tensorwright.rewriting.dims import arguments_first
from tensorwright.rewriting.networks.network_analysis import TensorData
from tensorwright.rewriting.networks.read import Network
from tensorwright.rewriting.operators import MOVING
from tensorwright.rewriting.terms import Apply, Rule, Term


@dataclass(frozen=True, slots=True)
class NetworkRules:
    """Rules of one root, and merges."""

    plain: tuple[egraph.Rewrite, ...]
    merges: tuple[egraph.Merge, ...]


def network_rules(rules: Iterable[Rule], *, is_exact: bool = False) -> NetworkRules:
    """Choose among proved rules.

    is_exact   without those whose proof holds over the reals and not bit by bit over floats
    """
    kept = [rule for rule in rules if not (is_exact and rule.reassociating)]
    rewrites = [each for each in map(egraph.usable_rewrite, kept) if each is not None]
    plain = (_without_detours(each) for each in rewrites if len(each.left) == 1)
    return NetworkRules(
        tuple(each for each in plain if each is not None), egraph.merges_among(rewrites)
    )


def _without_detours(rewrite: egraph.Rewrite) -> egraph.Rewrite | None:
    """The rewrite without triggers from which it only adds operators that move elements."""
    sides = (rewrite.rule.left[0], rewrite.rule.right[0])
    kept: list[tuple[Apply, ...]] = []
    for trigger in rewrite.triggers:
        terms = tuple(pattern.term for pattern in trigger.patterns)
        other = sides[1] if terms == (sides[0],) else sides[0]
        added = Counter(_operators(other)) - Counter(_operators(terms[0]))
        lost = Counter(_operators(terms[0])) - Counter(_operators(other))
        if not added or lost or not set(added) <= MOVING:
            kept.append(terms)
    return egraph.rewrite_of(rewrite.rule, kept) if kept else None


def _operators(term: Term) -> Iterable[str]:
    if isinstance(term, Apply):
        yield term.operator
        for arg in term.args:
            yield from _operators(arg)


@dataclass(frozen=True, slots=True)
class SaturationLimits:
    """When the saturation of a network stops.

    merges    rounds of merges                rounds    of rules of one root, before and after each
    nodes     of the e-graph                  seconds   until no rule is tried any more
    matches   of one rule in one round
    """

    merges: int = 2
    rounds: int = 3
    nodes: int = 20_000
    matches: int = 1_000
    seconds: float = 10.0


@dataclass(frozen=True, slots=True)
class NetworkSaturation:
    """A network after rules; the runner has the applications, `stop` is why it ended."""

    network: Network
    runner: egraph.Runner[TensorData]
    stop: egraph.StopReason


def saturate_network(
    network: Network,
    rules: NetworkRules,
    limits: SaturationLimits | None = None,
    should_stop: Callable[[], bool] = never,
) -> NetworkSaturation:
    """Make terms of a network equal by rules.

    should_stop   asked between rules
    """
    limits = limits or SaturationLimits()
    end = time.monotonic() + limits.seconds

    def is_over() -> bool:
        return should_stop() or time.monotonic() > end

    runner = _runner(network, limits, is_over)
    stop = _saturate(runner, rules, limits, is_over)
    if isinstance(stop, egraph.BudgetSpent) and stop.limit == "seconds" and should_stop():
        stop = replace(stop, limit="interrupt")
    return NetworkSaturation(network, runner, stop)


def unsaturated(network: Network) -> NetworkSaturation:
    """A network to which no rule was applied: for searches that apply them one by one."""
    nodes = len(network.terms)
    return NetworkSaturation(
        network, _runner(network, SaturationLimits()), egraph.Saturated(0, nodes)
    )


def _runner(
    network: Network, limits: SaturationLimits, is_over: Callable[[], bool] = never
) -> egraph.Runner[TensorData]:
    one = egraph.Limits(rounds=1, nodes=limits.nodes, matches=limits.matches)
    return egraph.Runner(network.terms, one, lambda data: not data.is_constant, is_over)


def _saturate(
    runner: egraph.Runner[TensorData],
    rules: NetworkRules,
    limits: SaturationLimits,
    is_over: Callable[[], bool],
) -> egraph.StopReason:
    rounds = 0
    is_done = False
    for merging in range(limits.merges + 1):
        is_done = bool(merging) and not runner.merge(rules.merges)
        for _ in range(limits.rounds):
            rounds += 1
            stop = runner.run(rules.plain)
            if isinstance(stop, egraph.BudgetSpent) and stop.limit == "nodes":
                return egraph.BudgetSpent("nodes", rounds, len(runner.graph))
            if is_over():
                return egraph.BudgetSpent("seconds", rounds, len(runner.graph))
            if isinstance(stop, egraph.Saturated):
                break
        else:
            is_done = False
    if is_done:
        return egraph.Saturated(rounds, len(runner.graph))
    return egraph.BudgetSpent("rounds", rounds, len(runner.graph))


def choice_of(network: Network, outputs: Sequence[egraph.Id]) -> dict[egraph.Id, egraph.Id]:
    """The nodes over which some nodes are written, each for its class. Of several the first is
    taken, whose arguments come before it, so that none needs itself, even if classes were merged
    since.
    """
    terms = network.terms
    choice: dict[egraph.Id, egraph.Id] = {}
    for name in arguments_first(outputs, terms.children):
        choice.setdefault(terms.find(name), name)
    return choice


def chosen_outputs(
    network: Network, choice: Mapping[egraph.Id, egraph.Id]
) -> tuple[egraph.Id, ...]:
    """The nodes of the outputs as they were chosen: the arguments of each are the chosen ones."""
    terms = network.terms

    def below(leader: egraph.Id) -> tuple[egraph.Id, ...]:
        return tuple(map(terms.find, terms.children(choice[leader])))

    written: dict[egraph.Id, egraph.Id] = {}
    leaders = [terms.find(name) for name in network.outputs]
    for leader in arguments_first(leaders, below):
        head = terms.head_of(choice[leader])
        made = terms.put(head, tuple(written[each] for each in below(leader)))
        assert made is not None, "equal arguments have equal data"
        written[leader] = made
    return tuple(written[leader] for leader in leaders)


def steps_between(
    saturation: NetworkSaturation, outputs: Sequence[egraph.Id]
) -> tuple[egraph.Application, ...]:
    """The applications of rules that the equality of the network's outputs and of others needs, in
    the order in which they came.

    The e-graph of the network must keep proofs.
    """
    goal = tuple(zip(saturation.network.outputs, outputs, strict=True))
    return egraph.used_applications(saturation.runner, goal)
