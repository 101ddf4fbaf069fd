"""Operators. Read `operator.py` first, then `registry.py`.

Each file in a folder is one family.  docs/operators.md, which is printed from the records, has the
inputs, attributes and defaults of all.

pointwise/     element by element        windows/   convolutions and pools
folding/       folds over axes           moving/    elements moved, read at positions, or made
contraction/   sums of products          host.py    what no expression says
                                         counted.py results of a size that values decide
"""

from tensorwright.base import Array, AttributeValue, Attributes, TensorType
from tensorwright.ops.host import SHARED, opaque_operator
from tensorwright.ops.moving.joining import slices_taken
from tensorwright.ops.moving.resizing import COORDINATES
from tensorwright.ops.named_sizes import (
    as_size, decided, is_certain, is_equal, is_multiple, least_for, not_decided, number_of,
    product_of, shape_text, sizes_of,
)
from tensorwright.ops.operator import (
    BY_DIMENSION, INTS, NARROW, POSITIONS_INPUT, Attribute, ChannelScale, Fold, LayoutPreference,
    Movement, Operator, Pattern, int_of, moved_bytes, open_moved_bytes, open_work, tensor_operator,
    text_of, work,
)
from tensorwright.ops.pointwise.quantization import pack_codes, pack_pairs
from tensorwright.ops.registry import OPERATORS, infer_types, operator
from tensorwright.ops.shapes import (
    automatic_pads, axis_in, position_fault,
)
