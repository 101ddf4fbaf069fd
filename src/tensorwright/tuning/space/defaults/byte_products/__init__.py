"""Products of bytes, by the instructions that a target has. Read `dots.py` first."""

from tensorwright.tuning.space.defaults.byte_products.sketches import byte_product_sketches

__all__ = ["byte_product_sketches"]
