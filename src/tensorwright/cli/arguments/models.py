"""What a MODEL argument names: a file, or a network: light:NAME, zoo:NAME, wild:NAME."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import onnx
from onnx import ModelProto

from tensorwright.base import TensorwrightError, UsageError
from tensorwright.cli.arguments.kinds import SUITE_KINDS, refuse_other_than_model, split
from tensorwright.cli.arguments.options import Shapes
from tensorwright.graph import Graph
from tensorwright.graph.onnx_export import to_onnx
from tensorwright.graph.onnx_import import load_onnx
from tensorwright.zoo import LIGHT_MODELS, TASO, WILD, ZOO, build, load_light, load_wild

_NAMES = dict(zip(SUITE_KINDS, (LIGHT_MODELS, (*ZOO, *TASO), WILD), strict=True))
PAPER = "paper"
_OF_PAPER = ("resnet50", "mobilenet_v2", "resnet3d_18", "dcgan", "bert_base")
REWRITING = "rewriting"
_OF_REWRITING = (
    *TASO,
    *("bert_base", "resnet50", "resnext50", "inception_v3", "squeezenet", "vgg19", "mobilenet_v2"),
)
_OF_ZOO = {"zoo": ZOO, PAPER: _OF_PAPER, "taso": TASO, REWRITING: _OF_REWRITING}
SUITES = tuple(dict.fromkeys((*SUITE_KINDS, *_OF_ZOO)))


def suite(name: str) -> tuple[str, ...]:
    """The MODEL arguments of a suite; "paper" are the networks that Ansor was measured with, "taso"
    those that TASO was, as its examples define them, "rewriting" those of TASO and TENSAT, on which
    searches over graphs are compared.
    """
    if name in _OF_ZOO:
        return tuple(f"zoo:{each}" for each in _OF_ZOO[name])
    return tuple(f"{name}:{each}" for each in _NAMES[name])


def read_graph(model: str, shapes: Shapes | None = None, seed: int = 0) -> Graph:
    """The graph of a MODEL argument.

    Raises:  ModelError, UnsupportedError, InputError as importing; UsageError for an unknown NAME,
             and for what is no model.
    """
    refuse_other_than_model(model)
    kind, name = split(model)
    if kind == "zoo":
        _refuse_shapes(model, shapes)
        return build(name, seed)
    if kind == "light":
        return load_onnx(load_light(name, seed), shapes)
    if kind == "wild":
        return load_onnx(load_wild(name, seed), shapes)
    return load_onnx(name, shapes)


def check_model(model: str) -> None:
    """Refuse now a MODEL argument that names no model, with the error of `read_graph`."""
    refuse_other_than_model(model)
    kind, name = split(model)
    if not (name in _NAMES[kind] if kind else Path(name).exists()):
        read_graph(model)


def check_readable(models: Sequence[str], shapes: Shapes | None) -> None:
    """Refuse now models none of which can be imported, with the error of the first.

    Networks of suites can, and the first model that can ends the search.
    """
    failures: list[TensorwrightError] = []
    for model in models:
        if split(model)[0]:
            return
        try:
            read_graph(model, shapes)
        except TensorwrightError as error:
            failures.append(error)
        else:
            return
    if failures:
        raise failures[0]


def read_proto(model: str, shapes: Shapes | None = None, seed: int = 0) -> ModelProto:
    """The same as an ONNX model, for another runtime: as it came, where that has all shapes."""
    kind, name = split(model)
    if kind == "light" and not shapes:
        return load_light(name, seed)
    if kind == "wild" and not shapes:
        return load_wild(name, seed)
    if kind == "" and not shapes:
        return onnx.load(name)
    return to_onnx(read_graph(model, shapes, seed))


def save_proto(proto: ModelProto, path: Path) -> None:
    """Write a model; one above 2 GiB with its weights beside it."""
    onnx.save(proto, path, save_as_external_data=proto.ByteSize() > 1 << 30)


def short_name(model: str) -> str:
    """The name for people: without folder, suffix and kind."""
    kind, name = split(model)
    return name if kind else Path(model).stem


def row_name(model: str) -> str:
    """What tables call a MODEL argument: SUITE:NAME, or a file without folder and suffix."""
    kind, name = split(model)
    return f"{kind}:{name}" if kind else Path(name).stem


def _refuse_shapes(model: str, shapes: Shapes | None) -> None:
    if shapes:
        raise UsageError(
            stage="cli",
            where="option --input-shapes",
            reason=f"{model} leaves no shape open",
            remedy="leave the option out",
        )
