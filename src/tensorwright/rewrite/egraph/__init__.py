"""Sets of equal terms: e-graphs, patterns and their matching."""
