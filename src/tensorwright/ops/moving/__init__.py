"""Operators that move elements, read them at positions, or make them of their indices."""
