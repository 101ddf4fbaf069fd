"""The search for a faster graph: proved rules applied to a network, candidates priced as programs.

    read       rewriting.networks.read_network        Graph           terms in an e-graph
    saturate   rewriting.networks.saturate_network    proved rules    more terms are equal
    extract    rewriting.extraction                   e-graph         selections by operator costs
    price      rewriting.networks.ProgramPrices       selections      seconds of their kernels
    write      rewriting.networks.write_network       the best        Graph

The graph that came in is one of the candidates: what is not expected to be faster is not changed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import onnx

from tensorwright.base import MachineError, Target, UsageError
from tensorwright.graph import Graph, load_onnx, simplify, to_onnx
from tensorwright.pipeline import Model, Shapes, open_pricing, parse_target
from tensorwright.rewriting import Rule, rule_text
from tensorwright.rewriting.egraph import Id, StopReason
from tensorwright.rewriting.extraction import Selection, cheap_selections
from tensorwright.rewriting.library import load_library, load_schemas
from tensorwright.rewriting.networks import (
    Certificate,
    NetworkExtraction,
    NetworkSaturation,
    ProgramPrices,
    SaturationLimits,
    certify,
    chosen_outputs,
    network_rules,
    read_network,
    replay,
    saturate_network,
    without_spare_steps,
    write_network,
    write_outline,
)
from tensorwright.rewriting.prove import Proved, prove

DEFAULT_SECONDS = 10.0
_CANDIDATES = 4
_LEAST_GAIN = 1.05
"""A graph is changed where the other is expected to be so many times as fast: predictions err."""


@dataclass(frozen=True, slots=True, eq=False)
class Rewritten:
    """What a search over graphs found.

    source     the network that came in, simplified     graph   the best; the source if that is it
    before_s, after_s   what their kernels are expected to take
    rules      how often each rule was applied on the way
    certificate   which rules show that both graphs are equal; None where nothing changed
    stop       why saturation ended                     nodes   of the e-graph
    seconds    of the search
    """

    source: Graph
    graph: Graph
    before_s: float
    after_s: float
    rules: Mapping[str, int]
    certificate: Certificate | None
    stop: StopReason
    nodes: int
    seconds: float

    @property
    def is_changed(self) -> bool:
        """Whether another graph than the one that came in is expected to be faster."""
        return self.graph is not self.source

    @property
    def onnx(self) -> onnx.ModelProto:
        """The best graph as an ONNX model, checked.

        Raises:  UnsupportedError for an operator that ONNX cannot say.
        """
        return to_onnx(self.graph)


def rewrite(
    model: Model,
    *,
    target: str | Target | None = None,
    threads: int | None = None,
    input_shapes: Shapes | None = None,
    seconds: float = DEFAULT_SECONDS,
    exact: bool = False,
) -> Rewritten:
    """Look for a graph that computes the same, faster.

    target, threads   of the machine that it shall be fast on; as for `compile`
    input_shapes      shapes of inputs that the model leaves open: rules ask what extents are
    seconds           after so many no further round of rules is begun
    exact             without rules whose proof holds over the reals and not over floats

    Source:  Jia et al., TASO, SOSP 2019; Yang et al., TENSAT, MLSys 2021.
    Raises:  MachineError without a model of times for the target, and what importing raises.
    """
    start = time.monotonic()
    machine = parse_target(target)
    pricing = open_pricing(machine, threads)
    if pricing is None:
        raise MachineError(
            stage="rewrite",
            where=f"target {machine.name}",
            reason="no model says what programs take on it",
            remedy="set the knob default_schedule to model",
        )
    prices = ProgramPrices(machine, pricing)
    source = simplify(model if isinstance(model, Graph) else load_onnx(model, input_shapes))
    listed = (*(each.rule for each in load_library()), *load_schemas())
    known = {rule.name: rule for rule in listed}
    rules = network_rules(known.values(), is_exact=exact)
    network = read_network(source, with_proofs=True)
    saturation = saturate_network(network, rules, SaturationLimits(seconds=seconds))
    extraction = NetworkExtraction(network, prices)
    before_s = prices.seconds_of(source)
    best, after_s = _cheapest(saturation, extraction, prices)
    graph, used, certificate = source, MappingProxyType[str, int]({}), None
    if best is not None and before_s is not None and after_s is not None:
        choice = extraction.choice(best)
        certificate = _certificate(saturation, choice, known, before_s / after_s)
        if certificate is not None:
            graph = simplify(write_network(network, choice))
            used = MappingProxyType(certificate.rule_counts)
    after_s = before_s if graph is source else after_s
    unknown = float("nan")
    return Rewritten(
        source,
        graph,
        unknown if before_s is None else before_s,
        unknown if after_s is None else after_s,
        used,
        certificate,
        saturation.stop,
        len(network.terms),
        time.monotonic() - start,
    )


def _certificate(
    saturation: NetworkSaturation,
    choice: Mapping[Id, Id],
    known: Mapping[str, Rule],
    gain: float,
) -> Certificate | None:
    """Why a choice computes the same; None where it gains too little, or where an instance of a
    schema or an application at many dimensions needs what is not proved: the other rules are proved
    when they ship.
    """
    if gain < _LEAST_GAIN:
        return None
    outputs = chosen_outputs(saturation.network, choice)
    found = certify(saturation, outputs, known)
    found = without_spare_steps(found, saturation.network.graph)
    shipped = {rule_text(each.rule) for each in load_library()}

    def is_proved(rule: Rule) -> bool:
        return rule_text(rule) in shipped or isinstance(prove(rule, confirm=False), Proved)

    try:
        replay(found, read_network(saturation.network.graph), is_proved)
    except UsageError:
        return None
    return found


def _cheapest(
    saturation: NetworkSaturation, extraction: NetworkExtraction, prices: ProgramPrices
) -> tuple[Selection | None, float | None]:
    """Of a few selections that operator costs like, the one whose program is the cheapest."""
    best: Selection | None = None
    best_s: float | None = None
    for selection in cheap_selections(extraction.problem, _CANDIDATES):
        outline = simplify(write_outline(saturation.network, extraction.choice(selection)))
        found_s = prices.seconds_of(outline)
        if found_s is not None and (best_s is None or found_s < best_s):
            best, best_s = selection, found_s
    return best, best_s


def check_certificate(
    certificate: Certificate,
    model: Model,
    result: Model,
    is_proved: Callable[[Rule], bool],
    input_shapes: Shapes | None = None,
) -> None:
    """Whether a certificate shows that a model computes what another does.

    is_proved      whether a rule may be applied
    input_shapes   as for `rewrite`

    Raises:  UsageError that names what does not hold.
    """
    source, found = (
        simplify(each if isinstance(each, Graph) else load_onnx(each, input_shapes))
        for each in (model, result)
    )
    replayed = simplify(replay(certificate, read_network(source), is_proved))
    wanted = simplify(load_onnx(to_onnx(replayed)))
    if str(wanted) != str(found):
        raise UsageError(
            stage="rewrite",
            where=f"graph {found.name}",
            reason="it is not the graph that the certificate speaks of",
            remedy="rewrite the model again",
        )
