"""Search for a faster graph: apply proved rules to a network, and price candidates as programs.

    read       rewriting.networks.read_network        Graph           terms in an e-graph
    search     rewriting.find_candidates              proved rules    graphs, priced as programs
    certify    rewriting.networks.certify             the cheapest    certificates of equality
    write      rewriting.networks.write_network       the cheapest    Graph
    measure    graph_timing.seconds_here              Executables     the fastest

The original graph is one of the candidates: it stays unless another candidate is faster.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from types import MappingProxyType
from typing import TypeVar

import onnx

from tensorwright import base
from tensorwright.compile_options import USUAL, CompileOptions
from tensorwright.drivers.graph_prices import DevicePrices, seconds_elsewhere, seconds_here
from tensorwright.drivers.graph_record import proved_beside
from tensorwright.graph import (
    FoldedConstants,
    Graph,
    are_alike,
    require_alone,
    require_uncounted,
    simplify,
)
from tensorwright.graph.imports import load_onnx
from tensorwright.graph.model_import import load_model
from tensorwright.graph.onnx_export import to_onnx
from tensorwright.peers.prices import PeerPrices
from tensorwright.pipeline import Model, open_price
from tensorwright.processes import never
from tensorwright.profiling import measure_speed
from tensorwright.records import opened
from tensorwright.rewriting import Rule, networks
from tensorwright.rewriting.candidates import (
    Candidates,
    CandidateSearch,
    CostKind,
    SearchKind,
    find_candidates,
)
from tensorwright.rewriting.egraph import BudgetSpent, Id, StopReason
from tensorwright.rewriting.library import load_library, read_own_rules
from tensorwright.runtime import check_device, missing_device, usable_threads
from tensorwright.runtime.measuring import this_machine

Kind = TypeVar("Kind", SearchKind, CostKind)

MOST_SECONDS = 10.0
_LEAST_SECONDS = 1.0
_OPERATOR_S = 0.005  # for each operator of the network
_EXPECTED_GAIN = 1.05
"""A graph with at least this expected gain is kept without a trial; predictions are not exact."""
_TRIED_GAIN = 1.01
"""A graph with at least this expected gain is run in a trial."""
_MEASURED_GAIN = 1.01
"""A graph with a larger gain than this in a trial is kept; a smaller gain is noise."""
_TRIED = 2
_MEASURING_SHARE = 0.5  # of the seconds, for measuring kernels on a device
_WITHOUT_SEARCH = "compile, tune and optimize take the model as it is"


@dataclass(frozen=True, slots=True)
class Trial:
    """The times of the source and of the most promising graphs, measured in turns.

    before_s   of the source
    after_s    of the fastest of the other graphs
    """

    before_s: float
    after_s: float


@dataclass(frozen=True, slots=True, eq=False)
class _Written:
    """A candidate as a graph, with its expected time and its proof of equality."""

    graph: Graph
    after_s: float
    certificate: networks.Certificate


@dataclass(frozen=True, slots=True, eq=False)
class Rewritten:
    """The result of a search over graphs.

    source        the original network, simplified
    graph         the best graph, or the source
    before_s      the expected time of the source's kernels
    after_s       the expected time of the graph's kernels
    rules         rule -> how often the certificate applies it
    certificate   the proof that both graphs are equal; None if nothing changed
    trial         measured times; None if no graph was run
    stops         why each search ended
    nodes         the size of the e-graph
    graphs        the number of graphs that backtracking made
    seconds       how long the search took, without the trial
    """

    source: Graph
    graph: Graph
    before_s: float
    after_s: float
    rules: Mapping[str, int]
    certificate: networks.Certificate | None
    trial: Trial | None
    stops: Mapping[SearchKind, StopReason]
    nodes: int
    graphs: int
    seconds: float = 0.0

    @property
    def is_changed(self) -> bool:
        """Whether the best graph is another one than the source."""
        return self.graph is not self.source

    @property
    def stop_text(self) -> str:
        """Why each search ended, in words: the name of a limit, or "nothing left"."""
        words = {
            kind: stop.limit if isinstance(stop, BudgetSpent) else "nothing left"
            for kind, stop in self.stops.items()
        }
        return ", ".join(f"{kind.value}: {word}" for kind, word in words.items())

    @property
    def onnx(self) -> onnx.ModelProto:
        """The best graph as an ONNX model, checked.

        Raises:  UnsupportedError for an operator that ONNX cannot express.
        """
        return to_onnx(self.graph)


def _kind(kinds: type[Kind], argument: str, word: str) -> Kind:
    """The member of an enumeration.  Raises: UsageError that lists them."""
    try:
        return kinds(word)
    except ValueError:
        names = (kind.value for kind in kinds)
        where, reason = f"argument {argument}", f"there is no {word!r}"
        raise base.unknown_name("rewrite", where, reason, word, names) from None


@dataclass(frozen=True, kw_only=True)
class RewriteOptions(CompileOptions):
    """How a faster graph is searched for. It is equal for all sizes, and fast for typical ones.

    seconds       if None, 1 to 10 s by the size of the network
    rules         one or several files, or texts (which contain `==`)
    nodes         the size of the e-graph at which saturation ends; the usual one if None
    should_stop   ends the search; the best graph so far is kept, unmeasured
    """

    seconds: float | None = base.option(
        None,
        "For the search and its prices; by default 1 to 10, by the size of MODEL. The best graphs"
        " are measured after it.",
        least=0.0,
        most=86_400.0,
    )
    exact: bool = base.option(
        default=False, text="Leave out rules that add floats in another order."
    )
    rules: str | Sequence[str | PathLike[str]] = base.option(
        (),
        "Your own rules beside those that ship; each is proved first. May be repeated.",
        metavar="FILE",
    )
    trust: bool = base.option(
        default=False, text="Believe rules of FILE with the stamp of this prover."
    )
    search: SearchKind | str = base.option(
        SearchKind.BOTH, "Equality saturation, backtracking, or one after the other."
    )
    cost: CostKind | str = base.option(
        CostKind.PROGRAMS,
        "Rank graphs by the sum of their operators' times, by the times of their fused programs, or"
        " by their time in ONNX Runtime.",
    )
    measure: bool = base.option(
        default=True, text="Run the best few graphs and MODEL in turns before one is kept."
    )
    nodes: int | None = None
    should_stop: Callable[[], bool] = never

    def __post_init__(self) -> None:
        """Take kinds by their names.  Raises: UsageError for unknown ones, and negative seconds."""
        object.__setattr__(self, "search", _kind(SearchKind, "search", self.search))
        object.__setattr__(self, "cost", _kind(CostKind, "cost", self.cost))
        if self.seconds is not None and not self.seconds >= 0:
            raise base.UsageError(
                stage="rewrite",
                where=f"seconds={self.seconds}",
                reason="it must be 0 or more",
                remedy="seconds=30, or leave it out for a limit by the network's size",
            )


@base.takes_options(RewriteOptions)
def rewrite(model: Model, wanted: RewriteOptions) -> Rewritten:
    """Search for a faster graph that computes the same.

    model   as of `compile`, but no tensor expression

    Source:  Jia et al., TASO, SOSP 2019; Yang et al., TENSAT, MLSys 2021.
    Raises:  MachineError without a time model for the target; UsageError with file and line for a
             rule that is not proved; UsageError for fewer than 0 seconds; InternalError for a
             fault of tensorwright in the search; the errors of importing.
    """
    files = (wanted.rules,) if isinstance(wanted.rules, str) else wanted.rules
    own = read_own_rules(files, is_trusted=wanted.trust)
    start = time.monotonic()
    machine = wanted.machine
    source = _source_of(_imported(model, wanted))
    rules_by_name = {rule.name: rule for rule in (*(each.rule for each in load_library()), *own)}
    tried = networks.network_rules(rules_by_name.values(), is_exact=wanted.exact)
    _warn_of_idle(own, tried)
    limit_s = usual_seconds(source) if wanted.seconds is None else wanted.seconds
    nodes = networks.SaturationLimits().nodes if wanted.nodes is None else wanted.nodes
    limits = networks.SaturationLimits(nodes=nodes, seconds=limit_s)
    how = CandidateSearch(
        SearchKind(wanted.search), CostKind(wanted.cost), limit_s, saturation=limits
    )
    can_run = wanted.measure and not missing_device(machine)
    with base.naming_faults("rewrite", "the search for a faster graph", _WITHOUT_SEARCH):
        with _opened_prices(how, machine, wanted) as prices:
            outcome, written, is_tried = _search(
                source, rules_by_name, tried, prices, how, can_run, wanted.should_stop
            )
        outcome = replace(outcome, seconds=time.monotonic() - start)
        return _choose(outcome, written, machine, wanted, is_tried=is_tried)


def _choose(
    outcome: Rewritten,
    written: Sequence[_Written],
    machine: base.Target,
    wanted: RewriteOptions,
    *,
    is_tried: bool,
) -> Rewritten:
    """The result with the best of the written graphs, if one is better than the source.

    Its certificate has only the steps that it needs.

    is_tried   whether the graphs are run in a trial
    """
    trial, best = None, written[0] if written else None
    if written and is_tried:
        graphs = (outcome.source, *(each.graph for each in written))
        times = (
            seconds_elsewhere(graphs, str(wanted.cost), wanted.threads)
            if wanted.cost == CostKind.ONNXRUNTIME
            else seconds_here(graphs, machine, wanted.threads, wanted.records)
        )
        trial, best = _fastest(written, times)
    if best is None:
        return replace(outcome, trial=trial)
    certificate = networks.without_spare_steps(best.certificate, outcome.source)
    return replace(
        outcome,
        graph=best.graph,
        after_s=best.after_s,
        rules=MappingProxyType(certificate.rule_counts),
        certificate=certificate,
        trial=trial,
    )


def _imported(model: Model, how: CompileOptions = USUAL) -> Graph:
    """A model as a graph; a graph is returned as it is."""
    if isinstance(model, Graph):
        return model
    return load_model(model, how.input_shapes, how.bounds)


def _source_of(imported: Graph) -> Graph:
    """The graph that a search starts from.

    Raises:  UnsupportedError for branches and loops, and for sizes that loops decide.
    """
    return simplify(require_alone(require_uncounted(imported, "rewrite"), "rewrite"))


def _search(
    source: Graph,
    rules_by_name: Mapping[str, Rule],
    tried: networks.NetworkRules,
    prices: networks.Prices,
    how: CandidateSearch,
    can_run: bool,
    should_stop: Callable[[], bool],
) -> tuple[Rewritten, tuple[_Written, ...], bool]:
    """Search, and return only the best graphs, so that the search's memory is free when they run.

    tried     the rules in the form in which a search applies them
    Returns:  the result if no graph is better, the best graphs, and whether a trial runs these
    """
    network = networks.read_network(source, with_proofs=True)
    candidates = find_candidates(network, tried, prices, how, should_stop)
    before_s = candidates.network_s
    if before_s is None:
        before_s = networks.network_seconds(prices, source)
    is_tried = can_run and not should_stop()
    least, most = (_TRIED_GAIN, _TRIED) if is_tried else (_EXPECTED_GAIN, 1)
    gains = _gains(source, candidates, prices, how, before_s)
    written = tuple(_written(candidates, rules_by_name, gains, least, most))
    known_s = float("nan") if before_s is None else before_s
    unchanged = Rewritten(
        source,
        source,
        known_s,
        known_s,
        MappingProxyType({}),
        None,
        None,
        candidates.stops,
        len(network.terms),
        candidates.graphs,
    )
    return unchanged, written, is_tried


def usual_seconds(graph: Graph) -> float:
    """Seconds of the search if the caller gives none."""
    return min(MOST_SECONDS, max(_LEAST_SECONDS, _OPERATOR_S * len(graph.nodes)))


@contextmanager
def _opened_prices(
    how: CandidateSearch, machine: base.Target, wanted: RewriteOptions
) -> Iterator[networks.Prices]:
    """Yield the object that prices operators and graphs, and close it at the end."""
    if how.cost is CostKind.ONNXRUNTIME:
        with PeerPrices(how.cost.value, usable_threads(wanted.threads)) as measured:
            yield measured
        return
    if isinstance(machine, base.GpuTarget):
        check_device(machine, "rewrite")
        with opened(wanted.records) as store:
            until = time.monotonic() + _MEASURING_SHARE * how.seconds
            yield DevicePrices(machine, store, measure_speed(machine), until)
        return
    machine = base.cpu_target(machine)
    price = open_price(machine, wanted.threads)
    if price is None:
        raise base.MachineError(
            stage="rewrite",
            where=f"target {machine.name}",
            reason="there is no time model for it",
            remedy="set the knob default_schedule to model",
        )
    yield networks.ProgramPrices(this_machine(machine, usable_threads(wanted.threads)), price)


def _gains(
    source: Graph,
    candidates: Candidates,
    prices: networks.Prices,
    how: CandidateSearch,
    before_s: float | None,
) -> list[float]:
    """The expected speed-up of each candidate over the source; 0 if unknown."""
    if how.cost is CostKind.OPERATORS:
        operators_s = networks.operator_seconds(source, prices)
        return [operators_s / max(1e-30, each.operators_s) for each in candidates.ranked]
    return [
        before_s / each.programs_s if before_s and each.programs_s else 0.0
        for each in candidates.ranked
    ]


def _written(
    candidates: Candidates,
    rules_by_name: Mapping[str, Rule],
    gains: Sequence[float],
    least: float,
    most: int,
) -> list[_Written]:
    """Up to `most` of the most promising candidates as graphs, the largest gain first."""
    written: list[_Written] = []
    folded = FoldedConstants()
    for candidate, gain in zip(candidates.ranked, gains, strict=True):
        if gain < least or len(written) == most:
            continue
        choice = networks.choice_of(candidates.saturation.network, candidate.outputs)
        certificate = _certificate(candidates.saturation, choice, rules_by_name)
        if certificate is not None:
            graph = simplify(networks.write_network(candidates.saturation.network, choice), folded)
            after_s = candidate.programs_s or float("nan")
            written.append(_Written(graph, after_s, certificate))
    return written


def _certificate(
    saturation: networks.NetworkSaturation,
    choice: Mapping[Id, Id],
    rules_by_name: Mapping[str, Rule],
) -> networks.Certificate | None:
    """The certificate that a choice computes the same as the network.

    None if it uses an instance of a schema, or a rule at many dimensions, that cannot be proved.
    All other rules were proved before they were shipped, or when they were read.
    """
    outputs = networks.chosen_outputs(saturation.network, choice)
    certificate = networks.certify(saturation, outputs, rules_by_name)
    network, proved = (
        networks.read_network(saturation.network.graph),
        proved_beside(rules_by_name.values()),
    )
    try:
        networks.replay(certificate, network, proved)
    except base.UsageError:
        return None
    return certificate


def _fastest(written: Sequence[_Written], times: Sequence[float]) -> tuple[Trial, _Written | None]:
    """The trial, and the fastest of the written graphs; None if the source is the fastest.

    times   of the source, then of the written graphs
    Of equally fast graphs the first one is taken, because it is expected to gain more.
    """
    before_s, (after_s, *others) = times[0], times[1:]
    best = written[0]
    for each, taken_s in zip(written[1:], others, strict=True):
        if after_s > _MEASURED_GAIN * taken_s:
            best, after_s = each, taken_s
    return Trial(before_s, after_s), best if before_s > _MEASURED_GAIN * after_s else None


def _warn_of_idle(own: Sequence[Rule], tried: networks.NetworkRules) -> None:
    """Warn of the user's rules that can never change a network."""
    rewrites = (*tried.plain, *(merge.rewrite for merge in tried.merges))
    used = {rewrite.name for rewrite in rewrites}
    for rule in own:
        if rule.name not in used:
            reason = "it only moves elements, has several roots, or is left out by `exact`"
            warnings.warn(f"rule {rule.name} is never tried: {reason}", stacklevel=3)


def check_certificate(
    certificate: networks.Certificate,
    model: Model,
    result: Model,
    is_proved: Callable[[Rule], bool],
) -> None:
    """Check that a certificate proves that two models compute the same, for all sizes.

    is_proved   whether a rule may be applied

    Raises:  UsageError that names the part that does not hold.
    """
    source, rewritten = (_source_of(_imported(each)) for each in (model, result))
    replayed = source
    if certificate != networks.NO_STEPS:
        replayed = simplify(networks.replay(certificate, networks.read_network(source), is_proved))
    wanted = simplify(load_onnx(to_onnx(replayed)))
    if not are_alike(wanted, rewritten):
        raise base.UsageError(
            stage="rewrite",
            where=f"graph {rewritten.name}",
            reason="it is not the graph of the certificate",
            remedy="rewrite the model again",
        )
