"""The measurements of a report: profile, other runtimes, parts of the compiler, rules.

The store keeps them as a session, so that a report can be made again without measuring.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tensorwright import records
from tensorwright.base import Array, TensorwrightError
from tensorwright.graph import Graph, random_inputs
from tensorwright.pipeline import cut, finish
from tensorwright.profiling import profile, profile_values
from tensorwright.records import Setting
from tensorwright.report import numbers
from tensorwright.report.document import SearchedWorkload
from tensorwright.report.graph_changes import GraphChanges, add_gains, add_proofs, graph_values
from tensorwright.report.rivals import (
    WriteModel,
    alone_values,
    rival_values,
    variant_values,
    variants_of,
)
from tensorwright.rewriting.networks import Certificate, parse_certificate
from tensorwright.runtime import Executable
from tensorwright.tuning.session import Comparison

USUAL_SECONDS = 60.0
_PROOF_SHARE = 0.15
_MOST_ALONE = 16
_KIND = "report"


@dataclass(frozen=True, slots=True)
class Subject:
    """A program that a report measures.

    name         for people         command   the command line, for copying
    executable   the tuned program
    source       the simplified network; None for a tensor expression
    graph        the compiled graph: the source, or the rewritten one
    whole        the untuned and the tuned program in turns, if a search has compared them
    write_model  writes the model for other runtimes; None if it cannot be written
    """

    name: str
    command: str
    executable: Executable
    source: Graph | None = None
    graph: Graph | None = None
    whole: Comparison | None = None
    write_model: WriteModel | None = None


def measure(
    subject: Subject,
    setting: Setting,
    store: records.RecordStore,
    searched: Sequence[SearchedWorkload],
    seconds: float = USUAL_SECONDS,
    on_part: Callable[[str], object] = lambda part: None,
) -> numbers.Values:
    """Make the measurements of a report, and keep them in the store.

    seconds   after which no further measurement begins
    on_part   called with the name of the next measurement
    """
    deadline = time.monotonic() + seconds
    on_part("every step")
    profiled = profile(subject.executable)
    values: numbers.Values = {
        "name": subject.name,
        "command": subject.command,
        "machine": numbers.machine_values(setting),
        "profile": profile_values(profiled),
        "noise": numbers.noise_values(profiled.state),
        "missing": {},
    }
    if subject.whole is not None:
        values["whole"] = numbers.comparison_values(subject.whole)
    if subject.source is not None:
        _measure_network(values, subject, subject.source, setting, store, deadline, on_part)
    save_measured(store, setting, searched, values)
    return values


def _measure_network(
    values: numbers.Values,
    subject: Subject,
    source: Graph,
    setting: Setting,
    store: records.RecordStore,
    deadline: float,
    on_part: Callable[[str], object],
) -> None:
    """Add the measurements of networks.  If one fails, the report shows the reason instead."""
    inputs = random_inputs(source)
    missing: dict[str, str] = values["missing"]
    graph = subject.graph or source

    def part(name: str, text: str, make: Callable[[], numbers.Values]) -> None:
        on_part(text)
        try:
            values[name] = make()
        except TensorwrightError as error:
            missing[name] = error.reason

    target, threads = setting.target, setting.threads
    part(
        "rivals",
        "other runtimes and the untuned program",
        lambda: rival_values(
            subject.executable,
            _untuned(subject.executable, source, setting),
            inputs,
            subject.write_model,
        ),
    )
    variants = variants_of(source, graph, subject.executable, target, threads)
    part("parts", "each part of the compiler", lambda: variant_values(variants, inputs, deadline))
    if subject.write_model is None:
        missing["rivals"] = "a program with open sizes is not compared with other runtimes"
    else:
        keys = _costliest(values["profile"])
        calls = cut(graph, target, threads)
        part(
            "alone",
            "workloads in another runtime",
            lambda: alone_values(calls, keys, threads, deadline),
        )
        if not values.get("alone", {"times_us": True})["times_us"]:
            missing["alone"] = numbers.LATE
    certificate = _certificate(source, graph, setting, store)
    part(
        "graphs",
        "each rule",
        lambda: _graphs(source, certificate, inputs, setting, deadline, missing),
    )


def _untuned(tuned: Executable, source: Graph, setting: Setting) -> Executable | None:
    """The network as it was, without records; None if that gives the same code."""
    parts = cut(source, setting.target, setting.threads)
    made = finish(parts, setting.target, setting.threads, records.MemoryStore())
    return None if made.objects == tuned.objects else made


def _costliest(profile: Mapping[str, Any]) -> list[str]:
    """The workloads that take most of a run."""
    times_us: dict[str, float] = {}
    for step in profile["steps"]:
        if step["workload"]:
            times_us[step["workload"]] = times_us.get(step["workload"], 0.0) + step["time_us"]
    return sorted(times_us, key=lambda key: -times_us[key])[:_MOST_ALONE]


def _certificate(
    source: Graph, graph: Graph, setting: Setting, store: records.RecordStore
) -> Certificate | None:
    """The proof that the compiled graph is equal to the network; None if it is the network."""
    if graph is source:
        return None
    text = records.load_rewriting(store, source, setting)
    return parse_certificate(text, "the record store") if text else None


def _graphs(
    source: Graph,
    certificate: Certificate | None,
    inputs: Mapping[str, Array],
    setting: Setting,
    deadline: float,
    missing: dict[str, str],
) -> numbers.Values:
    if certificate is None:
        return graph_values(source)
    changes = GraphChanges.of(source, certificate)
    values = graph_values(source, changes)
    left_s = max(0.0, deadline - time.monotonic())
    until = time.monotonic() + _PROOF_SHARE * left_s
    add_proofs(values["rules"], certificate, until)
    reason = add_gains(values["rules"], changes, inputs, setting.target, setting.threads, deadline)
    if reason:
        missing["gains"] = reason
    return values


def save_measured(
    store: records.RecordStore,
    setting: Setting,
    searched: Sequence[SearchedWorkload],
    values: numbers.Values,
) -> None:
    """Keep the measurements for a set of workloads; they replace the earlier ones."""
    arguments = _arguments(setting, searched)
    name = f"report of {values['name']}"
    store.renew_session(
        records.SavedSession(
            records.session_id(arguments), name, values["name"], arguments, json.dumps(values)
        )
    )


def load_measured(
    store: records.RecordStore, setting: Setting, searched: Sequence[SearchedWorkload]
) -> numbers.Values | None:
    """The kept measurements for a set of workloads; None without any."""
    identity = records.session_id(_arguments(setting, searched))
    state = next((each.state for each in store.sessions() if each.id == identity), None)
    values = None if state is None else json.loads(state)
    return values if isinstance(values, dict) else None


def _arguments(setting: Setting, searched: Sequence[SearchedWorkload]) -> str:
    fields = {
        "kind": _KIND,
        "workloads": {each.key: float(each.weight) for each in searched},
        "target": setting.target.key,
        "hardware": setting.hardware,
        "threads": setting.threads,
    }
    return json.dumps(fields, sort_keys=True)
