"""The networks that a MODEL argument may name, and the suites of them."""

from __future__ import annotations

from onnx import ModelProto

from tensorwright.base import SUITE_LOADERS, UsageError, unknown_name
from tensorwright.compile_options import Shapes
from tensorwright.graph import Graph
from tensorwright.graph.imports import load_onnx
from tensorwright.graph.onnx_export import to_onnx
from tensorwright_lab import zoo

_ZOO = (*zoo.ZOO, *zoo.TASO, *zoo.DECODERS)
_NAMES = dict(zip(SUITE_LOADERS, (zoo.LIGHT_MODELS, _ZOO, zoo.WILD), strict=True))
PAPER = "paper"
_OF_PAPER = ("resnet50", "mobilenet_v2", "resnet3d_18", "dcgan", "bert_base")
REWRITING = "rewriting"
_OF_REWRITING = (
    *zoo.TASO,
    *("bert_base", "resnet50", "resnext50", "inception_v3", "squeezenet", "vgg19", "mobilenet_v2"),
)
_OF_ZOO = {"zoo": zoo.ZOO, PAPER: _OF_PAPER, "taso": zoo.TASO, REWRITING: _OF_REWRITING}
SUITES = tuple(dict.fromkeys((*SUITE_LOADERS, *_OF_ZOO)))


def suite(name: str) -> tuple[str, ...]:
    """The MODEL arguments of a suite; "paper" are the networks that Ansor was measured with, "taso"
    those that TASO was, as its examples define them, "rewriting" those of TASO and TENSAT, on which
    searches over graphs are compared.

    Raises:  UsageError for another name.
    """
    if name not in SUITES:
        raise unknown_name("cli", f"suite {name!r}", "there is no such suite", name, SUITES)
    if name in _OF_ZOO:
        return tuple(f"zoo:{each}" for each in _OF_ZOO[name])
    return tuple(f"{name}:{each}" for each in _NAMES[name])


def read_network(kind: str, name: str, shapes: Shapes | None = None, seed: int = 0) -> Graph:
    """The network `kind`:`name` as a graph.

    Raises:  UsageError for an unknown name, or for shapes that nothing leaves open.
    """
    if kind == "zoo" and name not in zoo.DECODERS:
        _refuse_shapes(f"zoo:{name}", shapes)
        return zoo.build(name, seed)
    return load_onnx(read_proto(kind, name, seed), shapes)


def read_proto(kind: str, name: str, seed: int = 0) -> ModelProto:
    """The network `kind`:`name` as an ONNX model.  Raises: UsageError for an unknown name."""
    if kind == "light":
        return zoo.load_light(name, seed)
    if kind == "wild":
        return zoo.load_wild(name, seed)
    if name in zoo.DECODERS:
        return zoo.decoder_model(name, seed)
    return to_onnx(zoo.build(name, seed))


def check_name(kind: str, name: str) -> None:
    """Refuse now a name that there is not, with the error of `read_network`."""
    if name not in _NAMES[kind]:
        read_network(kind, name)


def _refuse_shapes(model: str, shapes: Shapes | None) -> None:
    if shapes:
        raise UsageError(
            stage="cli",
            where="option --input-shapes",
            reason=f"{model} leaves no shape open",
            remedy="leave the option out",
        )
