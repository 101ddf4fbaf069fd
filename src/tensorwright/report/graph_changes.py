"""The graph of a network before and after rewriting, the rules that were applied, and their gains.

The rules are applied one after the other, in the order in which the certificate first names them.
Each makes a graph.  All graphs run in turns, untuned, and the gain of a rule is the difference of
the times of its graph and the graph before.  So the gains add up to the gain of the rewriting.  A
rule that only makes the next one applicable gains nothing by itself.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tensorwright.base import Array, Target, TensorwrightError
from tensorwright.graph import Graph, Node, simplify
from tensorwright.pipeline import cut, finish
from tensorwright.records import MemoryStore
from tensorwright.report.numbers import LATE, Values, micro, timing
from tensorwright.rewriting import networks, parse_rule
from tensorwright.rewriting.prove import prove
from tensorwright.runtime.measuring import faster_half, samples_in_turns, typical_seconds

_MOST_NODES = 3000
_MOST_RULES = 12  # that are measured separately
_MOST_PLACES = 6  # applications of a rule for which the page has the values of its variables
_TURNS = 30
_TURNS_S = 6.0


@dataclass(frozen=True, slots=True, eq=False)
class GraphChanges:
    """The graphs from a network to the rewritten one.

    rules    in the order in which they are applied; the last entry may hold several
    graphs   the network, then the graph after each rule
    """

    certificate: networks.Certificate
    rules: tuple[tuple[str, ...], ...]
    graphs: tuple[Graph, ...]

    @classmethod
    def of(cls, source: Graph, certificate: networks.Certificate) -> GraphChanges:
        """Replay a certificate that was checked, rule by rule."""
        names = list(dict.fromkeys(step.rule for step in certificate.steps))
        rules: list[tuple[str, ...]] = [(name,) for name in names[:_MOST_RULES]]
        if len(names) > _MOST_RULES:
            rules[-1] = tuple(names[_MOST_RULES - 1 :])
        graphs, applied = [source], set[str]()
        for each in rules:
            applied.update(each)
            made = networks.replay_some(certificate, networks.read_network(source), applied)
            graphs.append(simplify(made))
        return cls(certificate, tuple(rules), tuple(graphs))


def graph_values(source: Graph, changes: GraphChanges | None = None) -> Values:
    """The nodes of the network before and after, and the rules."""
    if changes is None:
        return {"before": _rows(source, {})}
    pairs = list(zip(changes.graphs, changes.graphs[1:], strict=False))
    removed: dict[str, list[int]] = {}
    made: dict[str, list[int]] = {}
    for number, (before, after) in enumerate(pairs):
        kinds = Counter(_kinds(before)), Counter(_kinds(after))
        for kind, count in (kinds[0] - kinds[1]).items():
            removed.setdefault(kind, []).extend([number] * count)
        for kind, count in (kinds[1] - kinds[0]).items():
            made.setdefault(kind, []).extend([number] * count)
    first, last = Counter(_kinds(changes.graphs[0])), Counter(_kinds(changes.graphs[-1]))
    gone, came = first - last, last - first
    return {
        "before": _rows(changes.graphs[0], _ends(removed, gone)),
        "after": _rows(changes.graphs[-1], _ends(made, came)),
        "rules": list(_rules(changes)),
    }


def _ends(rules: Mapping[str, Sequence[int]], counts: Counter[str]) -> dict[str, list[int]]:
    """For each kind of node, the rules that removed or made nodes of it, one for each node."""
    return {kind: list(rules.get(kind, ()))[:count] for kind, count in counts.items()}


def _kind(graph: Graph, node: Node) -> str:
    """The computation of a node, without the names of its tensors."""
    types = [str(graph.types[name]) for name in (*node.inputs, *node.outputs)]
    return f"{node.operator} {node.attributes} {types}"


def _kinds(graph: Graph) -> list[str]:
    return [_kind(graph, node) for node in graph.nodes]


def _rows(graph: Graph, changed: dict[str, list[int]]) -> list[Values]:
    """A row for each node, with its inputs as numbers of rows or as names."""
    maker = {name: row for row, node in enumerate(graph.nodes) for name in node.outputs}
    left = {kind: list(rules) for kind, rules in changed.items()}
    rows: list[Values] = []
    for node in graph.nodes[:_MOST_NODES]:
        row: Values = {
            "name": node.outputs[0],
            "operator": node.operator,
            "type": str(graph.types[node.outputs[0]]),
            "reads": [maker.get(name, name) for name in node.inputs if name not in graph.constants],
            "constants": sum(name in graph.constants for name in node.inputs),
            "attributes": ", ".join(f"{key}={value}" for key, value in node.attributes),
        }
        rules = left.get(_kind(graph, node))
        if rules:
            row["rule"] = rules.pop(0)
        rows.append(row)
    return rows


def _rules(changes: GraphChanges) -> Iterator[Values]:
    """The text of each rule, and the values with which it was applied."""
    steps = networks.explain_certificate(changes.certificate, changes.graphs[0]).steps
    for names in changes.rules:
        own = [step for step in steps if step.rule in names]
        texts = dict.fromkeys(step.text for step in own)
        places = [[str(binding) for binding in step.bindings] for step in own[:_MOST_PLACES]]
        yield {
            "name": ", ".join(names),
            "texts": list(texts),
            "count": len(own),
            "places": places,
        }


def add_proofs(rules: Sequence[Values], certificate: networks.Certificate, deadline: float) -> None:
    """Give each rule its proof: chains of axioms, which need no Z3."""
    for values in rules:
        proofs = []
        for name in values["name"].split(", "):
            if time.monotonic() > deadline:
                proofs.append(LATE)
                continue
            try:
                proofs.append(str(prove(parse_rule(certificate.rules[name]), confirm=False)))
            except TensorwrightError as error:
                proofs.append(error.reason)
        values["proofs"] = proofs


def add_gains(
    rules: Sequence[Values],
    changes: GraphChanges,
    inputs: Mapping[str, Array],
    target: Target,
    threads: int,
    deadline: float,
) -> str:
    """Measure the graph after each rule, untuned, and give each rule its gain.

    Returns:  why nothing was measured; "" if it was
    """
    executables = []
    for graph in changes.graphs:
        if time.monotonic() > deadline:
            return LATE
        executables.append(finish(cut(graph, target, threads), target, threads, MemoryStore()))
    samples = samples_in_turns(executables, inputs, _TURNS, _TURNS_S) or []
    for values, before, after in zip(rules, samples, samples[1:], strict=False):
        spread_s = [half[-1] - half[0] for half in map(faster_half, (before, after))]
        gain_s = typical_seconds(before) - typical_seconds(after)
        values |= {
            **timing(after),
            "before_us": micro(typical_seconds(before)),
            "gain_us": micro(gain_s),
            "noise_us": micro(max(spread_s)),
        }
    return ""
