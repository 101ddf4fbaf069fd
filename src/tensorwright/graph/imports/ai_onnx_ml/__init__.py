"""Operators of the domain `ai.onnx.ml`, as the converters of scikit-learn, LightGBM and XGBoost
write them: trees, linear models, support vectors, and what prepares their features.

Where the standard is silent (one score for two classes, base values), ONNX Runtime is the measure.
"""

from tensorwright.graph.imports.ai_onnx_ml.features import FEATURES
from tensorwright.graph.imports.ai_onnx_ml.scores import LINEAR, SUPPORT_VECTORS
from tensorwright.graph.imports.ai_onnx_ml.trees import TREES
from tensorwright.graph.imports.call import Converter

DOMAIN = "ai.onnx.ml"
AI_ONNX_ML: dict[str, Converter] = dict((*FEATURES, *LINEAR, *SUPPORT_VECTORS, *TREES))
