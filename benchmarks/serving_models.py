"""Write the networks that `bench serve` measures beside those with names, as ONNX files.

    python benchmarks/serving_models.py FOLDER
    tensorwright bench serve light:squeezenet light:resnet50 FOLDER/mlp.onnx FOLDER/bert_2.onnx

mlp     784 pixels, two hidden layers of 512, 10 classes; one image: some 50 us a call
bert_2  the first two layers of BERT base, 128 words
"""

from __future__ import annotations

import argparse
import math
from itertools import pairwise
from pathlib import Path

import onnx

from tensorwright.graph import Graph
from tensorwright.graph.onnx_export import to_onnx
from tensorwright_lab.zoo.architectures.bert import BertShape, bert_base
from tensorwright_lab.zoo.architectures.layers import Layers

_WIDTHS = (784, 512, 512, 10)


def mlp(seed: int = 0) -> Graph:
    """image (1, 784) -> scores (1, 10), with ReLU between the layers."""
    net = Layers("mlp", seed)
    x = net.input("image", (1, _WIDTHS[0]))
    for number, (inputs, outputs) in enumerate(pairwise(_WIDTHS)):
        if number:
            x = net.add("relu", x)
        layer = f"layer_{number}"
        weight = net.weight(layer, "weight", (inputs, outputs), math.sqrt(2 / inputs))
        bias = net.weight(layer, "bias", (outputs,), 0.1)
        x = net.add("add", net.add("matmul", x, weight), bias)
    return net.finish(x)


def main() -> None:
    """Write both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(to_onnx(mlp()), folder / "mlp.onnx")
    onnx.save(to_onnx(bert_base(shape=BertShape(layers=2))), folder / "bert_2.onnx")


if __name__ == "__main__":
    main()
