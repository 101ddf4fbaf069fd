"""What import refuses: invalid models, and operators that no graph of ours can hold."""

from __future__ import annotations

from tensorwright.base import ModelError

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


def model_error(where: str, reason: str, remedy: str = "") -> ModelError:
    """What import raises for what is no valid model."""
    return ModelError(stage="import", where=where, reason=reason, remedy=remedy)
