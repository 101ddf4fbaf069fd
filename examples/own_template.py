"""A template of one's own: squared distances between points, with knobs that a search turns.

Tuned and called here; with grid search, which goes on where Ctrl-C stopped it:
    tensorwright tune own_template.py:d --space templates --strategy grid --trials 37
"""

import numpy as np

import tensorwright
from tensorwright.expr import compute, placeholder, reduce_axis, sum_over
from tensorwright.schedule import CacheWrite, ComputeAt, Parallel, Reorder, Unroll, Vectorize
from tensorwright.tuning.space.templates import Configuration, SketchBuilder, template

N, M, K = 96, 128, 32
a, b, k = placeholder("a", (N, K)), placeholder("b", (K, M)), reduce_axis("k", K)
d = compute("d", (N, M), lambda i, j: sum_over((a[i, k] - b[k, j]) * (a[i, k] - b[k, j]), k))


@template(applies=lambda state, target: state.outputs == ("d",))
def tiles_of_distances(s: SketchBuilder, cfg: Configuration) -> None:
    s.do(CacheWrite("d"))
    i_o, i_i = cfg.define_split("tile_i", N, filter=lambda x: x[-1] <= 8).apply(s, "d", "i")
    j_o, j_i = cfg.define_split("tile_j", M, candidates=((16,), (32,), (64,))).apply(s, "d", "j")
    outer, inner = cfg.define_reorder("order", (i_o, j_o)).loops
    s.do(Reorder("d", (outer, inner, i_i, j_i)))
    s.do(Parallel("d", outer))
    s.do(ComputeAt("d_cache", "d", inner))
    s.do(Reorder("d_cache", ("k", "i", "j")))
    for stage, row, lanes in (("d", i_i, j_i), ("d_cache", "i", "j")):
        s.do(Unroll(stage, row))
        s.do(Vectorize(stage, lanes))


if __name__ == "__main__":
    function = tensorwright.tune(d, trials=24, space="templates", records="records.sqlite")
    x, y = np.random.default_rng(0).normal(size=(2, M, K)).astype(np.float32)
    found = function.run({"a": x[:N], "b": y.T.copy()})["d"]
    np.testing.assert_allclose(found, ((x[:N, None] - y[None]) ** 2).sum(-1), rtol=1e-3)
    print(f"d: {found.shape}, as NumPy has it")
