"""What import refuses: invalid models, and operators that no graph of ours can hold."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from onnx import NodeProto

from tensorwright.base import SUITE_LOADERS, ModelError, UnsupportedError, UsageError
from tensorwright.expr import Compute, Placeholder

_OPEN_SIZES = (
    "give it the size that it was exported with, or export it again with that dimension open "
    "(dynamic_shapes of torch.onnx.export)"
)

_REASONS = {
    "sequences are not tensors of a static shape": "SequenceMap",
    "optional values are not tensors of a static shape": (
        "Optional OptionalGetElement OptionalHasElement"
    ),
    "text tensors are not supported": (
        "StringConcat StringNormalizer StringSplit RegexFullMatch TfIdfVectorizer"
    ),
    "its result is random, and a graph is a function of its inputs": (
        "RandomNormal RandomNormalLike RandomUniform RandomUniformLike Bernoulli Multinomial"
    ),
    "it reads compressed pictures": "ImageDecoder",
}
REFUSED = {name: reason for reason, names in _REASONS.items() for name in names.split()}

_EXPORT = """export the module, and give the program; or let torch.compile call tensorwright:
  tensorwright.compile(torch.export.export(module.eval(), (example,)))
  torch.compile(module.eval(), backend="tensorwright")"""
_OTHER_TYPES = {
    "torch.nn.modules.module.Module": _EXPORT,
    "torch.onnx._internal.exporter._onnx_program.ONNXProgram": "give program.model_proto",
    "onnx.onnx_ml_pb2.GraphProto": "make a model of the graph: onnx.helper.make_model(graph)",
}
"""Class of what is given -> what to do with it."""


NO_OPERATOR = "we have no operator for it"
OTHERWISE = (
    "write it with other operators or arguments; docs/onnx.md and docs/pytorch.md say what is read"
)
INVALID = "export the model again; onnx.checker.check_model says whether the exporter is at fault"


def model_error(where: str, reason: str, remedy: str = INVALID) -> ModelError:
    """The error of import for an invalid model."""
    return ModelError(stage="import", where=where, reason=reason, remedy=remedy)


def unsupported(
    where: str, operator: str, reason: str = NO_OPERATOR, remedy: str = OTHERWISE
) -> UnsupportedError:
    """The error of import for what we cannot express."""
    return UnsupportedError(
        stage="import", where=where, reason=reason, remedy=remedy, operator=operator
    )


def wrong_type(source: object) -> UsageError:
    """The error of import for an object that is not a model at all."""
    names = [f"{kind.__module__}.{kind.__qualname__}" for kind in type(source).__mro__]
    remedy = next((_OTHER_TYPES[name] for name in names if name in _OTHER_TYPES), "")
    if isinstance(source, Placeholder):
        remedy = "a placeholder is an input: give what expr.compute makes of it"
    elif isinstance(source, Compute):
        remedy = "tensorwright.tune tunes a tensor expression, tensorwright.compile compiles it"
    return UsageError(
        stage="import",
        where=f"argument of type {names[0]}",
        reason="it is not a model",
        remedy=remedy
        or "give an ONNX file, its bytes or its ModelProto, or a Graph; or tensor "
        "expressions to tensorwright.compile and tune: what expr.compute returns, or several in a "
        "tuple",
    )


def missing_file(path: Path) -> ModelError:
    """What import raises where no file is; names with a colon are for commands alone."""
    module, _, name = str(path).rpartition(":")
    stem = module.removesuffix(".py")
    if stem in SUITE_LOADERS:
        loader = SUITE_LOADERS[stem]
        reason = f"there is no such file; only commands read a network of the laboratory as {path}"
        remedy = (
            "give a path, bytes, an onnx.ModelProto or a Graph; the laboratory makes this one:\n"
            f"  from tensorwright.zoo import {loader}\n"
            f"  model = {loader}({name!r})"
        )
        return model_error(f"file {path}", reason, remedy)
    if all(part.isidentifier() for part in (*stem.split("."), name)):
        reason = "there is no such file; MODULE:NAME is a name for the command line"
        remedy = f"import it, and give the expression: from {stem} import {name}"
        return model_error(f"file {path}", reason, remedy)
    return model_error(f"file {path}", "there is no such file", "check the path")


def node_label(node: NodeProto) -> str:
    """How messages call a node."""
    name = node.name or (node.output[0] if node.output else "without a name")
    return f"node {name} ({node.op_type})"


@contextmanager
def checked(label: str, remedy: str = INVALID) -> Iterator[None]:
    """Refuse a node whose converter fails on its operands or attributes."""
    try:
        yield
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        reason = f"its inputs or attributes do not fit: {error}"
        raise model_error(label, reason, remedy) from error


@contextmanager
def converting(label: str, operator: str, invalid: str = INVALID) -> Iterator[None]:
    """Refuse, in the name of a node of the model, what its converter refuses or fails on.

    invalid   the remedy for an invalid node
    """
    try:
        with checked(label, invalid):
            yield
    except ModelError as error:
        raise model_error(label, error.reason, invalid) from error.__cause__
    except UnsupportedError as error:
        fields = dict(error.fields) | {"stage": "import", "where": label, "operator": operator}
        raise type(error)(**fields | {"remedy": error.remedy or OTHERWISE}) from None


@contextmanager
def naming_sizes(overridden: str) -> Iterator[None]:
    """Say of a node that does not fit which sizes the caller has put in the place of the model's.

    Where a model was exported with fixed sizes, some of its nodes may hold numbers made of them.
    """
    try:
        yield
    except (ModelError, UnsupportedError) as error:
        if not overridden:
            raise
        fields = dict(error.fields)
        fields["reason"] += f"; the model was exported with {overridden}"
        fields["remedy"] = _OPEN_SIZES
        raise type(error)(**fields) from error
