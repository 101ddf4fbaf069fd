"""Operators. Read `operator.py` first, then `registry.py`.

Each file in a folder is one family; it opens with a table of its operators, inputs, attributes.

pointwise/     element by element        windows/   convolutions and pools
folding/       folds over axes           moving/    elements moved, read at positions, or made
contraction/   sums of products          host.py    what no expression says
                                         counted.py results of a size that values decide
"""

from tensorwright.base import Array, Attributes, AttributeValue, TensorType
from tensorwright.ops.attributes import INTS, NARROW, int_of, text_of
from tensorwright.ops.host import opaque_operator
from tensorwright.ops.moving.joining import slices_taken
from tensorwright.ops.named_sizes import (
    as_size,
    decided,
    is_certain,
    is_equal,
    is_multiple,
    least_for,
    not_decided,
    number_of,
    product_of,
    shape_text,
    sizes_of,
)
from tensorwright.ops.operator import (
    BY_DIMENSION,
    Attribute,
    ChannelScale,
    Fold,
    LayoutPreference,
    Movement,
    Operator,
    Pattern,
    tensor_operator,
)
from tensorwright.ops.positions import AT_POSITIONS, POSITIONS_INPUT, position_fault
from tensorwright.ops.registry import OPERATORS, infer_types, operator
from tensorwright.ops.shapes import automatic_pads, axis_in
from tensorwright.ops.work import moved_bytes, open_moved_bytes, open_work, work

__all__ = [
    "AT_POSITIONS",
    "BY_DIMENSION",
    "INTS",
    "NARROW",
    "OPERATORS",
    "POSITIONS_INPUT",
    "Array",
    "Attribute",
    "AttributeValue",
    "Attributes",
    "ChannelScale",
    "Fold",
    "LayoutPreference",
    "Movement",
    "Operator",
    "Pattern",
    "TensorType",
    "as_size",
    "automatic_pads",
    "axis_in",
    "decided",
    "infer_types",
    "int_of",
    "is_certain",
    "is_equal",
    "is_multiple",
    "least_for",
    "moved_bytes",
    "not_decided",
    "number_of",
    "opaque_operator",
    "open_moved_bytes",
    "open_work",
    "operator",
    "position_fault",
    "product_of",
    "shape_text",
    "sizes_of",
    "slices_taken",
    "tensor_operator",
    "text_of",
    "work",
]
