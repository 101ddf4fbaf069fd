"""Networks to compile, measure and learn from, with seeded random weights.

`build` makes the papers' networks as graphs, families in files, from the layers in `layers.py`;
`load_light` gives the ONNX models that the onnx package carries, `load_wild` what PyTorch exports
of the modules in `wild/`. `operator_suite.py` lists single operators and `operator_families.py`
says what they mean.
"""

from tensorwright_lab.zoo.architectures.repeated import repeated_blocks
from tensorwright_lab.zoo.language_models import DECODERS, decoder_model
from tensorwright_lab.zoo.light import LIGHT_MODELS, load_light
from tensorwright_lab.zoo.networks import TASO, ZOO, build
from tensorwright_lab.zoo.operator_families import operator_program
from tensorwright_lab.zoo.operator_suite import (
    Arrangement, Form, OperatorCase, OperatorProgram, draw_operands, evaluate_program, find_cases,
    form_graph, form_inputs, operator_cases, workload_arrays,
)
from tensorwright_lab.zoo.wild import WILD, load_wild, make_module
