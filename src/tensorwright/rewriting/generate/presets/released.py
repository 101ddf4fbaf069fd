"""Inputs and operators of TASO's released generator (Jia et al., SOSP 2019), for comparison.

    goes in    x1, x2 (2, 4), w1, w2 (4, 4), images and kernels
    is equal   ewadd(matmul(x1, w1), matmul(x1, w2))
    comes out  matmul(x1, ewadd(w1, w2))

Its kernels are 1x3, 3x1 and 3x3; strides are 1, padding is `same`, axes are 0 and 1.
"""

from __future__ import annotations

from tensorwright.rewriting.generate.preset import Application, Preset, data, weights

_INPUTS = (
    *data("x", 3, (2, 4)),
    *weights("w", 3, (4, 4)),
    *data("i", 3, (2, 4, 5, 5)),
    *weights("w", 3, (4, 4, 3, 3), first=4),
    *weights("w", 3, (4, 4, 1, 3), first=7),
    *weights("w", 3, (4, 4, 3, 1), first=10),
    *weights("w", 1, (4, 1, 3, 3), first=13),
    *weights("s", 1, (), first=0),
)
_APPLICATIONS = (
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
RELEASED = Preset("released", _INPUTS, _APPLICATIONS)
