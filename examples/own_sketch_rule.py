"""A sketch rule of one's own: keep the rows of a table of distances in a local buffer.

d[i, j] = sum over k of |a[i, k] - b[k, j]|. The rule says how the sum may be computed besides the
ways that the package finds; the search tries its sketches among the others.
"""

import tensorwright
from tensorwright.expr import abs_, compute, placeholder, reduce_axis, sum_over
from tensorwright.schedule import CacheWrite, ComputeAt, Reorder, Split, Vectorize, initial_state
from tensorwright.tuning.space import space_of
from tensorwright.tuning.space.derived import Derivation, sketch_rule

a, b, k = placeholder("a", (256, 64)), placeholder("b", (64, 192)), reduce_axis("k", 64)
d = compute("d", (256, 192), lambda i, j: sum_over(abs_(a[i, k] - b[k, j]), k))


@sketch_rule(applies=lambda view: view.current == "d")
def rows_in_cache(view: Derivation) -> tuple[Derivation, ...]:
    """Blocks of rows: the sum of a block runs in a buffer, all columns in vectors."""
    builder = view.grow()
    rows = builder.choose("rows", (1, 2, 4, 8), default=4)
    builder.do(CacheWrite("d"))
    builder.do(Split("d", "i", (rows,)))
    builder.do(Vectorize("d", "j"))
    builder.do(ComputeAt("d_cache", "d", "i_o"))
    builder.do(Reorder("d_cache", ("k", "i", "j")))
    builder.do(Vectorize("d_cache", "j"))
    return (view.then(builder),)


space = space_of(initial_state((d,)), tensorwright.cpu_target("x86-64-avx2"))
own = [sketch for sketch in space.sketches if sketch.family.startswith("rows_in_cache")]
print(f"{len(space.sketches)} sketches, {space.size} schedules; by the rule:")
for sketch in own:
    print(f"  {sketch.name}: {sketch.size} schedules")
executable = tensorwright.compile(d, trace=own[0].bound({**own[0].defaults, "rows": 2}))
print(executable)
