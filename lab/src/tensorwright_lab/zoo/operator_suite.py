"""The operators and subgraphs that tuners are compared on: shapes as facts, from `ansor.json`.

`operator_families.py` has the meaning of the families.

A case of the operator suite as a program: our tensor expression, and ONNX models of some forms.

The suite states a layout for every family (images are NHWC, a weight is (kh, kw, ci, co)). Arrays
are drawn in it and our tensor expressions read it. A form is an ONNX graph of the same operator in
a layout of its own, with the arrangements that lead there: other runtimes get every form that may
be their fastest. `operator_families.py` has the programs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from tensorwright import graph
from tensorwright.base import unknown_name
from tensorwright.ops import Array

_FILE = Path(__file__).with_name("ansor.json")


@dataclass(frozen=True, slots=True)
class OperatorCase:
    """One operator, or a subgraph of a few, with one shape.

    family   C1D C2D C3D GMM GRP DIL DEP T2D CAP NRM, or the subgraphs ConvLayer and TBS
    number   of the shape in its family, from 1
    fields   what the numbers of the shape mean, in order: (("batch", 1), ("height", 56), ...)
    gflop    nominal, 10^9 operations: a transposed convolution counts the zeros between its inputs
    """

    family: str
    number: int
    fields: tuple[tuple[str, int], ...]
    gflop: float
    is_subgraph: bool = False

    @property
    def name(self) -> str:
        """Without the batch: C2D.3."""
        return f"{self.family}.{self.number}"

    @property
    def batch(self) -> int:
        """How many images, sentences or matrices at once."""
        return self["batch"]

    def __getitem__(self, field: str) -> int:
        return dict(self.fields)[field]

    def get(self, field: str, default: int) -> int:
        """The number of a field that not every family has."""
        return dict(self.fields).get(field, default)

    def to_json(self) -> dict[str, Any]:
        """The case as JSON knows values; `from_json` reads it back."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> OperatorCase:
        """The case that `to_json` wrote."""
        fields = tuple((str(name), int(number)) for name, number in values["fields"])
        return cls(**{**values, "fields": fields})

    def __str__(self) -> str:
        return f"{self.name} ({', '.join(str(number) for _, number in self.fields)})"


def operator_cases(batch: int | None = None) -> tuple[OperatorCase, ...]:
    """Every case of the suite, operators first; those of one batch (1 or 16) if it is given."""
    return tuple(case for case in _read_cases() if batch is None or case.batch == batch)


def find_cases(texts: Sequence[str], batch: int | None = None) -> tuple[OperatorCase, ...]:
    """The cases that are named: "C2D" is a family, "C2D.3" a case; all where nothing is named.

    Raises:  UsageError for a name that there is not.
    """
    cases = operator_cases(batch)
    for text in texts:
        if not any(text in (case.family, case.name) for case in cases):
            families = dict.fromkeys(case.family for case in cases)
            reason = "the suite has no such case"
            raise unknown_name("zoo", f"case {text!r}", reason, text, families)
    return tuple(case for case in cases if not texts or {case.family, case.name} & set(texts))


@lru_cache(maxsize=1)
def _read_file() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(_FILE.read_text())
    return content


@lru_cache(maxsize=1)
def _read_cases() -> tuple[OperatorCase, ...]:
    cases: list[OperatorCase] = []
    for family in _read_file()["families"]:
        numbers: dict[int, int] = {}
        for case in family["cases"]:
            batch = case["shape"][0]
            numbers[batch] = numbers.get(batch, 0) + 1
            fields = tuple(zip(family["fields"], case["shape"], strict=True))
            cases.append(
                OperatorCase(
                    family["family"], numbers[batch], fields, case["gflop"], family["is_subgraph"]
                )
            )
    return tuple(cases)


Shape = tuple[int, ...]
BuildForm = Callable[[graph.GraphBuilder, Sequence[str]], str]


@dataclass(frozen=True, slots=True)
class Arrangement:
    """How an array of the stated layout lies in a form: reshape, transpose, reshape."""

    stated: Shape
    split: Shape
    order: tuple[int, ...]
    arranged: Shape

    @classmethod
    def same(cls, shape: Shape, arranged: Shape = ()) -> Arrangement:
        """The same order in memory; another shape if one is given."""
        return cls(shape, shape, tuple(range(len(shape))), arranged or shape)

    @classmethod
    def moved(cls, shape: Shape, order: tuple[int, ...]) -> Arrangement:
        """The dimensions in another order."""
        return cls(shape, shape, order, tuple(shape[at] for at in order))

    @property
    def layout(self) -> graph.Layout:
        """The layout that the stated array is of the arranged one."""
        is_moved = self.split == self.stated and self.order != tuple(range(len(self.order)))
        return graph.Layout(order=_inverse(self.order)) if is_moved else graph.Layout()

    def apply(self, array: Array) -> Array:
        """From the stated layout; contiguous."""
        moved = array.reshape(self.split).transpose(self.order)
        return np.ascontiguousarray(moved.reshape(self.arranged))

    def undo(self, array: Array) -> Array:
        """Back to the stated layout; contiguous."""
        moved = array.reshape(tuple(self.split[at] for at in self.order))
        return np.ascontiguousarray(moved.transpose(_inverse(self.order)).reshape(self.stated))


@dataclass(frozen=True, slots=True)
class Form:
    """An operator as nodes of a graph.

    operands  the arrangement of each operand, in the program's order      output  that of the
    output
    build     adds the nodes, given the operands' names; returns the output's
    """

    name: str
    operands: tuple[Arrangement, ...]
    output: Arrangement
    build: BuildForm


@dataclass(frozen=True, slots=True)
class OperatorProgram:
    """A case with its meaning.

    operands   name and stated shape of each      constants  which of them are weights
    arguments  the operand that each input of the workload is, in the workload's order
    """

    case: OperatorCase
    operands: tuple[tuple[str, Shape], ...]
    constants: frozenset[str]
    workload: graph.Workload
    arguments: tuple[str, ...]
    forms: tuple[Form, ...]

    def form(self, name: str) -> Form:
        """The form of that name; KeyError if there is none."""
        return {form.name: form for form in self.forms}[name]


def draw_operands(program: OperatorProgram, copy: int = 0, seed: int = 0) -> dict[str, Array]:
    """Arrays for all operands of one copy, in the stated layout; numbers in -1..1."""
    arrays: dict[str, Array] = {}
    for number, (name, shape) in enumerate(program.operands):
        source = np.random.Generator(np.random.SFC64([seed, copy, number]))
        arrays[name] = source.random(shape, np.float32) * np.float32(2) - np.float32(1)
    return arrays


def evaluate_program(program: OperatorProgram, operands: Mapping[str, Array]) -> Array:
    """The answer in the stated layout, by the evaluator."""
    arrays = workload_arrays(program, operands)
    return graph.reference(program.workload, arrays)[0]


def workload_arrays(program: OperatorProgram, operands: Mapping[str, Array]) -> tuple[Array, ...]:
    """The operands as the workload's inputs want them, in its order."""
    shapes = [each.extents for each in program.workload.input_types]
    names = zip(program.arguments, shapes, strict=True)
    return tuple(operands[name].reshape(shape) for name, shape in names)


def form_graph(program: OperatorProgram, form: Form, copies: int = 1, seed: int = 0) -> graph.Graph:
    """Independent copies of a form in one graph, each with weights of its own.

    Inputs are called x_0, x_1, ... after operand and copy; outputs are in the order of the copies.
    """
    builder = graph.GraphBuilder(f"{program.case.name}_{form.name}")
    outputs = []
    for copy in range(copies):
        arrays = draw_operands(program, copy, seed) if program.constants else {}
        names = []
        for (name, _), arrangement in zip(program.operands, form.operands, strict=True):
            label = f"{name}_{copy}"
            if name in program.constants:
                names.append(builder.constant(arrangement.apply(arrays[name]), label))
            else:
                names.append(builder.input(label, arrangement.arranged))
        outputs.append(form.build(builder, names))
    return builder.finish(outputs)


def form_inputs(
    program: OperatorProgram, form: Form, copies: int = 1, seed: int = 0
) -> dict[str, Array]:
    """The inputs of `form_graph` by name."""
    arrays: dict[str, Array] = {}
    for copy in range(copies):
        drawn = draw_operands(program, copy, seed)
        for (name, _), arrangement in zip(program.operands, form.operands, strict=True):
            if name not in program.constants:
                arrays[f"{name}_{copy}"] = arrangement.apply(drawn[name])
    return arrays


def _inverse(order: Sequence[int]) -> tuple[int, ...]:
    return tuple(int(at) for at in np.argsort(order))
