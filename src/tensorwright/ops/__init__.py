"""Operators. Read `operator.py` first; each other file is one family of operators."""

from tensorwright.ops.operator import (
    Array,
    Attribute,
    Attributes,
    AttributeValue,
    LayoutWish,
    Operator,
    Pattern,
    TensorType,
)

__all__ = [
    "Array",
    "Attribute",
    "AttributeValue",
    "Attributes",
    "LayoutWish",
    "Operator",
    "Pattern",
    "TensorType",
]
