"""What import refuses: invalid models, and operators that no graph of ours can hold."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from onnx import NodeProto

from tensorwright.base import ModelError, UnsupportedError

_SEQUENCE = "sequences are not tensors of a static shape"
_OPTIONAL = "optional values are not tensors of a static shape"
_TEXT = "text tensors are not supported"
_RANDOM = "its result is random, and a graph is a function of its inputs"

_OPEN_SIZES = (
    "give it the size that it was exported with, or export it again with that dimension open "
    "(dynamic_shapes of torch.onnx.export)"
)

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


def model_error(where: str, reason: str, remedy: str = "") -> ModelError:
    """What import raises for what is no valid model."""
    return ModelError(stage="import", where=where, reason=reason, remedy=remedy)


def node_label(node: NodeProto) -> str:
    """How messages call a node."""
    name = node.name or (node.output[0] if node.output else "without a name")
    return f"node {name} ({node.op_type})"


@contextmanager
def checked(label: str) -> Iterator[None]:
    """Refuse a node whose converter stumbles over what it is given."""
    try:
        yield
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        reason = f"its inputs or attributes do not fit: {error}"
        raise model_error(label, reason) from error


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
