"""What the paper's Table 1 has and the released generator lacks: strides 2, valid padding, kernels
of 1x1, and concatenation and splits on rows and columns.
"""

from __future__ import annotations

from tensorwright.rewrite.generate.preset import Application, Preset, data, weights

__all__ = ["WINDOWS"]

_INPUTS = (
    *data("i", 2, (2, 4, 5, 5)),
    *weights("w", 2, (4, 4, 3, 3)),
    *weights("w", 2, (4, 4, 1, 1), first=3),
    *weights("s", 1, (), first=0),
)
_STRIDES_AND_PADDING = (
    (1, 1, "same"),
    (2, 2, "same"),
    (1, 1, "valid"),
    (2, 2, "valid"),
)
_APPLICATIONS = (
    Application("ewadd", ranks=(4,)),
    Application("scalar_mul"),
    Application("relu", ranks=(4,)),
    *(Application("concat", (axis,)) for axis in range(4)),
    *(Application(half, (axis,)) for axis in range(4) for half in ("split0", "split1")),
    *(Application("conv2d", (*each, "none")) for each in _STRIDES_AND_PADDING),
    *(Application("conv2d", (*each, "relu")) for each in _STRIDES_AND_PADDING),
    *(Application("avg_pool", (3, 3, *each)) for each in _STRIDES_AND_PADDING),
    *(Application("max_pool", (3, 3, *each)) for each in _STRIDES_AND_PADDING),
    Application("enlarge", (3, 3), inputs_only=True),
    Application("pool_kernel", (4, 3, 3)),
    Application("identity_kernel", (4, 1, 1)),
    Application("identity_kernel", (4, 3, 3)),
)
WINDOWS = Preset("windows", _INPUTS, _APPLICATIONS)
