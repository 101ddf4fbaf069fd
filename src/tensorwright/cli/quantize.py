"""`tensorwright quantize`: write a model with numbers of few bits, and say what that costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import click
from onnx import ModelProto

from tensorwright.base import knobs, option
from tensorwright.cli.arguments import options
from tensorwright.cli.arguments.arrays import read_arrays
from tensorwright.cli.arguments.models import check_model, read_graph, read_proto
from tensorwright.cli.arguments.output import check_writable
from tensorwright.cli.printing import print_table
from tensorwright.compile_options import CompileArguments, Shapes, Sizes
from tensorwright.compiling import compile as compile_model
from tensorwright.drivers.quantize import (
    Error,
    QuantizeOptions,
    node_errors,
    output_errors,
    quantize,
)
from tensorwright.graph import Graph, random_inputs, round_operands
from tensorwright.graph.onnx_export import save_proto, to_onnx

_SHOWN = 10
Errors: TypeAlias = tuple[Error, ...]


@dataclass(frozen=True, kw_only=True)
class Quantizing(QuantizeOptions):
    """The options of `quantize`."""

    calibrate: tuple[str, ...] = option(
        (),
        "Inputs by name, from which ranges are taken; arrays with one more axis hold several "
        "samples. Without --weights, all is quantised to 8 bits. May be repeated.",
        metavar="FILE.npz",
    )


@click.command()
@options.model_argument
@options.output_option
@options.record_options(Quantizing, "how")
@options.shapes_option
@options.sizes_option
@options.seed_option
def command(
    model: str,
    output: str,
    how: Quantizing,
    input_shapes: Shapes | None,
    sizes: Sizes | None,
    seed: int,
) -> None:
    """Write an ONNX model with numbers of few bits.

    --weights int4|int8 stores the matrices of products in few bits, in blocks with a scale
    (MatMulNBits). --calibrate stores weights and activations in 8 bits (QDQ), by ONNX Runtime's
    quantizer. The errors of outputs and of single nodes are measured with the inputs of
    --calibrate, or with random ones.

    Example: tensorwright quantize model.onnx -o small.onnx --weights int4 --block 32
             tensorwright quantize model.onnx -o bytes.onnx --calibrate samples.npz
    """
    if how.weights is None and not how.calibrate:
        raise click.UsageError("give --weights int4 or int8, or --calibrate FILE.npz.")
    check_writable(output, model, *how.calibrate)
    source = _source(model, input_shapes, sizes, seed)
    samples = [read_arrays(path) for path in how.calibrate]
    quantized = quantize(source, replace(how, samples=samples, seed=seed, on_try=_say_try))
    save_proto(quantized.model, output)
    before, after = (_bytes_text(each.ByteSize()) for each in (source, quantized.model))
    click.echo(f"{output}: {after}, {before} before")
    if quantized.kept:
        click.echo(f"kept as floats: {', '.join(quantized.kept)}")
    print_errors(quantized.outputs, quantized.nodes)


def _source(model: str, shapes: Shapes | None, sizes: Sizes | None, seed: int) -> ModelProto:
    """The ONNX model of an argument, with the sizes that are given."""
    if sizes:
        return to_onnx(read_graph(model, shapes, seed, sizes, is_open=True))
    check_model(model)
    return read_proto(model, shapes, seed)


def _say_try(kept: int, nodes: int, error: float) -> None:
    if kept:
        click.echo(f"{kept} of {nodes} nodes kept: error {error:.3g}", err=True)


def rounding_errors(graph: Graph, how: CompileArguments, seed: int) -> tuple[Errors, Errors]:
    """The errors that rounded operands make at the outputs, and that products make by themselves.

    graph   imported, without roundings      seed   of the random inputs
    Raises:  UnsupportedError for a graph that ONNX cannot express.
    """
    inputs = random_inputs(graph, seed)
    how = replace(how, on_kernel=None)
    rounded = round_operands(graph, how.machine, how.precision, how.keep)
    given = compile_model(graph, how).run(inputs)
    wanted = compile_model(graph, replace(how, precision="f32", keep=())).run(inputs)
    with knobs.override(halves_in_floats=False):  # which would leave the roundings out
        nodes = node_errors(to_onnx(graph), to_onnx(rounded), [inputs])
    return output_errors([wanted], [given]), nodes


def print_errors(outputs: Sequence[Error], nodes: Sequence[Error]) -> None:
    """Print the errors of outputs, and the largest of those that nodes make by themselves."""
    rows = [(each.name, f"{each.relative:.3g}", f"{each.largest:.3g}") for each in outputs]
    print_table(("output", "relative error", "largest error"), rows)
    shown = [(each.name, each.operator, f"{each.relative:.3g}") for each in nodes[:_SHOWN]]
    print_table(("node", "operator", "its own error"), shown)
    if len(nodes) > len(shown):
        click.echo(f"and {len(nodes) - len(shown)} nodes with smaller errors")


def _bytes_text(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.1f} kB"
