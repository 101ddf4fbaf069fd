"""The joint search over graphs and schedules, within one budget.

    graph     drivers.rewrite               the best graph for the network, by proved rules
    tune      drivers.tune                  the workloads of that graph
    compare   runtime.seconds_in_turns      that graph and the original one, with all records so far

The graph is kept beside the records.  The same command continues with it, and `compile` uses it.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

from tensorwright import pipeline
from tensorwright.base import InternalError, MachineError, Target, takes_options
from tensorwright.drivers.rewrite import Rewritten, rewrite, usual_seconds
from tensorwright.drivers.tune import SearchOptions, search, setting_of
from tensorwright.graph import Graph, random_inputs
from tensorwright.records import MemoryStore, RecordStore, opened
from tensorwright.runtime import Executable, missing_device
from tensorwright.runtime.measuring import seconds_in_turns
from tensorwright.tuning.session import Options, TuneResult, compare_programs

_GRAPH_SHARE = 0.1  # the largest share of the minutes that the search for a graph gets
_TRIAL_S = 0.1  # about the time of a trial; it turns a budget of trials into one of seconds
_TURNS = 40
_TURNS_S = 3.0
_NOISE = 1.01


@dataclass(frozen=True, slots=True)
class Optimized:
    """The result of a joint search.

    graph       the compiled graph
    rewritten   the search for it; None if it was on record
    result      of the tuning; it compares the compiled graph with the original one, untuned
    """

    executable: Executable
    graph: Graph
    rewritten: Rewritten | None
    result: TuneResult


@dataclass(frozen=True, kw_only=True)
class OptimizeOptions(SearchOptions):
    """The options of `optimize`.

    rewrite   whether to look for a faster graph first, by proved rules
    """

    rewrite: bool = True


@takes_options(OptimizeOptions, "farm")
def optimize(model: pipeline.Model, given: OptimizeOptions) -> Executable:
    """Tune a model on this machine, and compile it with the best graph and the best schedules.

    model   as of `compile`, but no tensor expression

    Raises:  as `compile`, and RecordError for a store that cannot be used. Ctrl-C keeps what was
             measured, prints how to continue, and ends in KeyboardInterrupt.
    """
    machine, source = given.machine, pipeline.import_graph(model, given)
    with given.opened() as how, opened(how.records, create=True, spare=True) as store:
        return search_jointly(
            source, machine, how.threads, store, how, rewrite=how.rewrite
        ).executable


def search_jointly(
    source: Graph,
    target: Target,
    threads: int | None,
    store: RecordStore,
    how: Options,
    *,
    rewrite: bool = True,
    on_interrupt: Callable[[TuneResult], object] = TuneResult.raise_if_interrupted,
) -> Optimized:
    """As `optimize`, for a simplified network.

    on_interrupt   called when the user stops the tuning, before the best so far is compiled
    """
    started = time.monotonic()
    graph, rewritten = source, None
    if rewrite and not any(node.graphs for node in source.nodes):
        graph, rewritten = _best_graph(source, target, threads, store, how)
    how = _left_of(how, time.monotonic() - started)
    parts = pipeline.cut(graph, target, threads)
    result = search(parts, setting_of(target, threads, how.farm), store, how)
    if result.is_interrupted:
        on_interrupt(result)
    executable = pipeline.finish(parts, target, threads, store)
    if graph is not source and not result.is_interrupted and not missing_device(target):
        untouched = pipeline.cut(source, target, threads)
        rival = pipeline.finish(untouched, target, threads, store)
        inputs = random_inputs(parts.graph)
        times = seconds_in_turns((executable, rival), inputs, rounds=_TURNS, limit_s=_TURNS_S)
        assert times is not None, "nothing stops the runs"
        if times[0] > _NOISE * times[1]:
            pipeline.record_graph(store, source, target, threads, "")
            graph, executable = source, rival
        untuned = pipeline.finish(untouched, target, threads, MemoryStore())
        whole = compare_programs(untouched, untuned, executable, _TURNS_S)
        result = replace(result, networks=(whole,))
    return Optimized(executable, graph, rewritten, result)


def _best_graph(
    source: Graph, target: Target, threads: int | None, store: RecordStore, how: Options
) -> tuple[Graph, Rewritten | None]:
    """The graph to tune: the graph on record, or the result of a search, which is then kept.

    If a fault of tensorwright ends the search, a warning says so, and the original graph is tuned.
    Nothing is kept then, so the next call searches again.
    """
    kept = pipeline.recorded_graph(store, source, target, threads)
    if kept is not None:
        return kept, None
    try:
        seconds = _graph_seconds(source, how)
        rewritten = rewrite(source, target=target, threads=threads, seconds=seconds, records=store)
    except MachineError:  # without prices of programs the original graph is tuned
        return source, None
    except (InternalError, MemoryError) as fault:
        warnings.warn(_fault_text(fault), RuntimeWarning, stacklevel=3)
        return source, None
    text = "" if rewritten.certificate is None else rewritten.certificate.to_json()
    pipeline.record_graph(store, source, target, threads, text)
    return (rewritten.graph if rewritten.is_changed else source), rewritten


def _fault_text(fault: InternalError | MemoryError) -> str:
    """The warning: what happened, how the command continues, and what to report."""
    cause = "there is not enough memory"
    if isinstance(fault, InternalError):
        cause = f"{fault.where}: {fault.reason}"
    return (
        f"the search for a faster graph failed, the network is tuned as it is: {cause}\n"
        "  this is a fault of tensorwright: please report it, with the model and the output of\n"
        "  `TENSORWRIGHT_LOG=debug tensorwright rewrite MODEL -o FILE`;\n"
        "  `--no-rewrite` (`rewrite=False`) leaves that search out"
    )


def _graph_seconds(source: Graph, how: Options) -> float:
    """Seconds of the search for a graph."""
    limits = [usual_seconds(source)]
    if how.seconds is not None:
        limits.append(_GRAPH_SHARE * how.seconds)
    if how.trials is not None:
        limits.append(_TRIAL_S * how.trials)
    return min(limits)


def _left_of(how: Options, spent_s: float) -> Options:
    """The options after some seconds: at least half of the minutes are left."""
    if how.minutes is None:
        return how
    return replace(how, minutes=max(how.minutes / 2, how.minutes - spent_s / 60))
