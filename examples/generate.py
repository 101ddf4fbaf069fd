"""Tokens of a decoder with a cache: streamed, continued, and two continuations of one prompt.

The decoder has random weights and one layer of attention, as ONNX Runtime's GenAI writes it.
"""

import numpy as np
from onnx import numpy_helper, parser

import tensorwright

model = parser.parse_model("""<ir_version: 9, opset_import: ["": 18, "com.microsoft": 1]>
decoder (int64[1, sequence] input_ids, int64[1, total] attention_mask,
         float[1, 4, past, 16] past_key, float[1, 4, past, 16] past_value)
     => (float[1, sequence, 100] logits, float[1, 4, total, 16] present_key,
         float[1, 4, total, 16] present_value) {
  projected = Gather(table, input_ids)
  total64 = Shape <start = 1, end = 2> (attention_mask)
  length = Cast <to = 6> (total64)
  last = Sub(length, one)
  mixed, present_key, present_value = com.microsoft.GroupQueryAttention
      <num_heads = 4, kv_num_heads = 4> (projected, , , past_key, past_value, last, length)
  logits = MatMul(mixed, head)
}""")
draw = np.random.default_rng(0).standard_normal
weights = {"table": draw((100, 192), "f"), "head": draw((64, 100), "f"), "one": np.int32([1])}
model.graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in weights.items())

session = tensorwright.compile(model).session()
for token in tensorwright.generate(session, [5, 17, 99], tokens=6):
    print(token, end=" ", flush=True)  # each as soon as it is chosen

other = session.fork()  # shares the cache so far; the last token is read next
varied = tensorwright.Sampling(temperature=5.0, seed=1)
print("...", *tensorwright.generate(session, [token], tokens=4), end=" or ")
print(*tensorwright.generate(other, [token], varied, tokens=4), "at", session.position)
