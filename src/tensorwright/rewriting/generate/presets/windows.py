"""What the paper's Table 1 has and the released generator lacks: strides 2, valid padding, kernels
of 1x1, and concatenation and splits on rows and columns.

    goes in    i1 (2, 2, 5, 4), kernels 3x3 and 1x1, strides 1 and 2
    is equal   max_pool[3, 3, 2, 2, same](relu(i1))
    comes out  relu(max_pool[3, 3, 2, 2, same](i1))

Tensors are smaller than TASO's: two channels, and as few columns as a window of 3 by 3 leaves room.
"""

from __future__ import annotations

from tensorwright.rewriting.generate.preset import Application, Preset, data, weights

_INPUTS = (
    *data("i", 2, (2, 2, 5, 4)),
    *weights("w", 2, (2, 2, 3, 3)),
    *weights("w", 1, (2, 2, 1, 1), first=3),
)
_STRIDES_AND_PADDING = (
    (1, 1, "same"),
    (2, 2, "same"),
    (1, 1, "valid"),
    (2, 2, "valid"),
)
_APPLICATIONS = (
    Application("ewadd", ranks=(4,)),
    Application("relu", of_data=True),
    *(Application("concat", (axis,)) for axis in range(4)),
    *(Application(half, (axis,)) for axis in range(4) for half in ("split0", "split1")),
    *(Application("conv2d", (*each, "none"), by_weights=True) for each in _STRIDES_AND_PADDING),
    *(Application("conv2d", (*each, "relu"), by_weights=True) for each in _STRIDES_AND_PADDING),
    *(Application("avg_pool", (3, 3, *each), of_data=True) for each in _STRIDES_AND_PADDING),
    *(Application("max_pool", (3, 3, *each), of_data=True) for each in _STRIDES_AND_PADDING),
    Application("enlarge", (3, 3), inputs_only=True),
    Application("pool_kernel", (2, 3, 3)),
    Application("identity_kernel", (2, 1, 1)),
)
WINDOWS = Preset("windows", _INPUTS, _APPLICATIONS, deepest=3)
