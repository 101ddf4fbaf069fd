"""Apply rules to a network until they find nothing new, or a limit is reached.

A rule of one root changes a term where it stands.  A merge joins terms from all over the network,
and each round of merges multiplies the matches of the next, so there are few rounds.  Constants
cost nothing in any form, so no rule is tried there.

Source:  Yang et al., TENSAT, MLSys 2021, section 4 (k_multi).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from tensorwright.processes import never
from tensorwright.rewriting.egraph import BudgetSpent, Limits, Runner, Saturated, StopReason
from tensorwright.rewriting.networks.network_analysis import TensorData
from tensorwright.rewriting.networks.read import Network
from tensorwright.rewriting.networks.rules import NetworkRules


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
    runner: Runner[TensorData]
    stop: StopReason


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
    if isinstance(stop, BudgetSpent) and stop.limit == "seconds" and should_stop():
        stop = replace(stop, limit="interrupt")
    return NetworkSaturation(network, runner, stop)


def unsaturated(network: Network) -> NetworkSaturation:
    """A network to which no rule was applied: for searches that apply them one by one."""
    nodes = len(network.terms)
    return NetworkSaturation(network, _runner(network, SaturationLimits()), Saturated(0, nodes))


def _runner(
    network: Network, limits: SaturationLimits, is_over: Callable[[], bool] = never
) -> Runner[TensorData]:
    one = Limits(rounds=1, nodes=limits.nodes, matches=limits.matches)
    return Runner(network.terms, one, lambda data: not data.is_constant, is_over)


def _saturate(
    runner: Runner[TensorData],
    rules: NetworkRules,
    limits: SaturationLimits,
    is_over: Callable[[], bool],
) -> StopReason:
    rounds = 0
    is_done = False
    for merging in range(limits.merges + 1):
        is_done = bool(merging) and not runner.merge(rules.merges)
        for _ in range(limits.rounds):
            rounds += 1
            stop = runner.run(rules.plain)
            if isinstance(stop, BudgetSpent) and stop.limit == "nodes":
                return BudgetSpent("nodes", rounds, len(runner.graph))
            if is_over():
                return BudgetSpent("seconds", rounds, len(runner.graph))
            if isinstance(stop, Saturated):
                break
        else:
            is_done = False
    if is_done:
        return Saturated(rounds, len(runner.graph))
    return BudgetSpent("rounds", rounds, len(runner.graph))
