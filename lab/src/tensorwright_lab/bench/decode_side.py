"""One runtime that decodes: a program of its own, which `bench decode` asks by lines of JSON.

    python decode_side.py KIND FILE THREADS LIBRARY

Kinds: tensorwright (a saved executable), onnxruntime and openvino (an ONNX file), genai (of ONNX
Runtime, a folder with genai_config.json), llamacpp (a GGUF file, by the C functions of LIBRARY),
inductor (a GGUF file, in f32).  First it prints how long loading took.  For each line [prompt,
steps] it reads a prompt of so many ids into an empty cache, then takes the likeliest token, step by
step, and prints the seconds of the first token and of each later one, the tokens, and its peak of
memory.

It imports nothing of the laboratory, so that its memory is that of the runtime; but for inductor.
Source:  github.com/ggml-org/llama.cpp, include/llama.h.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Container, Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np

_POINTER, _INT = ctypes.c_void_p, ctypes.c_int32
_CONTEXT_WORDS = 256  # of a structure of parameters, of which only the first one is set


class Side(Protocol):
    """A runtime with a loaded decoder."""

    def tokens(self, ids: list[int]) -> Iterator[int]:
        """The likeliest tokens after some ids, in an empty cache."""


class OurSide:
    """An executable of this package."""

    def __init__(self, path: str, threads: int, _: str) -> None:
        package = importlib.import_module("tensorwright")
        self._session = package.load(path, threads=threads).session()
        self._generate = package.generate

    def tokens(self, ids: list[int]) -> Iterator[int]:
        """As `Side`."""
        self._session.reset()
        tokens: Iterator[int] = self._generate(self._session, ids, tokens=1 << 20)
        return tokens


class OnnxRuntimeSide:
    """ONNX Runtime, whose results of a call are inputs of the next one."""

    def __init__(self, path: str, threads: int, _: str) -> None:
        package = importlib.import_module("onnxruntime")
        options = package.SessionOptions()
        options.intra_op_num_threads = threads
        self._session = package.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self._results = [each.name for each in self._session.get_outputs()]
        self._shapes = {each.name: each.shape for each in self._session.get_inputs()}

    def tokens(self, ids: list[int]) -> Iterator[int]:
        """As `Side`."""
        words = {"input_ids", "attention_mask", "position_ids"}
        state: dict[str, Any] = {
            name: np.zeros([1, shape[1], 0, shape[3]], np.float32)
            for name, shape in self._shapes.items()
            if name not in words
        }
        new, end = ids, 0
        while True:
            used = inputs_of(new, end, self._shapes)
            end += len(new)
            results = dict(zip(self._results, self._session.run(None, used | state), strict=True))
            for name in state:
                state[name] = results["present" + name.removeprefix("past_key_values")]
            new = [int(results["logits"][0, -1].argmax())]
            yield new[0]


def inputs_of(new: list[int], start: int, names: Container[str]) -> dict[str, Any]:
    """What a call that reads ids behind a cache asks of its inputs of ids, positions and a mask."""
    end = start + len(new)
    given = {"input_ids": np.array([new]), "position_ids": np.arange(start, end)[None]}
    given["attention_mask"] = np.ones((1, end), np.int64)
    return {name: array for name, array in given.items() if name in names}


class GenAISide:
    """ONNX Runtime GenAI; threads stand in the configuration."""

    def __init__(self, path: str, _: int, library: str) -> None:
        self._package = importlib.import_module("onnxruntime_genai")
        self._model = self._package.Model(path)

    def tokens(self, ids: list[int]) -> Iterator[int]:
        """As `Side`."""
        generator = self._package.Generator(self._model, self._package.GeneratorParams(self._model))
        generator.append_tokens(np.array([ids], np.int32))
        while True:
            generator.generate_next_token()
            yield int(generator.get_next_tokens()[0])


class OpenVinoSide:
    """OpenVINO, with the caches as its states."""

    def __init__(self, path: str, threads: int, _: str) -> None:
        package = importlib.import_module("openvino")
        transformations = importlib.import_module("openvino._offline_transformations")
        model = package.Core().read_model(path)
        names = [port.get_any_name() for port in model.inputs]
        past = [name for name in names if name.startswith("past_key_values")]
        pairs = {name: "present" + name.removeprefix("past_key_values") for name in past}
        transformations.apply_make_stateful_transformation(model, pairs)
        self._names = set(names) - set(past)
        how = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32"}
        how["PERFORMANCE_HINT"] = "LATENCY"
        self._request = package.Core().compile_model(model, "CPU", how).create_infer_request()

    def tokens(self, ids: list[int]) -> Iterator[int]:
        """As `Side`."""
        self._request.reset_state()
        new, end = ids, 0
        while True:
            used = inputs_of(new, end, self._names)
            end += len(new)
            new = [int(self._request.infer(used)["logits"][0, -1].argmax())]
            yield new[0]


class InductorSide:
    """PyTorch's compiler, whose caches are concatenated in each call."""

    def __init__(self, path: str, threads: int, _: str) -> None:
        self._torch = importlib.import_module("torch")
        self._torch.set_num_threads(threads)
        zoo = importlib.import_module("tensorwright_lab.zoo.torch_decoder")
        self._decoder = zoo.TorchDecoder(Path(path)).eval()
        self._compiled = self._torch.compile(self._decoder, dynamic=True)

    def tokens(self, ids: list[int]) -> Iterator[int]:
        """As `Side`."""
        new, state = ids, self._decoder.empty_state()
        while True:
            with self._torch.no_grad():
                logits, *state = self._compiled(self._torch.tensor([new]), state)
            new = [int(logits[0, -1].argmax())]
            yield new[0]


class LlamaCppSide:
    """llama.cpp by its C functions: no server, and no sampler in the times."""

    def __init__(self, path: str, threads: int, library: str) -> None:
        self._library = ctypes.CDLL(library)
        words: Any = ctypes.c_uint32 * _CONTEXT_WORDS
        kind: Any = type("Parameters", (ctypes.Structure,), {"_fields_": [("words", words)]})
        fields = [("count", _INT), ("pointers", _POINTER * 6)]
        self._batch: Any = type("Batch", (ctypes.Structure,), {"_fields_": fields})
        folder = os.fsencode(Path(library).resolve().parent)
        self._call("ggml_backend_load_all_from_path", None, folder)
        how = self._call("llama_model_default_params", kind)
        model = self._call("llama_model_load_from_file", _POINTER, os.fsencode(path), how)
        settings = self._call("llama_context_default_params", kind)
        settings.words[0] = 4096
        if not model:
            raise RuntimeError("llama.cpp does not load the file")
        self._model = _POINTER(model)
        self._context = _POINTER(
            self._call("llama_init_from_model", _POINTER, self._model, settings)
        )
        self._call("llama_set_n_threads", None, self._context, _INT(threads), _INT(threads))
        vocabulary = _POINTER(self._call("llama_model_get_vocab", _POINTER, self._model))
        self._words = self._call("llama_vocab_n_tokens", _INT, vocabulary)

    def tokens(self, ids: list[int]) -> Iterator[int]:
        """As `Side`."""
        memory = _POINTER(self._call("llama_get_memory", _POINTER, self._context))
        self._call("llama_memory_clear", None, memory, ctypes.c_bool(True))  # noqa: FBT003
        new = ids
        while True:
            array = np.array(new, np.int32)
            address = _POINTER(array.ctypes.data)
            batch = self._call("llama_batch_get_one", self._batch, address, _INT(len(new)))
            if self._call("llama_decode", _INT, self._context, batch):
                raise RuntimeError("llama_decode failed")
            kind = ctypes.POINTER(ctypes.c_float)
            row = self._call("llama_get_logits_ith", kind, self._context, _INT(-1))
            new = [int(np.ctypeslib.as_array(row, (self._words,)).argmax())]
            yield new[0]

    def _call(self, name: str, kind: Any, *values: Any) -> Any:
        function = self._library[name]
        function.restype = kind
        return function(*values)


SIDES: dict[str, Callable[[str, int, str], Side]] = {
    "tensorwright": OurSide,
    "onnxruntime": OnnxRuntimeSide,
    "llamacpp": LlamaCppSide,
    "genai": GenAISide,
    "openvino": OpenVinoSide,
    "inductor": InductorSide,
}


def main() -> None:
    """Load, and answer until the input ends."""
    kind, path, threads, library = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # answers alone go to the first stream
    start = time.perf_counter()
    side = SIDES[kind](path, int(threads), library)
    print(json.dumps({"load_s": time.perf_counter() - start}), file=answers, flush=True)
    for line in sys.stdin:
        prompt, steps = json.loads(line)
        start = time.perf_counter()
        tokens = side.tokens([5 + 7 * number % 200 for number in range(prompt)])
        seconds, made = [], []
        for _ in range(steps + 1):
            made.append(next(tokens))
            now = time.perf_counter()
            seconds.append(now - start)
            start = now
        status = Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]
        answer = {"seconds": seconds, "tokens": made, "peak_bytes": int(status) * 1024}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
