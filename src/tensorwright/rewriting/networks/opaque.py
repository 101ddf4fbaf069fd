"""Operators of a network that no rule covers, as operators of terms.

    word = kinds.word("softmax", (("axis", -1),))     "softmax-0"
    call[softmax-0, 0](?x)                             the first output of that operator at ?x

Equal operators with equal attributes have one word, so that equal calls of equal terms are equal.

    call[one_hot-1, 0](?i)        a row for each position, of zeros and a one

is a row selector: its product with a matrix on the right reads rows of that.
"""

from __future__ import annotations

from tensorwright.base import DType, TensorwrightError
from tensorwright.ops import Attributes, AttributeValue, TensorType, infer_types

CALL = "call"
"""The operator of terms that stands for one of a network; its parameters: a word, an output."""

ROW_SELECTOR = "one_hot"
"""The operator that computes a row selector, with the values 0 and 1."""

AttributePairs = tuple[tuple[str, AttributeValue], ...]


class OpaqueOperators:
    """The operators of one network that are called, each with its attributes, by their words."""

    def __init__(self) -> None:
        self._words: dict[tuple[str, str], str] = {}
        self._kinds: dict[str, tuple[str, AttributePairs]] = {}
        self._depths: dict[str, int] = {}  # of row selectors

    def word(self, operator: str, attributes: AttributePairs) -> str:
        """The word of an operator with its attributes."""
        key = (operator, repr(attributes))
        word = self._words.setdefault(key, f"{operator}-{len(self._kinds)}")
        self._kinds[word] = (operator, attributes)
        return word

    def row_selector(self, depth: int) -> str:
        """The word of a row selector for matrices with `depth` rows."""
        for word, own_depth in self._depths.items():
            if own_depth == depth:
                return word
        word = f"{ROW_SELECTOR}-{len(self._kinds)}"
        self._kinds[word] = (ROW_SELECTOR, (("depth", depth), ("axis", -1)))
        self._depths[word] = depth
        return word

    def is_row_selector(self, word: str) -> bool:
        """Whether it is one of `row_selector`."""
        return word in self._depths

    def kind(self, word: str) -> tuple[str, AttributePairs]:
        """The operator and the attributes of a word."""
        return self._kinds[word]

    def infer(self, word: str, given: tuple[TensorType, ...]) -> tuple[TensorType, ...] | None:
        """The types of the outputs; None where the operator cannot be applied to these."""
        depth = self._depths.get(word)
        if depth is not None:  # positions are right that could read rows of a matrix
            rows = _inferred("gather", (TensorType(DType.F32, (depth, 1)), *given), {"axis": 0})
            return rows and (TensorType(DType.F32, (*rows[0].shape[:-1], depth)),)
        operator, attributes = self._kinds[word]
        return _inferred(operator, given, dict(attributes))


def _inferred(
    operator: str, types: tuple[TensorType, ...], attributes: Attributes
) -> tuple[TensorType, ...] | None:
    """The types of the outputs; None where the operator cannot be applied to these."""
    try:
        return infer_types(operator, types, attributes)[0]
    except TensorwrightError:
        return None
