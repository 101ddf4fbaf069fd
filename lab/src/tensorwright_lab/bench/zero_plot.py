"""Draw the curves of `bench zero` with matplotlib, which is of the extra `bench`."""

from __future__ import annotations

import importlib
import io
from collections.abc import Mapping
from typing import Any

from tensorwright.base import write_atomically
from tensorwright_lab.bench.zero_rows import Curve


def draw(curves: Mapping[str, Curve], path: str) -> None:
    """A panel for each group, as PNG.  Raises: OutputError, and ModuleNotFoundError where
    matplotlib is missing.
    """
    importlib.import_module("matplotlib").use("Agg")  # into a file, without a display
    plt: Any = importlib.import_module("matplotlib.pyplot")
    figure, axes = plt.subplots(
        1, len(curves), figsize=(4.2 * len(curves), 3.6), sharey=True, squeeze=False
    )
    for panel, (name, curve) in zip(axes[0], curves.items(), strict=True):
        places = range(len(curve.trials))
        panel.plot(places, curve.with_model, marker="o", label="with the time model")
        panel.plot(places, curve.without_model, marker="s", label="without")
        panel.set_xticks(list(places), [str(trials) for trials in curve.trials])
        panel.set_title(name, fontsize=9)
        panel.set_xlabel("trials")
        panel.set_ylim(0.0, 1.05)
        panel.grid(visible=True, alpha=0.3)
    axes[0][0].set_ylabel("share of the best speed")
    axes[0][0].legend(fontsize=8, loc="lower right")
    figure.tight_layout()
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=120)
    plt.close(figure)
    write_atomically(path, buffer.getvalue())
