"""AutoTVM's templates for graphics processors. Read `block_tiles.py` first, then `conv2d.py`."""

from tensorwright.tuning.space.templates.gpu.conv2d import CONV2D_NCHW, DEPTHWISE_CONV2D_NCHW
from tensorwright.tuning.space.templates.gpu.matrices import (
    BATCH_MATMUL,
    DENSE_LARGE_BATCH,
    DENSE_SMALL_BATCH,
)
from tensorwright.tuning.space.templates.gpu.winograd import CONV2D_NCHW_WINOGRAD

GPU_TEMPLATES = (
    CONV2D_NCHW,
    CONV2D_NCHW_WINOGRAD,
    DEPTHWISE_CONV2D_NCHW,
    DENSE_LARGE_BATCH,
    DENSE_SMALL_BATCH,
    BATCH_MATMUL,
)
"""In the order of asking."""

__all__ = ["GPU_TEMPLATES"]
