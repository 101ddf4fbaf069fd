"""Where somebody speaks, while the sound comes in: a recurrent network with its state in a session.

The network is a small detector: the loudness of each 10 ms, and an LSTM that smooths it.
"""

import numpy as np
from onnx import numpy_helper, parser

import tensorwright

model = parser.parse_model("""<ir_version: 8, opset_import: ["": 18]>
detector (float[frames, 1, 160] sound, float[1, 1, 1] h, float[1, 1, 1] c)
      => (float[frames] speech, float[1, 1, 1] hn, float[1, 1, 1] cn) {
  squares = Mul(sound, sound)
  power = ReduceMean(squares, axis)
  loudness = Log(power)
  smooth, hn, cn = LSTM <hidden_size = 1> (loudness, weights, recurrent, biases, , h, c)
  odds = Mul(smooth, factor)
  shares = Sigmoid(odds)
  speech = Reshape(shares, flat)
}""")
gates = {"weights": [0, 0, 0, 0.5], "recurrent": [0, 0, 0, 0], "biases": [-1, 4, 1, 4, 0, 0, 0, 0]}
held = {name: np.float32(numbers).reshape(1, -1, 1) for name, numbers in gates.items()}
held |= {"biases": held["biases"][..., 0], "axis": np.int64([2])}
held |= {"factor": np.float32(6), "flat": np.int64([-1])}
model.graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in held.items())

session = tensorwright.compile(model).session()
sound = np.random.default_rng(0).normal(0, 0.003, 3 * 16000).astype("f")  # 3 s of a quiet room
sound[16000:30000] += 0.1 * np.sin(np.arange(14000) / 8, dtype="f")  # and a voice
was_speech = False
for start in range(0, len(sound), 480):  # 30 ms, as they come from a microphone
    frames = sound[start : start + 480].reshape(-1, 1, 160)
    is_speech = session.run({"sound": frames})["speech"][-1] > 0.5
    if is_speech != was_speech:
        print(f"{start / 16000 + 0.03:.2f} s: {'speech' if is_speech else 'silence'}")
    was_speech = is_speech
