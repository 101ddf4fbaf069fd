"""What import refuses: invalid models, and operators that no graph of ours can hold."""

from __future__ import annotations

from tensorwright.base import ModelError, UsageError
from tensorwright.expr import Compute

_SEQUENCE = "sequences are not tensors of a static shape"
_OPTIONAL = "optional values are not tensors of a static shape"
_TEXT = "text tensors are not supported"
_RANDOM = "its result is random, and a graph is a function of its inputs"

REFUSED: dict[str, str] = {
    "SequenceAt": _SEQUENCE,
    "SequenceConstruct": _SEQUENCE,
    "SequenceEmpty": _SEQUENCE,
    "SequenceErase": _SEQUENCE,
    "SequenceInsert": _SEQUENCE,
    "SequenceLength": _SEQUENCE,
    "SequenceMap": _SEQUENCE,
    "SplitToSequence": _SEQUENCE,
    "ConcatFromSequence": _SEQUENCE,
    "Optional": _OPTIONAL,
    "OptionalGetElement": _OPTIONAL,
    "OptionalHasElement": _OPTIONAL,
    "StringConcat": _TEXT,
    "StringNormalizer": _TEXT,
    "StringSplit": _TEXT,
    "RegexFullMatch": _TEXT,
    "TfIdfVectorizer": _TEXT,
    "RandomNormal": _RANDOM,
    "RandomNormalLike": _RANDOM,
    "RandomUniform": _RANDOM,
    "RandomUniformLike": _RANDOM,
    "Bernoulli": _RANDOM,
    "Multinomial": _RANDOM,
    "ImageDecoder": "it reads compressed pictures",
}

_EXPORT = """export the module as ONNX (that needs the package onnxscript), and give the file:
  torch.onnx.export(module, (example,), "model.onnx", dynamo=True)
  tensorwright.compile("model.onnx")"""
_OTHER_TYPES = {
    "torch.nn.modules.module.Module": _EXPORT,
    "torch.export.exported_program.ExportedProgram": _EXPORT,
    "torch.onnx._internal.exporter._onnx_program.ONNXProgram": "give program.model_proto",
    "onnx.onnx_ml_pb2.GraphProto": "make a model of the graph: onnx.helper.make_model(graph)",
}
"""Class of what is given -> what to do with it."""


def model_error(where: str, reason: str, remedy: str = "") -> ModelError:
    """What import raises for what is no valid model."""
    return ModelError(stage="import", where=where, reason=reason, remedy=remedy)


def wrong_type(source: object) -> UsageError:
    """What import raises for an object that is no model at all."""
    names = [f"{kind.__module__}.{kind.__qualname__}" for kind in type(source).__mro__]
    remedy = next((_OTHER_TYPES[name] for name in names if name in _OTHER_TYPES), "")
    if isinstance(source, Compute):
        remedy = "tensorwright.tune tunes a tensor expression, tensorwright.compile compiles it"
    return UsageError(
        stage="import",
        where=f"argument of type {names[0]}",
        reason="it is no model",
        remedy=remedy or "give an ONNX file, its bytes or its ModelProto, or a Graph",
    )
