"""Competitors in their processes whose answers are made wrong on the way back."""

from __future__ import annotations

import numpy as np

from tensorwright.peers.process import Arrays, PeerProcess


def wrong_answers(*names: str) -> type[PeerProcess]:
    """`PeerProcess`, but every number that one of these competitors answers is too large by one."""

    class Tampered(PeerProcess):
        def check(self, inputs: Arrays) -> Arrays:
            outputs = super().check(inputs)
            if self.name not in names:
                return outputs
            return {name: np.asarray(array + 1) for name, array in outputs.items()}

    return Tampered
