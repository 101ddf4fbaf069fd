"""`tensorwright.quantize`: an ONNX model with numbers of few bits, and what that costs in accuracy.

    weights     `few_bit_weights`: matrices in four or eight bits, activations stay floats
    samples     ONNX Runtime's quantizer: activations and weights in eight bits, by calibration

Two measures say what is lost. The outputs of both models for the same inputs are compared. And
each quantised node is run beside its original, on the same inputs, so that its own error is not
mixed with the errors of nodes before it.
"""

from __future__ import annotations

import importlib
import logging
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, version_converter

from tensorwright import base, runtime
from tensorwright.compiling import compile as compile_model
from tensorwright.graph import model_import
from tensorwright.graph.imports import whole_model
from tensorwright.graph.imports.aten import is_archive
from tensorwright.graph.onnx_export import FewBits, save_proto, to_onnx, with_few_bit_weights

Samples = Sequence[Mapping[str, base.Array]]
OnTry = Callable[[int, int, float], object]

WEIGHTS = {"int4": 4, "int8": 8}
_BLOCKS = (16, 32, 64, 128, 256)
_LEAST_OPSET = 13  # from here on, scales may be by channel
_USUAL_OPSET = 17
_ONLY_MOVE = {
    *("Concat", "Expand", "Flatten", "Gather", "Identity", "Pad", "Reshape", "Slice", "Split"),
    *("Squeeze", "Transpose", "Unsqueeze"),
}
"""Operators that make no error of their own."""
_COMPARED = 16
"""The errors are those of so many samples; calibration takes all."""


@dataclass(frozen=True, slots=True)
class Error:
    """How far a tensor of the quantised model is from that of the original.

    name       of the output or of the node       operator   of the node; "" for an output
    relative   the root of the mean square of the differences over that of the numbers
    largest    the largest difference over the largest number; None for a node
    """

    name: str
    operator: str
    relative: float
    largest: float | None = None


@dataclass(frozen=True, slots=True)
class Quantized:
    """A quantised model.

    outputs    the errors of its outputs
    nodes      the errors that quantised nodes make by themselves, the largest first
    kept       the nodes that stay floats so that the outputs are near enough
    """

    model: ModelProto
    outputs: tuple[Error, ...]
    nodes: tuple[Error, ...]
    kept: tuple[str, ...]

    @property
    def error(self) -> float:
        """The largest relative error of an output."""
        return max((each.relative for each in self.outputs), default=0.0)


@dataclass(frozen=True, kw_only=True)
class QuantizeOptions:
    """How a model is quantised.

    weights   products stay floats; if None, all is quantised to QDQ, by calibration
    samples   inputs by name, for each sample: for calibration; the errors are measured with them,
              or else with random inputs
    seed      of the random inputs
    on_try    called after each model that is tried, with its number of kept nodes, the number of
              nodes that could be quantised, and its error
    """

    weights: str | None = base.option(
        None,
        "The matrices of MatMul and Gemm alone, in so many bits; products stay floats.",
        words=tuple(WEIGHTS),
    )
    block: int = base.option(
        32,
        "How many weights of a column share a scale: 16, 32, 64, 128 or 256.",
        metavar="N",
    )
    activations: str = base.option(
        "f32",
        "What few-bit weights are multiplied with: int8 lets each row of the data be rounded to "
        "8 bits, which is faster and less exact.",
        words=("f32", "int8"),
    )
    keep: Sequence[str] = base.option(
        (),
        "A node that stays as it is; patterns as '/decoder/*'. May be repeated.",
        metavar="NODE",
    )
    target_error: float | None = base.option(
        None,
        "Keep the nodes with the largest errors, too, until the relative error of each output is "
        "at most E.",
        metavar="E",
        kind=float,
    )
    samples: Samples | None = None
    seed: int = 0
    on_try: OnTry = lambda kept, nodes, error: None


@base.takes_options(QuantizeOptions)
def quantize(model: model_import.Source, how: QuantizeOptions) -> Quantized:
    """Quantise a model.

    model   as of `compile`; a model of PyTorch becomes one of ONNX first

    Raises:  the errors of importing; UsageError for arguments that do not fit; InputError for
             samples that do not; MachineError if calibration lacks ONNX Runtime.
    """
    weights = how.weights
    keep = [how.keep] if isinstance(how.keep, str) else how.keep
    _check(how)
    source = _with_names(_proto_of(model))
    _check_keep(source, keep)
    if weights is None:
        source = _prepared(source)
    if how.samples:
        used = _samples_of(source, how.samples)
    else:
        used = [_random_sample(source, how.seed)]

    def attempt(kept: frozenset[str]) -> ModelProto:
        def is_kept(node: NodeProto) -> bool:
            return node.name in kept or any(fnmatchcase(node.name, each) for each in keep)

        if weights is not None:
            form = FewBits(WEIGHTS[weights], how.block, how.activations == "int8")
            return with_few_bit_weights(source, form, is_kept)
        kept_names = [node.name for node in source.graph.node if is_kept(node)]
        return _calibrated(source, used, [*kept_names, *_refused_gemms(source)])

    return _near_enough(source, attempt, used[:_COMPARED], how)


def _near_enough(
    source: ModelProto,
    attempt: Callable[[frozenset[str]], ModelProto],
    samples: Samples,
    how: QuantizeOptions,
) -> Quantized:
    """The model with as few kept nodes as a search by halves finds for an error."""
    whole = attempt(frozenset())
    wanted = _outputs(source, samples)
    errors = node_errors(source, whole, samples)
    if not errors:
        raise _refusal(
            f"model {source.graph.name}",
            "no node is left that can be quantised so",
            "weights alone are those of MatMul and plain Gemm; samples quantise convolutions, too",
        )

    def tried(count: int) -> Quantized:
        kept = tuple(each.name for each in errors[:count])
        quantized = attempt(frozenset(kept)) if count else whole
        outputs = output_errors(wanted, _outputs(quantized, samples))
        result = Quantized(quantized, outputs, errors[count:], kept)
        how.on_try(count, len(errors), result.error)
        return result

    best = tried(0)
    if how.target_error is None or best.error <= how.target_error:
        return best
    too_few, enough = 0, len(errors)
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        other = tried(middle)
        if other.error <= how.target_error:
            best, enough = other, middle
        else:
            too_few = middle
    if enough == len(errors):
        raise _refusal(
            f"target error {how.target_error:g}",
            "one node that is quantised makes a larger one",
            "ask for less, or give more bits",
        )
    return best


def node_errors(source: ModelProto, quantized: ModelProto, samples: Samples) -> tuple[Error, ...]:
    """The errors of quantised nodes on the inputs that they have in the original model.

    One model computes the original and, beside each node that is quantised, its other form; its
    outputs are sums of squares, two for each node.
    """
    measured, twins = _beside(source, quantized)
    if not twins:
        return ()
    executable = compile_model(measured)
    totals = dict.fromkeys([name for pair in twins.values() for name in pair], 0.0)
    for sample in samples:
        sums = executable.run(dict(sample))
        for name in totals:
            totals[name] += float(sums[name])
    nodes = {output: node for node in source.graph.node for output in node.output}
    errors = [
        Error(nodes[name].name or name, nodes[name].op_type, _ratio(totals[apart], totals[size]))
        for name, (apart, size) in twins.items()
    ]
    return tuple(sorted(errors, key=lambda each: -each.relative))


def _beside(
    source: ModelProto, quantized: ModelProto
) -> tuple[ModelProto, dict[str, tuple[str, str]]]:
    """The original model with the quantised form of each node beside it, and by the name of a
    result the two outputs that measure it: of the differences, and of the numbers.
    """
    measured = ModelProto()
    measured.CopyFrom(quantized)
    graph = measured.graph
    own = {output: node for node in source.graph.node for output in node.output}
    made = {output for node in quantized.graph.node for output in node.output}
    stored = {each.name for each in graph.initializer}
    constants = [each for each in source.graph.initializer if each.name not in stored]
    graph.initializer.extend(constants)
    renamed = {each.name: f"{each.name}.quantized" for each in constants if each.name in made}
    nodes, twins = [*source.graph.node], dict[str, tuple[str, str]]()
    for node in quantized.graph.node:
        result = node.output[0]
        original = own.get(result)
        if original is not None and (original == node or _makes_no_error(original)):
            continue
        twin = NodeProto()
        twin.CopyFrom(node)
        twin.name = ""
        twin.input[:] = [renamed.get(name, name) for name in node.input]
        if original is not None:
            twin.output[:] = [f"{name}.quantized" if name else "" for name in node.output]
            twins[result] = pair = (f"{result}.apart", f"{result}.size")
            nodes += [twin, *_squares(result, twin.output[0], *pair)]
        else:
            twin.output[:] = [renamed.get(name, name) for name in node.output]
            nodes.append(twin)
    del graph.node[:], graph.output[:], graph.value_info[:]
    graph.node.extend(nodes)
    names = [name for pair in twins.values() for name in pair]
    graph.output.extend(
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ()) for name in names
    )
    return measured, twins


def _makes_no_error(node: NodeProto) -> bool:
    """Whether a node has only one form: its bodies are never quantised, or it moves numbers."""
    return node.op_type in _ONLY_MOVE or any(each.HasField("g") for each in node.attribute)


def _squares(original: str, twin: str, apart: str, size: str) -> Iterator[NodeProto]:
    """Nodes for the sums of the squares of a difference, and of the original numbers."""
    for name in (original, twin):
        yield helper.make_node("Cast", [name], [f"{twin}.{name}.f32"], to=TensorProto.FLOAT)
    both = [f"{twin}.{name}.f32" for name in (original, twin)]
    yield helper.make_node("Sub", both, [f"{twin}.difference"])
    yield helper.make_node("ReduceSumSquare", [f"{twin}.difference"], [apart], keepdims=0)
    yield helper.make_node("ReduceSumSquare", [both[0]], [size], keepdims=0)


def _outputs(model: ModelProto, samples: Samples) -> list[dict[str, base.Array]]:
    executable = compile_model(model)
    return [executable.run(dict(sample)) for sample in samples]


def output_errors(
    wanted: Sequence[Mapping[str, base.Array]], given: Sequence[Mapping[str, base.Array]]
) -> tuple[Error, ...]:
    """The errors of outputs over all samples."""
    errors = []
    for name in wanted[0]:
        theirs = np.concatenate([each[name].ravel() for each in wanted]).astype(np.float64)
        ours = np.concatenate([each[name].ravel() for each in given]).astype(np.float64)
        apart = np.abs(ours - theirs)
        relative = _ratio(float(np.square(apart).sum()), float(np.square(theirs).sum()))
        most = float(np.abs(theirs).max(initial=0.0))
        largest = float(apart.max(initial=0.0)) / most if most else float(apart.any())
        errors.append(Error(name, "", relative, largest))
    return tuple(errors)


def _ratio(apart: float, size: float) -> float:
    if size:
        return float(np.sqrt(apart / size))
    return float("inf") if apart else 0.0


def _proto_of(model: Any) -> ModelProto:
    """The ONNX model: the given one, or what a model of another kind becomes."""
    if isinstance(model, ModelProto):
        return model
    if model_import.is_exported_program(model) or is_archive(model):
        return to_onnx(model_import.load_model(model))
    model_import.check_operators(model)  # its errors say what is wrong
    return whole_model(model)


def _with_names(model: ModelProto) -> ModelProto:
    """A copy of a model: each node has a name of its own, and constants are initialisers."""
    named = ModelProto()
    named.CopyFrom(model)
    del named.graph.node[:]
    used: set[str] = set()
    for node in model.graph.node:
        values = [each.t for each in node.attribute if each.name == "value"]
        if node.op_type == "Constant" and not node.domain and values:
            named.graph.initializer.append(values[0])
            named.graph.initializer[-1].name = node.output[0]
            continue
        stem = name = node.name or node.output[0]
        while name in used:
            name = f"{stem}_{len(used)}"
        used.add(name)
        named.graph.node.append(node)
        named.graph.node[-1].name = name
    return named


def _prepared(model: ModelProto) -> ModelProto:
    """The model as ONNX Runtime's quantizer wants it: simplified, with shapes."""
    if any(node.op_type == "QuantizeLinear" for node in model.graph.node):
        remedy = "give the model as it was before, or quantise weights alone: --weights int8"
        raise _refusal(f"model {model.graph.name}", "it is calibrated already", remedy)
    opset = max((each.version for each in model.opset_import if not each.domain), default=0)
    if opset < _LEAST_OPSET:
        model = version_converter.convert_version(model, _USUAL_OPSET)
    with _quantizer() as (quantizer, folder):
        path, prepared = folder / "model.onnx", folder / "prepared.onnx"
        save_proto(model, path)
        quantizer.quant_pre_process(str(path), str(prepared), skip_symbolic_shape=True)
        return _with_names(onnx.load(prepared))


def _calibrated(model: ModelProto, samples: Samples, keep: Sequence[str]) -> ModelProto:
    """The model in QDQ form, by ONNX Runtime's quantizer; ranges are those of the samples."""
    with _quantizer() as (quantizer, folder):
        left = iter([*map(dict, samples), None])
        methods = {"get_next": lambda reader: next(left)}
        reader = type("Reader", (quantizer.CalibrationDataReader,), methods)()
        path, quantized = folder / "model.onnx", folder / "quantized.onnx"
        made = {name for node in model.graph.node for name in node.output}
        computed = ModelProto()
        computed.CopyFrom(model)
        for each in model.graph.output:
            if each.name not in made:  # it would make a cycle
                computed.graph.output.remove(each)
        save_proto(computed, path)
        quantizer.quantize_static(
            str(path),
            str(quantized),
            reader,
            quant_format=quantizer.QuantFormat.QDQ,
            per_channel=True,
            activation_type=quantizer.QuantType.QUInt8,
            weight_type=quantizer.QuantType.QInt8,
            nodes_to_exclude=list(keep),
            extra_options={"QDQKeepRemovableActivations": True},
        )
        result = onnx.load(quantized)
        del result.graph.output[:]
        result.graph.output.extend(model.graph.output)
        return result


def _refused_gemms(model: ModelProto) -> list[str]:
    """Each Gemm that adds a matrix, which the quantizer refuses, or of which it loses beta."""
    ranks = {each.name: len(each.dims) for each in model.graph.initializer}
    sums = [node for node in model.graph.node if node.op_type == "Gemm" and len(node.input) > 2]
    return [
        node.name
        for node in sums
        if ranks.get(node.input[2], 0) > 1
        or any(each.name == "beta" and each.f != 1 for each in node.attribute)
    ]


@contextmanager
def _quantizer() -> Iterator[tuple[Any, Path]]:
    """ONNX Runtime's quantizer, which is silent, and a folder for its files.

    Raises:  MachineError where it is not installed; ModelError for what it refuses.
    """
    try:
        quantizer = importlib.import_module("onnxruntime.quantization")
    except ImportError as error:
        raise base.MachineError(
            stage="quantize",
            where="calibration",
            reason=f"it needs ONNX Runtime's quantizer ({error})",
            remedy="pip install 'tensorwright[bench]', or quantise weights alone: --weights int8",
        ) from None
    logger = logging.getLogger()
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with tempfile.TemporaryDirectory(prefix="tensorwright-quantize-") as folder:
            yield quantizer, Path(folder)
    except base.TensorwrightError:
        raise
    except Exception as error:
        raise base.ModelError(
            stage="quantize",
            where="calibration",
            reason=f"ONNX Runtime's quantizer refuses it: {error}",
            remedy="quantise weights alone: --weights int8",
        ) from error
    finally:
        logger.setLevel(level)


def _samples_of(model: ModelProto, given: Samples) -> list[dict[str, base.Array]]:
    """The samples; arrays with one more axis than the inputs hold several of them.

    Raises:  InputError for arrays that are not inputs of the model.
    """
    specs = [
        runtime.UnrankedSpec(name, each, ())
        if isinstance(each, base.DType)
        else runtime.TensorSpec(name, each.dtype, tuple(map(runtime.amount_of, each.shape)))
        for name, each in model_import.declared_types(model)[0].items()
    ]
    ports = [runtime.Port.of(spec) for spec in specs]
    samples = []
    for arrays in given:
        runtime.check_names("input", specs, arrays)
        ranks = {
            0 if port.rank is None else np.ndim(arrays[port.name]) - port.rank for port in ports
        }
        counts = {len(arrays[port.name]) for port in ports} if ranks == {1} else {1}
        if len(counts) > 1:
            raise base.InputError(
                stage="quantize",
                where="samples",
                reason=f"their inputs have different numbers of samples: {sorted(counts)}",
                remedy="give each input one array for each sample",
            )
        for at in range(min(counts)):
            one = {name: each[at] if ranks == {1} else each for name, each in arrays.items()}
            checked = runtime.check_inputs(ports, one)
            for spec, array in zip(specs, checked, strict=True):
                if isinstance(spec, runtime.TensorSpec):
                    runtime.check_array("input", spec, array)
                if array.dtype.kind == "f" and not np.isfinite(array).all():
                    raise _refusal(f"input {spec.name}", "it is not finite", "leave the sample out")
            samples.append({port.name: each for port, each in zip(ports, checked, strict=True)})
    return samples


def _random_sample(model: ModelProto, seed: int) -> dict[str, base.Array]:
    """Random inputs of a model, of its usual sizes: 1 for a batch."""
    executable = compile_model(model)
    chosen = executable.chosen_sizes()
    specs = executable.at(**chosen).inputs if chosen else executable.inputs
    generator = np.random.default_rng(seed)
    return {spec.name: runtime.random_array(spec, generator) for spec in specs}


def _check(how: QuantizeOptions) -> None:
    """Raise a UsageError for arguments that do not fit."""
    weights, block, target_error = how.weights, how.block, how.target_error
    if weights is None and not how.samples:
        raise _refusal(
            "arguments",
            "neither weights nor samples are given",
            'give weights="int8" for the weights alone, or samples to calibrate with',
        )
    if how.activations not in ("f32", "int8"):
        raise _refusal(f"activations {how.activations!r}", "they are unknown", "give f32 or int8")
    if weights is not None and weights not in WEIGHTS:
        raise _refusal(f"weights {weights!r}", "they are not known", "give int4 or int8")
    if block not in _BLOCKS:
        remedy = f"give one of {', '.join(map(str, _BLOCKS))}"
        raise _refusal(f"block {block}", "it is not a size of blocks", remedy)
    if target_error is not None and not target_error > 0:
        raise _refusal(f"target error {target_error}", "it must be above 0", "give 0.01, or more")


def _check_keep(model: ModelProto, keep: Sequence[str]) -> None:
    """Raise a UsageError for a name that no node has."""
    names = [node.name for node in model.graph.node]
    for each in keep:
        if not any(fnmatchcase(name, each) for name in names):
            near = get_close_matches(each, names, 1) or names[:1]
            remedy = f"a node is {near[0]}" if near else ""
            raise _refusal(f"node {each}", "no node has this name", remedy)


def _refusal(where: str, reason: str, remedy: str) -> base.UsageError:
    return base.UsageError(stage="quantize", where=where, reason=reason, remedy=remedy)
