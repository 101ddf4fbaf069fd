"""Batch normalisation at inference, and convolutions into which it was folded.

goes in    i1 and batch_norm with its four vectors
is equal   batch_norm(conv2d[1, 1, same, none](i1, w1), ...)
comes out  a convolution with the scaled kernel, and a shift
"""

from __future__ import annotations

from tensorwright.rewriting.generate.preset import Application, Preset, data, terms, weights

_INPUTS = (
    *data("i", 1, (2, 4, 3, 3)),
    *weights("w", 2, (4, 4, 1, 1)),
    *weights("d", 1, (4, 1, 3, 3)),
    *weights("scale", 1, (4,)),
    *weights("bias", 1, (4,)),
    *weights("mean", 1, (4,)),
    *weights("variance", 1, (4,)),
)
_OPERANDS = ("scale1", "bias1", "mean1", "variance1")
_ONES = "ones[1, scale1.0]()"
_FACTOR = f"batch_norm({_ONES}, ?scale1, ewsub(?bias1, ?bias1), ewsub(?mean1, ?mean1), ?variance1)"
_SHIFT = f"batch_norm(ewsub({_ONES}, {_ONES}), ?scale1, ?bias1, ?mean1, ?variance1)"
_LIKE_DATA = "broadcast[i1.0, scale1.0, i1.2, i1.3]"
_PREPARED = terms(
    *(
        f"ewmul(?{w}, broadcast[{w}.0, {w}.1, {w}.2, {w}.3](reshape[{w}.0, 1, 1, 1]({_FACTOR})))"
        for w in ("w1", "d1")
    ),
    f"{_LIKE_DATA}(reshape[1, scale1.0, 1, 1]({_FACTOR}))",
    f"{_LIKE_DATA}(reshape[1, scale1.0, 1, 1]({_SHIFT}))",
)
_APPLICATIONS = (
    Application("batch_norm", operands=_OPERANDS, of_data=True),
    Application("conv2d", (1, 1, "same", "none"), by_weights=True),
    Application("conv2d", (1, 1, "same", "relu"), by_weights=True),
    Application("ewadd", ranks=(4,)),
    Application("ewmul", ranks=(4,)),
    Application("relu", of_data=True),
    Application("concat", (0,), ranks=(4,)),
)
NORMALIZATION = Preset("normalization", _INPUTS, _APPLICATIONS, _PREPARED)
