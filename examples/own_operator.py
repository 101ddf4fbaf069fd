"""An operator that ONNX does not have, written, scheduled by hand and called.

A soft-threshold distance: d[i, j] = sum over k of max(|a[i, k] - b[j, k]| - t, 0): how far the rows
of a are from the rows of b where differences up to t do not count.
"""

import numpy as np

import tensorwright
from tensorwright.expr import abs_, compute, max_of, placeholder, reduce_axis, sum_over
from tensorwright.schedule import initial_state, parse_trace, render, replay

N, M, K, THRESHOLD = 256, 192, 64, 0.25
a, b, k = placeholder("a", (N, K)), placeholder("b", (K, M)), reduce_axis("k", K)
distance = compute(
    "distance",
    (N, M),
    lambda i, j: sum_over(max_of(abs_(a[i, k] - b[k, j]) - THRESHOLD, 0.0), k),
)
# Tiles of 4 rows by 32 columns on all threads: a tile stays in registers while k runs.
trace = parse_trace("""
cache_write(distance)
split(distance, i, [4])
split(distance, j, [32])
reorder(distance, [i_o, j_o, i_i, j_i])
fuse(distance, [i_o, j_o])
parallel(distance, i_o_j_o)
compute_at(distance_cache, distance, i_o_j_o)
reorder(distance_cache, [k, i, j])
unroll(distance_cache, i)
vectorize(distance_cache, j)
vectorize(distance, j_i)""")
print(render(replay(initial_state((distance,)), trace)))

executable = tensorwright.compile(distance, trace=trace)
rows, columns = np.random.default_rng(0).normal(size=(2, N, K)).astype(np.float32)
found = executable.run({"a": rows, "b": columns[:M].T.copy()})["distance"]
gaps = np.abs(rows[:, None] - columns[None, :M]) - THRESHOLD
np.testing.assert_allclose(found, np.maximum(gaps, 0).sum(-1), rtol=1e-4)
