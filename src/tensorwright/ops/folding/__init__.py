"""Folds over axes, and what is built of them: normalisations and softmax."""
