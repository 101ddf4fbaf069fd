"""What is enumerated: inputs with their shapes, and applications of operators.

`taso` has the inputs of TASO's released generator, its operators and parameters, and the larger
set of the paper's Table 1 where the two differ: a convolution of 1x1.
"""

from __future__ import annotations

from dataclasses import dataclass

from tensorwright.base import UsageError
from tensorwright.rewrite.operators import IntShape
from tensorwright.rewrite.terms import Param

__all__ = ["MAX_ELEMENTS", "PRESETS", "Application", "GeneratorInput", "Preset", "preset_named"]

MAX_ELEMENTS = 512
"""No tensor is larger: TASO's limit."""


@dataclass(frozen=True, slots=True)
class GeneratorInput:
    """An input; those with equal shape and role take each other's place in a rule.

    is_weight  never the data of a convolution, so that kernels are not convolved
    """

    name: str
    shape: IntShape
    is_weight: bool = False


@dataclass(frozen=True, slots=True)
class Application:
    """An operator with parameters that is tried on every argument.

    inputs_only   it is tried on inputs alone
    ranks         of the first argument; empty for all
    """

    operator: str
    params: tuple[Param, ...] = ()
    inputs_only: bool = False
    ranks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Preset:
    """Inputs and applications."""

    name: str
    inputs: tuple[GeneratorInput, ...]
    applications: tuple[Application, ...]


def _named(
    prefix: str, first: int, count: int, shape: IntShape, weight: bool
) -> tuple[GeneratorInput, ...]:
    numbers = range(first, first + count)
    return tuple(GeneratorInput(f"{prefix}{n}", shape, weight) for n in numbers)


_DATA, _WEIGHT = False, True
TASO_INPUTS = (
    *_named("x", 1, 3, (2, 4), _DATA),
    *_named("w", 1, 3, (4, 4), _WEIGHT),
    *_named("i", 1, 3, (2, 4, 5, 5), _DATA),
    *_named("w", 4, 3, (4, 4, 3, 3), _WEIGHT),
    *_named("w", 7, 3, (4, 4, 1, 3), _WEIGHT),
    *_named("w", 10, 3, (4, 4, 3, 1), _WEIGHT),
    *_named("w", 13, 1, (4, 1, 3, 3), _WEIGHT),
    *_named("s", 0, 1, (), _WEIGHT),
)
TASO_APPLICATIONS = (
    Application("matmul", ranks=(2,)),
    Application("ewadd"),
    Application("ewmul"),
    Application("scalar_mul"),
    Application("relu", ranks=(2, 4)),
    Application("transpose", (1, 0)),
    Application("concat", (0,)),
    Application("concat", (1,)),
    Application("split0", (0,)),
    Application("split1", (0,)),
    Application("split0", (1,)),
    Application("split1", (1,)),
    Application("conv2d", (1, 1, "same", "none")),
    Application("conv2d", (1, 1, "same", "relu")),
    Application("avg_pool", (3, 3, 1, 1, "same")),
    Application("max_pool", (3, 3, 1, 1, "same")),
    Application("enlarge", (3, 3), inputs_only=True),
    Application("pool_kernel", (4, 3, 3)),
    Application("identity_kernel", (4, 3, 3)),
    Application("eye", (4,)),
    Application("ones", (2, 4, 5, 5)),
)
PRESETS = (Preset("taso", TASO_INPUTS, TASO_APPLICATIONS),)


def preset_named(name: str) -> Preset:
    """The preset of this name.

    Raises:  UsageError
    """
    for preset in PRESETS:
        if preset.name == name:
            return preset
    known = ", ".join(preset.name for preset in PRESETS)
    raise UsageError(
        stage="rules", where=f"preset {name}", reason="there is no such preset", remedy=known
    )
