"""Operators. Read `operator.py` first, then `registry.py`.

Each other file is one family; it opens with a table of its operators, inputs and attributes.
"""

from tensorwright.ops.catalogue import catalogue
from tensorwright.ops.operator import (
    Array,
    Attribute,
    Attributes,
    AttributeValue,
    HostFunction,
    InferRule,
    LayoutWish,
    Meaning,
    Operator,
    Pattern,
    TensorType,
)
from tensorwright.ops.registry import OPERATORS, infer_types, operator
from tensorwright.ops.shapes import automatic_pads
from tensorwright.ops.work import work

__all__ = [
    "OPERATORS",
    "Array",
    "Attribute",
    "AttributeValue",
    "Attributes",
    "HostFunction",
    "InferRule",
    "LayoutWish",
    "Meaning",
    "Operator",
    "Pattern",
    "TensorType",
    "automatic_pads",
    "catalogue",
    "infer_types",
    "operator",
    "work",
]
