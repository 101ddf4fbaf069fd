"""The program embedding: `tree_gru.py` evaluates it, `torch_training.py` fits it."""
