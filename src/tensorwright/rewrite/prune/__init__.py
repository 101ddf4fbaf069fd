"""Pruning of candidate rules."""

from tensorwright.rewrite.prune.common import has_common_inputs, has_common_output, prune_common

__all__ = ["has_common_inputs", "has_common_output", "prune_common"]
