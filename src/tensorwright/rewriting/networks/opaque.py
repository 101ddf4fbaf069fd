"""Operators of a network that no rule speaks of, as operators of terms.

    word = kinds.word("softmax", (("axis", -1),))     "softmax-0"
    call[softmax-0, 0](?x)                             the first output of that operator at ?x

Equal operators with equal attributes have one word, so that equal calls of equal terms are equal.
"""

from __future__ import annotations

from tensorwright.base import DType, TensorwrightError
from tensorwright.ops import AttributeValue, TensorType, infer_types

CALL = "call"
"""The operator of terms that stands for one of a network; its parameters: a word, an output."""

AttributePairs = tuple[tuple[str, AttributeValue], ...]


class OpaqueOperators:
    """The operators of one network that are called, each with its attributes, by their words."""

    def __init__(self) -> None:
        self._words: dict[tuple[str, str], str] = {}
        self._kinds: dict[str, tuple[str, AttributePairs]] = {}

    def word(self, operator: str, attributes: AttributePairs) -> str:
        """The word of an operator with its attributes."""
        key = (operator, repr(attributes))
        word = self._words.setdefault(key, f"{operator}-{len(self._words)}")
        self._kinds[word] = (operator, attributes)
        return word

    def kind(self, word: str) -> tuple[str, AttributePairs]:
        """The operator and the attributes of a word."""
        return self._kinds[word]

    def infer(
        self, word: str, types: tuple[tuple[DType, tuple[int, ...]], ...]
    ) -> tuple[TensorType, ...] | None:
        """The types of the outputs; None where the operator cannot be applied to these."""
        operator, attributes = self._kinds[word]
        given = tuple(TensorType(dtype, shape) for dtype, shape in types)
        try:
            found, _ = infer_types(operator, given, dict(attributes))
        except TensorwrightError:
            return None
        return found
