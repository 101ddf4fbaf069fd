"""A program for a graphics processor that is derived, not written by hand: it is printed as CUDA.

A 1 x 1 convolution of 2048 channels to 512 on an image of 7 x 7, with bias and ReLU. The sketch
generators know nothing of it. In one of its derived programs a block computes some channels of
the whole image: its threads fetch parts of both operands together, four numbers at a time, into
shared memory, and each thread adds the bias where it stores. No card is needed to print it.
"""

from tensorwright.artifacts import backend_of, emit_source, loop_program
from tensorwright.base import parse_target
from tensorwright.expr import compute, max_of, placeholder, reduce_axis, sum_over
from tensorwright.graph import program
from tensorwright.schedule import format_trace, state_of
from tensorwright.tuning.space.derived import derived_sketches

x, w, bias = placeholder("x", (2048, 7, 7)), placeholder("w", (512, 2048)), placeholder("b", (512,))
c = reduce_axis("c", 2048)
y = compute("y", (512, 7, 7), lambda f, h, v: sum_over(x[c, h, v] * w[f, c], c))
relu = compute("relu", y.shape, lambda f, h, v: max_of(y[f, h, v] + bias[f], 0.0))

target, workload = parse_target("cuda:sm_80"), program([relu])

whole_image = {"y_h_threads": 7, "y_h_elements": 1, "y_v_threads": 7, "y_v_elements": 1}
wanted = whole_image | {"y_x_vector": 4, "y_w_vector": 4}
sketches = derived_sketches(state_of(workload), target, most=128)
sketch = next(each for each in sketches if each.name == "y in blocks of threads")
decisions = sketch.defaults | wanted
print(f"{sketch.name}: {sketch.size:,} schedules")
assert sketch.is_valid(decisions), "it is in the derived space, and within the card's limits"
trace = sketch.bound(decisions)
print(format_trace(trace))
print(emit_source(loop_program(workload, trace, target), target, backend_of(target)).text)
