"""Networks to compile, measure and learn from, with seeded random weights.

`build` makes the papers' networks as graphs, one family per file, from the layers in `layers.py`;
`load_light` gives the ONNX models that the onnx package carries, `load_wild` what PyTorch exports
of the modules in `wild/`. `operator_suite.py` lists single operators and `operator_families.py`
says what they mean.
"""

from tensorwright.zoo.architectures.repeated import repeated_blocks
from tensorwright.zoo.light import LIGHT_MODELS, load_light
from tensorwright.zoo.networks import TASO, ZOO, build, random_inputs
from tensorwright.zoo.operator_families import operator_program
from tensorwright.zoo.operator_forms import (
    Arrangement,
    Form,
    OperatorProgram,
    draw_operands,
    evaluate_program,
    form_graph,
    form_inputs,
    workload_arrays,
)
from tensorwright.zoo.operator_suite import (
    OperatorCase,
    find_cases,
    operator_cases,
    residual_convolutions,
)
from tensorwright.zoo.wild import WILD, load_wild, make_module

__all__ = [
    "LIGHT_MODELS",
    "TASO",
    "WILD",
    "ZOO",
    "Arrangement",
    "Form",
    "OperatorCase",
    "OperatorProgram",
    "build",
    "draw_operands",
    "evaluate_program",
    "find_cases",
    "form_graph",
    "form_inputs",
    "load_light",
    "load_wild",
    "make_module",
    "operator_cases",
    "operator_program",
    "random_inputs",
    "repeated_blocks",
    "residual_convolutions",
    "workload_arrays",
]
