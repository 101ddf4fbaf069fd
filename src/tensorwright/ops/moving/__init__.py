"""Operators that place elements, read them from elsewhere, or make them of their indices."""
