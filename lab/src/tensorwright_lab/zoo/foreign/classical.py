"""Classical models as the converters of scikit-learn, LightGBM and XGBoost write them.

They are trained here on a few made rows. The packages are those of the extra `foreign`; a case of
a package that is missing has no file.
"""

from __future__ import annotations

import warnings
from typing import Any

import lightgbm
import numpy as np
import onnx
import xgboost
from onnxmltools import convert_lightgbm, convert_xgboost
from onnxmltools.convert.common.data_types import FloatTensorType
from skl2onnx import to_onnx
from skl2onnx.common import data_types as convert
from sklearn import (
    cluster,
    compose,
    decomposition,
    discriminant_analysis,
    ensemble,
    linear_model,
    mixture,
    naive_bayes,
    neighbors,
    neural_network,
    pipeline,
    preprocessing,
    svm,
    tree,
)
from sklearn.impute import SimpleImputer

from tensorwright_lab.zoo.foreign.case import FEATURES

_ROWS = 200
_OPSETS = {"": 17, "ai.onnx.ml": 3}


def built(kind: str) -> onnx.ModelProto:
    """The file of a model: its converter, its kind, and after a colon what is trained for.

    3, 2   classes     1   a number     nan   numbers of rows of which some features are missing
    """
    name, _, target = kind.partition(":")
    generator = np.random.default_rng(0)
    rows = (0.5 * generator.standard_normal((_ROWS, FEATURES))).astype(np.float32)
    score = rows[:, 0] + 2 * rows[:, 1] * rows[:, 2] + np.abs(rows[:, 3])
    wanted = np.digitize(score, [0.3, 0.7]) if target in ("3", "nan") else score
    wanted = (score > 0.4).astype(np.int64) if target == "2" else wanted
    if target == "nan":
        rows[generator.random(rows.shape) < 0.2] = np.nan
    if name == "category":
        rows[:, 0] = generator.integers(0, 6, _ROWS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _converted(_MODELS[name]().fit(rows, wanted))


def _converted(model: Any) -> onnx.ModelProto:
    types = [("rows", FloatTensorType([None, FEATURES]))]
    if isinstance(model, lightgbm.LGBMModel):
        more = {"zipmap": False} if isinstance(model, lightgbm.LGBMClassifier) else {}
        written: onnx.ModelProto = convert_lightgbm(
            model, initial_types=types, target_opset=15, **more
        )
    elif isinstance(model, xgboost.XGBModel):
        written = convert_xgboost(model, initial_types=types, target_opset=15)
    else:
        last = model[-1] if isinstance(model, pipeline.Pipeline) else model
        options = {id(last): {"zipmap": False}} if hasattr(last, "classes_") else None
        types = [("rows", convert.FloatTensorType([None, FEATURES]))]
        written = to_onnx(model, initial_types=types, options=options, target_opset=_OPSETS)
    written.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "rows"
    return written


def _line(*steps: Any) -> Any:
    return pipeline.make_pipeline(*steps)


def _by_columns() -> Any:
    columns = compose.ColumnTransformer(
        [
            ("scaled", preprocessing.StandardScaler(), [0, 1, 2]),
            ("signs", preprocessing.Binarizer(), [3, 4]),
        ]
    )
    return _line(columns, ensemble.GradientBoostingClassifier(n_estimators=5))


def _votes() -> Any:
    models = [("a", linear_model.LogisticRegression()), ("b", tree.DecisionTreeClassifier())]
    return ensemble.VotingClassifier(models, voting="soft", flatten_transform=False)


_MODELS = {
    "decision tree": lambda: tree.DecisionTreeClassifier(max_depth=5),
    "forest": lambda: ensemble.RandomForestClassifier(20, max_depth=6),
    "extra trees": lambda: ensemble.ExtraTreesRegressor(10),
    "isolation forest": lambda: ensemble.IsolationForest(n_estimators=10),
    "bagging": lambda: ensemble.BaggingClassifier(tree.DecisionTreeClassifier(), 4),
    "gradient boosting": lambda: ensemble.GradientBoostingClassifier(n_estimators=10),
    "ada boost": lambda: ensemble.AdaBoostClassifier(n_estimators=4),
    "lightgbm": lambda: lightgbm.LGBMClassifier(n_estimators=10, verbose=-1),
    "lightgbm regressor": lambda: lightgbm.LGBMRegressor(n_estimators=10, verbose=-1),
    "category": lambda: lightgbm.LGBMRegressor(n_estimators=10, verbose=-1, cat_feature=[0]),
    "xgboost": lambda: xgboost.XGBClassifier(n_estimators=10),
    "xgboost regressor": lambda: xgboost.XGBRegressor(n_estimators=10),
    "logistic": linear_model.LogisticRegression,
    "descent": lambda: linear_model.SGDClassifier(loss="log_loss"),
    "ridge": linear_model.Ridge,
    "discriminant": discriminant_analysis.LinearDiscriminantAnalysis,
    "vectors": svm.SVC,
    "probabilities": lambda: svm.SVC(probability=True),
    "vectors of a number": svm.SVR,
    "one class": svm.OneClassSVM,
    "neighbours": neighbors.KNeighborsClassifier,
    "bayes": naive_bayes.GaussianNB,
    "means": lambda: cluster.KMeans(3),
    "mixture": lambda: mixture.GaussianMixture(2),
    "perceptron": lambda: neural_network.MLPClassifier((8,), max_iter=50),
    "prepared": lambda: _line(
        *(SimpleImputer(), preprocessing.StandardScaler(), preprocessing.Normalizer()),
        linear_model.LogisticRegression(),
    ),
    "components": lambda: _line(
        preprocessing.MinMaxScaler(), decomposition.PCA(4), ensemble.RandomForestClassifier(5)
    ),
    "bins": lambda: _line(
        preprocessing.KBinsDiscretizer(3, encode="onehot-dense"), linear_model.LogisticRegression()
    ),
    "powers": lambda: _line(preprocessing.PolynomialFeatures(2), linear_model.Ridge()),
    "columns": _by_columns,
    "votes": _votes,
}
