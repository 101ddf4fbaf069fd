"""The values of prepared terms at the random values of the inputs.

preset.prepared                    ewadd(?w1, ?w2): a term over weights, it costs nothing
prepared_values(preset, values)    values of the inputs (1, 2, size) each
what it gives                      (the sum of the values of w1 and w2,)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tensorwright.expr import FieldDomain, residues
from tensorwright.rewrite.generate.fingerprint.field import P, packed
from tensorwright.rewrite.generate.fingerprint.kernels import Values
from tensorwright.rewrite.generate.preset import Preset
from tensorwright.rewrite.meaning import evaluate_terms


def prepared_values(preset: Preset, values: Sequence[Values]) -> tuple[Values, ...]:
    """The value of each prepared term of a preset.

    Shapes:  values of the inputs, (1, samples, size) each -> the same for each prepared term
    """
    if not preset.prepared:
        return ()
    samples = [_of_sample(preset, [each[0, at] for each in values]) for at in _samples(values)]
    return tuple(np.stack(each)[None] for each in zip(*samples, strict=True))


def _samples(values: Sequence[Values]) -> range:
    return range(values[0].shape[1])


def _of_sample(preset: Preset, values: Sequence[Values]) -> list[Values]:
    inputs = {
        each.name: packed(value).reshape(each.shape)
        for each, value in zip(preset.inputs, values, strict=True)
    }
    found = evaluate_terms(preset.prepared, inputs, FieldDomain())
    return [(residues(each).ravel() % P).astype(np.uint32) for each in found]
