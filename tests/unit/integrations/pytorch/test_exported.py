"""Exported programs of PyTorch, from memory and from files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorwright
from tensorwright import compiling
from tensorwright.base import InputError, UndecidedError, UnsupportedError, override
from tensorwright.graph import interpret
from tensorwright.graph.imports.aten import importer, load_exported
from tensorwright.graph.imports.aten.in_place import VIEWS
from tensorwright.graph.imports.converters import ATEN
from tensorwright.graph.model_import import load_model
from tensorwright.graph.passes import simplify
from tensorwright.instances import AnySizes

torch = pytest.importorskip("torch")
functional = torch.nn.functional

from tests.unit.integrations.pytorch.aten_cases import CASES  # noqa: E402
from tests.unit.integrations.pytorch.modules import SMALL, Cnn, Transformer, alike  # noqa: E402
from tests.unit.integrations.pytorch.records import record_of  # noqa: E402

from tensorwright.integrations.pytorch.fx_record import (  # noqa: E402 - without PyTorch it fails
    as_array,
    as_tensor,
)

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")  # of PyTorch about itself
Program = Any
EXAMPLES = {
    "cnn": (Cnn, lambda batch: torch.randn(batch, 3, 16, 16)),
    "transformer": (Transformer, lambda batch: torch.randint(0, 11, (batch, 7))),
}


def exported(name: str) -> tuple[Any, Callable[[int], Any], Program]:
    """A module, what makes inputs of it, and its program for any batch."""
    torch.manual_seed(0)
    kind, make = EXAMPLES[name]
    module = kind().eval()
    batch = torch.export.Dim("batch", min=1, max=8)
    with torch.no_grad():
        program = torch.export.export(module, (make(2),), dynamic_shapes=({0: batch},))
    return module, make, program


@pytest.mark.parametrize("name", EXAMPLES)
def test_programs_and_their_files_are_equal_to_the_module(name: str, tmp_path: Path) -> None:
    module, make, program = exported(name)
    path = tmp_path / "net.pt2"
    torch.export.save(program, path)
    with override(default_schedule="rule"):  # which chooses faster
        executable = tensorwright.compile(program)
    for batch in (2, 3):
        x = make(batch)
        with torch.no_grad():
            assert alike(torch.from_numpy(executable(x)), module(x))
    graph, again = load_model(program), load_model(path)
    assert [str(node.operator) for node in graph.nodes] == [n.operator for n in again.nodes]
    core = load_model(program.run_decompositions())
    results = interpret(core, {core.inputs[0]: x.numpy()})
    assert alike(torch.from_numpy(results[core.outputs[0]]), torch.from_numpy(executable(x)))


@pytest.mark.parametrize("name", SMALL)
def test_files_of_small_networks_are_equal(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    kind, inputs = SMALL[name]
    module = kind().eval()
    torch.export.save(torch.export.export(module, inputs), tmp_path / "small.pt2")
    with override(default_schedule="rule"):
        executable = tensorwright.compile(tmp_path / "small.pt2")
    got = torch.from_numpy(executable(*(each.numpy() for each in inputs)))
    assert alike(got, module(*inputs).detach())


@pytest.mark.parametrize(
    ("function", "arguments"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_operators_compute_what_pytorch_computes(
    function: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    with torch.no_grad():
        want = _flat(function(*arguments))
    graph = load_exported(record_of(function, arguments))
    given = {name: as_array(each) for name, each in zip(graph.inputs, arguments, strict=True)}
    values = interpret(graph, given)
    got = [as_tensor(values[name].copy()) for name in graph.outputs]
    assert len(got) == len(want)
    tolerance = 1e-2 if arguments[0].dtype is torch.bfloat16 else 1e-4
    for number, (left, right) in enumerate(zip(got, want, strict=True)):
        assert alike(left, right, tolerance), f"result {number}: {left} is not {right}"


def _flat(results: Any) -> list[Any]:
    if isinstance(results, torch.Tensor):
        return [results]
    return [each for part in results for each in _flat(part)]


def test_files_have_infinities_and_sizes_that_are_derived(tmp_path: Path) -> None:
    class Masked(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            mask = torch.triu(torch.ones(4, 4, dtype=torch.bool), 1)
            y = torch.softmax(x.masked_fill(mask, float("-inf")), -1)
            return y.reshape(-1, 2, 16).sum(1)

    half = torch.export.Dim("half", min=1, max=10)
    x = torch.randn(6, 4, 4)
    program = torch.export.export(Masked(), (x,), dynamic_shapes=({0: 2 * half},))
    torch.export.save(program, tmp_path / "masked.pt2")
    for given in (program, tmp_path / "masked.pt2"):
        executable = tensorwright.compile(given)
        (size,) = executable.sizes
        assert (size.least, size.most) == (1, 10)
        for batch in (2, 20):
            x = torch.randn(batch, 4, 4)
            assert alike(torch.from_numpy(executable(x.numpy())), Masked()(x))


def test_two_imports_find_what_all_nodes_need_of_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    class Levels(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            for _ in range(3):  # each level needs twice the divisor
                low = torch.nn.functional.max_pool2d(x, 2)
                x = torch.cat([x, torch.nn.functional.interpolate(low, scale_factor=2.0)], 1)
                x = torch.nn.functional.max_pool2d(x, 2)
            return x

    x = torch.randn(1, 2, 16, 24)
    side = torch.export.Dim.DYNAMIC
    program = torch.export.export(Levels(), (x,), dynamic_shapes=({2: side, 3: side},))
    starts = []
    start = importer._Import.run
    monkeypatch.setattr(
        importer._Import, "run", lambda *given: starts.append(given) or start(*given)
    )
    graph = load_model(program)
    assert len(starts) == 2
    assert {each.name: each.divisor for each in graph.sizes} == {"x_2": 8, "x_3": 8}
    assert alike(
        torch.from_numpy(interpret(graph, {"x": x.numpy()})[graph.outputs[0]]), Levels()(x)
    )
    with pytest.raises(UndecidedError, match="decides the shape"):
        load_model(program, sizes={"x_2": "8..", "x_3": "8.."})  # the caller's bounds stay


class Calls(torch.nn.Module):  # type: ignore[misc]
    """A function as a module."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x)


BY_INSTANCE = {
    "windows of different sizes": lambda x: functional.adaptive_avg_pool1d(x, 3),
    "windows one beside the other": lambda x: x.unfold(1, 2, 1).sum(-1),
    "steps of a size": lambda x: torch.arange(0, x.shape[0] * x.shape[1], x.shape[1]) / 2,
    "a number that is no integer": lambda x: (
        x[:, : torch.sym_int(x.shape[1] * 0.3)] * (1 / x.shape[1])
    ),
    "steps that are no integers": lambda x: x + torch.arange(0, x.shape[1] / 2, 0.5),
    "parts of a size": lambda x: torch.cat(x.chunk(2, 1)[::-1], 1),
    "a scale that is rounded": lambda x: functional.interpolate(x[None], scale_factor=1.7),
}
"""Functions of f32(rows, columns) of which no program takes all sizes."""


def open_program(function: Callable[[Any], Any], columns: Any = None) -> tuple[Any, Program]:
    """A module, and its program for any number of rows and columns."""
    module = Calls(function)
    dims = {0: torch.export.Dim.DYNAMIC, 1: columns or torch.export.Dim.DYNAMIC}
    return module, torch.export.export(module, (torch.randn(4, 11),), dynamic_shapes=(dims,))


def any_sizes(given: Any, **options: Any) -> AnySizes:
    executable = tensorwright.compile(given, **options)
    assert isinstance(executable, AnySizes)
    return executable


@pytest.mark.parametrize("name", BY_INSTANCE)
def test_programs_that_are_compiled_for_the_sizes_of_a_call(name: str, tmp_path: Path) -> None:
    module, program = open_program(BY_INSTANCE[name])
    torch.export.save(program, tmp_path / "net.pt2")
    with override(default_schedule="rule"):
        for given in (program, tmp_path / "net.pt2"):
            executable = any_sizes(given)
            for shape in ((4, 11), (2, 5), (1, 4), (4, 11)):
                x = torch.randn(shape)
                assert alike(torch.from_numpy(executable(x.numpy())), module(x))
            assert len(executable.instances) == 3
            assert executable.prepare(x_0=3, x_1=6).inputs[0].shape == (3, 6)
            assert len(executable.instances) == 4
            with pytest.raises(UndecidedError, match="x_"):
                executable.save(tmp_path / "never.tw")
            with pytest.raises(UndecidedError, match="x_"):
                tensorwright.compile(given, sizes="fixed")


def test_calls_of_0_and_1_and_of_sizes_that_a_program_excludes() -> None:
    """PyTorch says 2 for the least number of rows, and takes calls of 0 and 1."""
    columns = torch.export.Dim("columns", min=3, max=40)
    for function in (lambda x: x.sum(1) * x.shape[0], lambda x: x.unfold(1, 2, 1).sum(-1)):
        _, program = open_program(function, columns)
        executable = any_sizes(program)
        for rows in (0, 1, 5):
            x = torch.randn(rows, 9)
            assert alike(torch.from_numpy(executable(x.numpy())), program.module()(x))
        assert [str(each) for each in executable.sizes] == ["x_0 in 1..", "x_1 in 3..40"]
        for excluded in (2, 41):
            with pytest.raises(InputError, match=rf"x_1.* {excluded}\b"):
                executable(np.ones((4, excluded), np.float32))
        with pytest.raises(InputError, match=r"f32\(x_0, x_1\), not f32\(4\)"):
            executable(np.ones(4, np.float32))


def test_instances_of_a_program_are_kept_and_have_its_weights(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TENSORWRIGHT_HOME", str(tmp_path))
    monkeypatch.setenv("TENSORWRIGHT_EXECUTABLE_CACHE", "64")
    module = torch.nn.Sequential(torch.nn.Conv1d(2, 3, 3), torch.nn.AdaptiveAvgPool1d(2))
    x = torch.randn(1, 2, 9)
    dims = ({2: torch.export.Dim.DYNAMIC},)
    program = torch.export.export(module.eval(), (x,), dynamic_shapes=dims)
    built: list[object] = []
    pipeline = compiling._pipeline
    monkeypatch.setattr(compiling, "_pipeline", lambda *a: built.append(a) or pipeline(*a))
    with override(default_schedule="rule"):
        for _ in range(2):
            executable = any_sizes(program)
            assert alike(torch.from_numpy(executable(x.numpy())), module(x).detach())
            assert len(built) == 2  # the refusal of a whole program, and an instance
        with torch.no_grad():
            module[0].weight.mul_(2)
        with pytest.raises(InputError, match="it has changed since it was compiled"):
            executable.prepare(input_2=8)
        again = any_sizes(program)
        assert alike(torch.from_numpy(again(x.numpy())), module(x).detach())


def test_operators_that_return_views_are_listed_as_views() -> None:
    """Or a write through the view would not be seen in what it is a view of."""
    for name in ATEN:
        packet = getattr(torch.ops.aten, name, None)
        schemas = [getattr(packet, each)._schema for each in packet.overloads()] if packet else []
        aliases = [each.alias_info for schema in schemas for each in schema.returns]
        if any(each is not None and not each.is_write for each in aliases):
            assert name in VIEWS, name


def test_a_normalisation_behind_a_linear_layer_goes_into_its_weights() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.BatchNorm1d(6)).eval()
    torch.nn.init.uniform_(module[1].running_var, 0.5, 2)
    x = torch.randn(3, 4)
    program = torch.export.export(module, (x,))
    for each in (program, program.run_decompositions()):
        graph = simplify(load_model(each))
        assert [node.operator for node in graph.nodes] == ["gemm"]
        got = interpret(graph, {graph.inputs[0]: x.numpy()})[graph.outputs[0]]
        assert alike(torch.from_numpy(got), module(x).detach())


def test_what_a_program_does_beside_computing_is_refused() -> None:
    class Counting(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x: Any) -> Any:
            self.calls.add_(1)
            return x + self.calls

    program = torch.export.export(Counting(), (torch.ones(2),))
    with pytest.raises(UnsupportedError, match="calls"):
        load_model(program)
    with pytest.raises(UnsupportedError, match="calls"):
        load_model(program.run_decompositions())
    norm = torch.export.export(torch.nn.BatchNorm1d(3).train(), (torch.ones(2, 3),))
    with pytest.raises(UnsupportedError, match=r"num_batches_tracked|training"):
        load_model(norm)
