"""Read language models of GGUF files, as llama.cpp has them. Start with `decoder.py`.

reading      the metadata of a file, and where its tensors lie
blocks       kinds of numbers, and their blocks as codes with scales
decoder      the network as an ONNX model, whose weights are made of the file's bytes
vocabulary   its tokenizer
"""

from tensorwright.graph.imports.gguf.decoder import FileWeights, read_decoder, with_weights
from tensorwright.graph.imports.gguf.reading import MAGIC, GgufFile, read_gguf
from tensorwright.graph.imports.gguf.vocabulary import ends_of, open_tokenizer
