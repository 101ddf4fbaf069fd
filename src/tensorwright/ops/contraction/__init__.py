"""Sums of products: matrix products, Einstein sums, attention."""
