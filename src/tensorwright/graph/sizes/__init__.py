"""Named sizes of a graph. Read `numbers.py` first: numbers that are given, derived or typical."""

from tensorwright.graph.sizes.counted import (
    counted_bounds,
    counted_size_of,
    counted_sizes,
    decided_number,
    sizes_used,
)
from tensorwright.graph.sizes.numbers import (
    bind_node,
    bind_sizes,
    bind_types,
    bytes_of,
    least_bytes,
    least_sizes,
    representative,
    require_numbers,
    require_uncounted,
    sizes_of_shapes,
    typical_shape,
    usual_sizes,
    with_typical_sizes,
)
from tensorwright.graph.sizes.points import SizePoint, SizesAt, between, halfway, points_of

__all__ = [
    "SizePoint",
    "SizesAt",
    "between",
    "bind_node",
    "bind_sizes",
    "bind_types",
    "bytes_of",
    "counted_bounds",
    "counted_size_of",
    "counted_sizes",
    "decided_number",
    "halfway",
    "least_bytes",
    "least_sizes",
    "points_of",
    "representative",
    "require_numbers",
    "require_uncounted",
    "sizes_of_shapes",
    "sizes_used",
    "typical_shape",
    "usual_sizes",
    "with_typical_sizes",
]
