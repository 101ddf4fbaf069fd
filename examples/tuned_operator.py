"""An operator of one's own, tuned on this machine and called.

A gated linear unit: y = (x @ v) * sigmoid(x @ w), with both matrices known beforehand. What is
measured is kept in records.sqlite: the second run of this file finds the best at once.
"""

import numpy as np

import tensorwright
from tensorwright.expr import compute, placeholder, reduce_axis, sigmoid, sum_over

M, N, K = 32, 64, 96
x, v, w = placeholder("x", (M, K)), placeholder("v", (K, N)), placeholder("w", (K, N))
k, n = reduce_axis("k", K), reduce_axis("n", K)
linear = compute("linear", (M, N), lambda i, j: sum_over(x[i, k] * v[k, j], k))
gate = compute("gate", (M, N), lambda i, j: sum_over(x[i, n] * w[n, j], n))
y = compute("y", (M, N), lambda i, j: linear[i, j] * sigmoid(gate[i, j]))

random = np.random.default_rng(0)
matrices = {name: random.normal(size=(K, N)).astype(np.float32) for name in "vw"}
function = tensorwright.tune(y, constants=matrices, trials=24, records="records.sqlite")

rows = random.normal(size=(M, K)).astype(np.float32)
found = function(rows)
expected = (rows @ matrices["v"]) / (1 + np.exp(-rows @ matrices["w"]))
np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)
print(f"{function.inputs[0].name} -> {function.outputs[0].name}: {found.shape}, as NumPy has it")
