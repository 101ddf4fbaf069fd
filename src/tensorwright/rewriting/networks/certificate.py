"""Certificates: the terms and steps by which equality of two networks is checked without a search.

    terms   0  ?x    1  ?v    2  ?w    3  matmul(0, 1)    4  matmul(3, 2)    5  matmul(1, 2)    ...
    steps   associativity with x1 = 0, x2 = 1, x3 = 2
    outputs y is term 6, matmul(0, 5)
    sizes   n, which fulfils n <= 512: parameters may be expressions of it, {"size": "2*n"}

A check reads the first network itself, adds the terms, and applies each step. The rule of a step
must be proved for all values of its parameter variables (the step has the values that it used); its
condition must hold and all of its terms must be well-typed.  Then the outputs must be equal, by
congruence, and the terms of the outputs, written as a graph, must be the second network.  A
certificate of a network with named sizes holds for all of their values: each condition is checked
for all of them, and a network whose sizes have other bounds is refused.

Source:  Willsey et al., egg, POPL 2021 (explanations); instances of rules are kept, not chains of
         terms, which may be exponentially longer where terms are shared.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NoReturn, TypeAlias

from tensorwright.base import Advice, UsageError
from tensorwright.expr import IndexExpr
from tensorwright.graph import Graph
from tensorwright.rewriting import egraph
from tensorwright.rewriting.dims import arguments_first
from tensorwright.rewriting.networks.network_analysis import (
    CALL,
    TensorData,
    is_of_few,
    rule_of_few,
)
from tensorwright.rewriting.networks.read import Network, read_network
from tensorwright.rewriting.networks.saturate import NetworkSaturation, choice_of, steps_between
from tensorwright.rewriting.networks.write import write_network
from tensorwright.rewriting.prove import has_parameter_variables, is_of_several, places_of
from tensorwright.rewriting.terms import Input, Param, Rule, Term
from tensorwright.rewriting.text import parse_rule, rule_text

_MOST_REPLAYED = 30_000  # steps and terms
FORMAT = "tensorwright rewriting certificate 1"


CertifiedParam: TypeAlias = int | str | IndexExpr
"""A number, a word, or an expression of named sizes."""


@dataclass(frozen=True, slots=True)
class CertifiedTerm:
    """An operator with parameters over terms before it, by their numbers."""

    operator: str
    params: tuple[CertifiedParam, ...]
    args: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CertifiedStep:
    """A rule by its name, and the values of its variables: terms by number, parameters."""

    rule: str
    tensors: Mapping[str, int]
    params: Mapping[str, tuple[CertifiedParam, ...]]


@dataclass(frozen=True, slots=True)
class Certificate:
    """The proof that the outputs of a network equal those of another.

    rules     by name, as text           outputs   the terms of the other network's outputs
    sizes     the named sizes of both with their constraints: it holds for all such values
    """

    terms: tuple[CertifiedTerm, ...]
    steps: tuple[CertifiedStep, ...]
    rules: Mapping[str, str]
    outputs: tuple[int, ...]
    sizes: Mapping[str, str] = field(default_factory=dict)

    @property
    def rule_counts(self) -> dict[str, int]:
        """How often each rule is applied, the most used first."""
        return dict(Counter(step.rule for step in self.steps).most_common())

    def to_json(self) -> str:
        """The text of the file: one line for each term, step and rule."""
        parts: dict[str, list[Any]] = {
            "terms": [[each.operator, _written(each.params), each.args] for each in self.terms],
            "steps": [
                [each.rule, each.tensors, {n: _written(p) for n, p in each.params.items()}]
                for each in self.steps
            ],
            "rules": [[name, text] for name, text in self.rules.items()],
            "outputs": list(self.outputs),
        }
        if self.sizes:
            parts["sizes"] = [[name, text] for name, text in self.sizes.items()]
        lines = [f'"format": {json.dumps(FORMAT)}']
        for name, rows in parts.items():
            body = ",\n  ".join(map(json.dumps, rows))
            lines.append(f'"{name}": [\n  {body}\n]')
        return "{" + ",\n".join(lines) + "}\n"


def _written(params: tuple[CertifiedParam, ...]) -> list[Any]:
    return [{"size": str(each)} if isinstance(each, IndexExpr) else each for each in params]


def sizes_text(sizes: Mapping[str, str]) -> str:
    """Named sizes for people: "n, m with 4 <= m"."""
    return ", ".join(f"{name} with {text}" if text else name for name, text in sizes.items())


NO_STEPS = Certificate((), (), {}, ())
"""The certificate of a network that stays as it is."""


def certify(
    saturation: NetworkSaturation, outputs: Sequence[egraph.Id], rules: Mapping[str, Rule]
) -> Certificate:
    """The certificate for outputs that are equal to those of the network.

    rules   all that may have been applied, by name
    """
    terms = saturation.network.terms
    steps = steps_between(saturation, outputs)
    used = {step.rewrite.name: rules[step.rewrite.name] for step in steps}
    named = [*outputs, *(node for step in steps for node in step.nodes.values())]
    needed = sorted(arguments_first(named, terms.children))
    number = {name: index for index, name in enumerate(needed)}
    certified: list[CertifiedTerm] = []
    for name in needed:
        operator, params = terms.parts(terms.head_of(name))
        args = tuple(number[child] for child in terms.children(name))
        certified.append(CertifiedTerm(operator, _plain(params), args))
    return Certificate(
        tuple(certified),
        tuple(
            CertifiedStep(
                step.rewrite.name,
                {name: number[node] for name, node in step.nodes.items()},
                {name: _plain(egraph.listed(value)) for name, value in step.params.items()},
            )
            for step in steps
        ),
        {name: rule_text(rule) for name, rule in used.items()},
        tuple(number[name] for name in outputs),
        _sizes_of(saturation.network.graph),
    )


def _sizes_of(graph: Graph) -> dict[str, str]:
    return {size.name: size.constraints for size in graph.sizes}


def _plain(params: tuple[Param, ...]) -> tuple[CertifiedParam, ...]:
    closed = tuple(param for param in params if isinstance(param, int | str | IndexExpr))
    assert len(closed) == len(params), "only patterns have computed orders"
    return closed


def without_spare_steps(certificate: Certificate, graph: Graph) -> Certificate:
    """The certificate without steps that the others make superfluous: explanations may go by two
    ways at once.  Long ones stay as they are.

    graph   the network of the certificate
    """
    shortest = certificate
    if len(shortest.steps) * (len(shortest.steps) + len(shortest.terms)) > _MOST_REPLAYED:
        return shortest
    for position in reversed(range(len(shortest.steps))):
        fewer = replace(
            shortest, steps=(*shortest.steps[:position], *shortest.steps[position + 1 :])
        )
        try:
            replay(fewer, read_network(graph), lambda _: True)
        except UsageError:
            continue
        shortest = fewer
    used = {step.rule for step in shortest.steps}
    return replace(
        shortest, rules={name: text for name, text in shortest.rules.items() if name in used}
    )


def replay(certificate: Certificate, network: Network, is_proved: Callable[[Rule], bool]) -> Graph:
    """The network that a certificate says is equal to another.

    network     the other, just read     is_proved   whether a rule may be applied
    Raises:  UsageError that names the first step that does not hold, and for a network whose sizes
             have other bounds.
    """
    own = _sizes_of(network.graph)
    if certificate.sizes != own:
        its, the = sizes_text(certificate.sizes) or "none", sizes_text(own) or "none"
        reason = f"they are {its}, and those of the network {the}"
        bounds = "give the network those bounds: "
        _refuse("its sizes", reason, Advice(f"{bounds}sizes=...", f"{bounds}--sizes"))
    return _Replay(certificate, network, is_proved).graph()


def replay_some(certificate: Certificate, network: Network, rules: Collection[str]) -> Graph:
    """As `replay`, by some of the rules of a certificate that was checked: each tensor that they
    show to be one of the other network is computed as there.

    Each step is an equality by itself, so any of them make an equal network.
    """
    steps = tuple(step for step in certificate.steps if step.rule in rules)
    return _Replay(replace(certificate, steps=steps), network, lambda _: True).graph_so_far()


def write_terms(certificate: Certificate, network: Network) -> tuple[egraph.Id, ...]:
    """The terms of a certificate among those of the network that was just read."""
    written: list[egraph.Id] = []
    for number, term in enumerate(certificate.terms):
        where = f"term {number}, {term.operator}"
        if any(not 0 <= arg < number for arg in term.args):
            _refuse(where, "its arguments do not stand before it")
        kinds = tuple(map(type, term.params))
        is_named = term.operator in (egraph.INPUT, CALL)
        if kinds != {egraph.INPUT: (str,), CALL: (str, int)}.get(term.operator, kinds) or (
            not is_named and any(map(_is_variable, term.params))
        ):
            _refuse(where, f"its parameters cannot be {list(term.params)}")
        head = network.terms.head(term.operator, term.params)
        try:
            made = network.terms.put(head, tuple(written[arg] for arg in term.args))
        except (UsageError, KeyError) as error:
            _refuse(where, f"there is no such operator: {error}")
        if made is None:
            _refuse(where, "it cannot be applied to its arguments")
        written.append(made)
    return tuple(written)


def _is_variable(param: CertifiedParam) -> bool:
    """Whether a word is a variable, which a term of a certificate must not have."""
    return isinstance(param, str) and egraph.is_parameter_variable(param)


class _Replay:
    def __init__(
        self, certificate: Certificate, network: Network, is_proved: Callable[[Rule], bool]
    ) -> None:
        self._certificate = certificate
        self._network = network
        self._terms = network.terms
        self._is_proved = is_proved
        self._ids = write_terms(certificate, network)
        self._wide: set[str] = set()  # rules that are applied at many dimensions alone

    def graph(self) -> Graph:
        self._apply_all()
        names = self._network.graph.outputs
        if len(names) != len(self._certificate.outputs):
            _refuse("its outputs", f"the network has {len(names)}")
        for name, source, number in zip(
            names, self._network.outputs, self._certificate.outputs, strict=True
        ):
            if not self._terms.are_equal(source, self._term(number, f"output {name}")):
                _refuse(f"output {name}", "the steps do not show that it is the same")
        return write_network(self._network, choice_of(self._network, self._chosen()))

    def graph_so_far(self) -> Graph:
        """The network by a part of the steps: all below a term of the other network is as there."""
        self._apply_all()
        own = choice_of(self._network, self._network.outputs)
        return write_network(self._network, own | choice_of(self._network, self._chosen()))

    def _chosen(self) -> list[egraph.Id]:
        """The terms of the outputs of the other network."""
        return [self._ids[number] for number in self._certificate.outputs]

    def _apply_all(self) -> None:
        steps = self._certificate.steps
        self._wide = {step.rule for step in steps} - {
            step.rule for step in steps if self._is_of_few(step)
        }
        rules = {name: self._rule(name, text) for name, text in self._certificate.rules.items()}
        for number, step in enumerate(steps):
            self._apply(f"step {number}, {step.rule}", step, rules)

    def _rule(self, name: str, text: str) -> Rule:
        rule = _parsed(text)
        if name not in self._wide and not self._is_proved(rule):
            _refuse(f"rule {name}", "it is not proved")
        return egraph.with_size_variables(rule) if len(rule.left) == 1 else rule

    def _term(self, number: int, where: str) -> egraph.Id:
        if not 0 <= number < len(self._ids):
            _refuse(where, f"there is no term {number}")
        return self._ids[number]

    def _apply(self, where: str, step: CertifiedStep, rules: Mapping[str, Rule]) -> None:
        rule = rules.get(step.rule)
        if rule is None:
            _refuse(where, "the certificate has no such rule")
        self._check_values(where, rule, step)
        nodes = {name: self._term(number, where) for name, number in step.tensors.items()}
        data = {name: self._terms.data(node) for name, node in nodes.items()}
        values: dict[str, egraph.Value] = {
            name: value[0] if len(value) == 1 else value for name, value in step.params.items()
        }
        scope = egraph.Scope(values, data)
        try:
            if not all(self._terms.analysis.holds(fact, scope) for fact in rule.condition):
                _refuse(where, "its condition does not hold")
            self._check_dimensions(where, rule, scope)
            for left, right in zip(rule.left, rule.right, strict=True):
                ends = tuple(self._instance(side, nodes, scope) for side in (left, right))
                self._unite(where, *ends)
        except KeyError as error:
            _refuse(where, f"nothing is said of {error}")

    def _check_values(self, where: str, rule: Rule, step: CertifiedStep) -> None:
        """Refuse a value that the proof for a parameter variable does not cover."""
        places = places_of(rule) if has_parameter_variables(rule) else {}
        for name, value in step.params.items():
            several = name in places and is_of_several(places[name])
            if any(map(_is_variable, value)) or (len(value) != 1 and not several):
                _refuse(where, f"{name} cannot be {list(value)}")

    def _is_of_few(self, step: CertifiedStep) -> bool:
        """Whether the rule itself has to be proved: not only what it is for few dimensions."""
        text = self._certificate.rules.get(step.rule)
        shapes = {
            name: self._terms.data(self._term(number, f"step of {step.rule}")).shape
            for name, number in step.tensors.items()
        }
        return text is None or is_of_few(_parsed(text), step.params, shapes)

    def _check_dimensions(self, where: str, rule: Rule, scope: egraph.Scope[TensorData]) -> None:
        """Refuse a rule that does not follow at many dimensions from a proved one of few."""
        few = rule_of_few(rule, scope)
        if few is rule:
            return
        if few is egraph.Applies.NO:
            _refuse(where, "its sides do not fit these tensors")
        if isinstance(few, egraph.Applies) or not self._is_proved(few):
            _refuse(where, "it is not proved for as many dimensions")

    def _unite(self, where: str, one: egraph.Id | None, other: egraph.Id | None) -> None:
        if one is None or other is None:
            _refuse(where, "a side of it is not a term")
        if not self._terms.analysis.may_merge(self._terms.data(one), self._terms.data(other)):
            _refuse(where, "its sides are tensors of different types")
        self._terms.union(one, other, 0)

    def _instance(
        self, side: Term, nodes: Mapping[str, egraph.Id], scope: egraph.Scope[TensorData]
    ) -> egraph.Id | None:
        """The term of a side of a rule, its variables replaced; None where there is none."""
        if isinstance(side, Input):
            return nodes[side.name]
        params = egraph.instance_params(side.params, scope, self._terms.analysis)
        if params is None:
            return None
        args: list[egraph.Id] = []
        for arg in side.args:
            made = self._instance(arg, nodes, scope)
            if made is None:
                return None
            args.append(made)
        return self._terms.put(self._terms.head(side.operator, params), tuple(args))


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Rule:
    """A rule of a certificate, which is read many times while superfluous steps are looked for."""
    return parse_rule(text)


def _refuse(where: str, reason: str, remedy: str = "rewrite the model again") -> NoReturn:
    raise UsageError(
        stage="rewrite",
        where=f"certificate, {where}",
        reason=reason,
        remedy=remedy,
    )
