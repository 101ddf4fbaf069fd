"""Networks to compile, measure and learn from, with seeded random weights.

`build` makes the papers' networks as graphs, one family per file, from the layers in `layers.py`;
`load_light` gives the ONNX models that the onnx package carries.
"""

from tensorwright.zoo.light import LIGHT_MODELS, load_light, seeded_weights
from tensorwright.zoo.networks import ZOO, build, random_inputs

__all__ = ["LIGHT_MODELS", "ZOO", "build", "load_light", "random_inputs", "seeded_weights"]
