"""Certificates as files: JSON, one line for each term, step and rule.

    {"format": "tensorwright rewriting certificate 1",
    "terms": [["?", ["x"], []], ["slice", [0, 0, {"size": "2*n"}], [0]], ...],
    "steps": [["relu-slice", {"x1": 0}, {"_axis": [0]}], ...], "rules": ..., "outputs": ...,
    "sizes": [["n", "n <= 512"]]}

`Certificate.to_json` writes it.

Certificates for people: the rule of each step, and the terms that it was applied to.

    1  associativity
       matmul(?x1, matmul(?x2, ?x3)) == matmul(matmul(?x1, ?x2), ?x3)  [reassociating]
       ?x1 = ?x : f32(64, 16)
       ?x2 = ?w : f32(16, 512), constant

A tensor of the first network has its name; of another term the outermost operators are shown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensorwright.base import UsageError
from tensorwright.expr import Index, parse_named_size, parse_size
from tensorwright.graph import Graph
from tensorwright.rewriting.egraph import INPUT
from tensorwright.rewriting.networks.certificate import (
    FORMAT,
    Certificate,
    CertifiedParam,
    CertifiedStep,
    CertifiedTerm,
    sizes_text,
    write_terms,
)
from tensorwright.rewriting.networks.network_analysis import CALL, TensorData
from tensorwright.rewriting.networks.read import read_network

_DEPTH = 2  # operators shown inside each other
_CUT = "..."


@dataclass(frozen=True, slots=True)
class Binding:
    """The value of a rule's variable: a term and its type, or parameters, which have none."""

    variable: str
    text: str
    data: TensorData | None = None

    def __str__(self) -> str:
        if self.data is None:
            return f"{self.variable} = {self.text}"
        return f"?{self.variable} = {self.text} : {_type_text(self.data)}"


@dataclass(frozen=True, slots=True)
class ExplainedStep:
    """A rule, its text, and the values of its variables."""

    rule: str
    text: str
    bindings: tuple[Binding, ...]

    def __str__(self) -> str:
        return "\n".join((self.rule, self.text, *map(str, self.bindings)))


@dataclass(frozen=True, slots=True)
class ExplainedCertificate:
    """The steps from a network to another, and the terms of the other's outputs.

    sizes   the named sizes for all values of which it holds, as text; "" where there are none
    """

    steps: tuple[ExplainedStep, ...]
    outputs: tuple[Binding, ...]
    sizes: str = ""

    def __str__(self) -> str:
        width = len(str(len(self.steps)))
        lines = [f"for all sizes {self.sizes}"] if self.sizes else []
        for number, step in enumerate(self.steps, 1):
            first, *rest = str(step).splitlines()
            lines.append(f"{number:>{width}}  {first}")
            lines += [f"{'':{width}}  {line}" for line in rest]
        return "\n".join([*lines, *(f"so {each}" for each in self.outputs)])


def explain_certificate(certificate: Certificate, graph: Graph) -> ExplainedCertificate:
    """Explain a certificate, for the simplified network that it starts from."""
    return _Explainer(certificate, graph).explained()


class _Explainer:
    def __init__(self, certificate: Certificate, graph: Graph) -> None:
        self._certificate = certificate
        self._graph = graph
        network = read_network(graph)
        self._opaque = network.opaque
        names: dict[int, str] = {}
        for name, node in network.nodes.items():
            names.setdefault(node, name)
        ids = write_terms(certificate, network)
        self._names = [names.get(each, "") for each in ids]
        self._data = [network.terms.data(each) for each in ids]

    def explained(self) -> ExplainedCertificate:
        steps = tuple(map(self._step, self._certificate.steps))
        outputs = tuple(
            Binding(name, self._applied(number, _DEPTH + 1), self._data[number])
            for name, number in zip(self._graph.outputs, self._certificate.outputs, strict=True)
        )
        return ExplainedCertificate(steps, outputs, sizes_text(self._certificate.sizes))

    def _step(self, step: CertifiedStep) -> ExplainedStep:
        text = self._certificate.rules[step.rule].removeprefix(f"{step.rule}: ")
        tensors, params = sorted(step.tensors.items()), sorted(step.params.items())
        bindings = [Binding(name, self._term(at), self._data[at]) for name, at in tensors]
        bindings += [Binding(name, ", ".join(map(str, words))) for name, words in params]
        return ExplainedStep(step.rule, text, tuple(bindings))

    def _term(self, number: int) -> str:
        """A term on a line of its own; a named tensor is shown with its operator."""
        name = self._names[number]
        if not name:
            return self._applied(number, _DEPTH)
        if self._certificate.terms[number].operator == INPUT:
            return f"?{name}"
        return f"?{name} = {self._applied(number, 1)}"

    def _applied(self, number: int, depth: int) -> str:
        """An operator at its arguments, down to `depth` operators inside each other."""
        term = self._certificate.terms[number]
        operator, params = term.operator, list(map(str, term.params))
        if operator == INPUT:
            return f"?{params[0]}"
        if operator == CALL:
            operator, params = self._opaque.kind(params[0])[0], []
        listed = f"[{', '.join(params)}]" if params else ""
        args = ", ".join(self._argument(each, depth - 1) for each in term.args)
        return f"{operator}{listed}({args})"

    def _argument(self, number: int, depth: int) -> str:
        if self._names[number]:
            return f"?{self._names[number]}"
        return self._applied(number, depth) if depth else _CUT


def _type_text(data: TensorData) -> str:
    shape = ", ".join(map(str, data.shape))
    return f"{data.dtype}({shape})" + (", constant" if data.is_constant else "")


def read_certificate(path: Path) -> Certificate:
    """Read a file.  Raises: UsageError where it cannot be read, or is not a certificate."""
    where = f"file {path}"
    try:
        return parse_certificate(path.read_text(encoding="utf-8"), where)
    except (OSError, UnicodeDecodeError) as error:
        raise _fault(where, getattr(error, "strerror", None) or "it is not text") from error


def _fault(where: str, reason: str) -> UsageError:
    remedy = "give a certificate; `tensorwright rewrite` writes one beside each model"
    return UsageError(stage="rewrite", where=where, reason=reason, remedy=remedy)


def parse_certificate(text: str, where: str) -> Certificate:
    """Read `Certificate.to_json`.  Raises: UsageError for other text."""
    try:
        data: Any = json.loads(text)
        if data["format"] != FORMAT:
            raise ValueError(f"its format is {data['format']!r}")
        sizes = {str(name): str(line) for name, line in data.get("sizes", ())}
        atoms = {name: parse_named_size(name, line) for name, line in sizes.items()}
        return Certificate(
            tuple(
                CertifiedTerm(str(o), _params(p, atoms), _numbers(a)) for o, p, a in data["terms"]
            ),
            tuple(
                CertifiedStep(
                    str(rule),
                    {str(name): _number(number) for name, number in tensors.items()},
                    {str(name): _params(value, atoms) for name, value in params.items()},
                )
                for rule, tensors, params in data["steps"]
            ),
            {str(name): str(line) for name, line in data["rules"]},
            _numbers(data["outputs"]),
            sizes,
        )
    except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError) as error:
        raise _fault(where, f"it is not a certificate: {error}") from None


def _params(values: Any, sizes: Mapping[str, Index]) -> tuple[CertifiedParam, ...]:
    def param(value: Any) -> CertifiedParam:
        if isinstance(value, dict):
            return parse_size(str(value["size"]), sizes.get)
        return value if isinstance(value, str) else _number(value)

    return tuple(map(param, values))


def _numbers(values: Any) -> tuple[int, ...]:
    return tuple(map(_number, values))


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} is not a number")
    return value
