"""AutoTVM's templates for graphics processors. Read `products.py` first."""

from tensorwright.tuning.space.templates.gpu.products import (
    BATCH_MATMUL, CONV2D_NCHW, DENSE_LARGE_BATCH, DENSE_SMALL_BATCH, DEPTHWISE_CONV2D_NCHW,
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
