"""Files of the kinds that people have: written by exporters and converters, quantized, or by hand.

`case.py` says what a case is, `exporting.py` writes networks of PyTorch; the families stand in
`sequences.py`, `images.py`, `tables.py`, `scripted.py` and `written.py`; `classical.py` trains
models that the converters of scikit-learn, LightGBM and XGBoost write.  Seeds are fixed.
"""

import importlib
from collections.abc import Iterator
from dataclasses import dataclass

import onnx

from tensorwright_lab.zoo.foreign import images, scripted, sequences, tables, written
from tensorwright_lab.zoo.foreign.case import FEATURES, Case, Given, Size


_CLASSICAL = {
    "forest": "decision tree:3, forest:3, forest:2, extra trees:1, isolation forest:1, bagging:2",
    "boosted trees": "gradient boosting:3, gradient boosting:2, ada boost:3, lightgbm:3, "
    "lightgbm:2, lightgbm:nan, lightgbm regressor:1, category:1, xgboost:3, xgboost:2, "
    "xgboost:nan, xgboost regressor:1",
    "linear model": "logistic:3, logistic:2, descent:3, ridge:1, discriminant:3, perceptron:3",
    "support vectors": "vectors:3, vectors:2, probabilities:3, probabilities:2, "
    "vectors of a number:1, one class:1",
    "neighbours and mixtures": "neighbours:3, bayes:3, means:1, mixture:1",
    "pipeline": "prepared:3, components:3, bins:3, powers:1, columns:3, votes:3",
}
"""Kinds of `classical.py`, whose packages need not be installed, by family."""


def _classical() -> Iterator[Case]:
    inputs, sizes = (Given("rows", ("rows", FEATURES)),), {"rows": Size(0, 40)}
    for family, kinds in _CLASSICAL.items():
        for kind in kinds.split(", "):
            is_of_onnxmltools = kind.startswith(("lightgbm", "category", "xgboost"))
            exporter = "onnxmltools" if is_of_onnxmltools else "skl2onnx"
            yield Case(family, kind, exporter, inputs, sizes, _Classical(kind))


@dataclass(frozen=True, slots=True)
class _Classical:
    """Makes the file of a kind; the module that does it is loaded then."""

    kind: str

    def __call__(self) -> onnx.ModelProto:
        module = importlib.import_module(f"{__package__}.classical")
        written: onnx.ModelProto = module.built(self.kind)
        return written


CASES: tuple[Case, ...] = (
    *(
        case
        for network in (*sequences.NETWORKS, *images.NETWORKS, *tables.NETWORKS)
        for case in network.cases()
    ),
    *written.cases(),
    *scripted.cases(),
    *_classical(),
)
"""All cases; a file is written when `build` is called."""
