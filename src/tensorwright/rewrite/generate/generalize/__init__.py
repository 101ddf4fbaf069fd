"""Rules found at concrete shapes, said for all shapes."""
