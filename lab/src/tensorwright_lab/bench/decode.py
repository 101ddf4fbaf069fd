"""`tensorwright bench decode`: how fast a language model gives tokens, here and in other runtimes.

Each runtime has a process of its own, which loads the same weights.  They take turns: a prompt into
an empty cache, whose first token is timed by itself, then token by token.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import click
import numpy as np
from onnx import ModelProto, helper, numpy_helper

from tensorwright import base
from tensorwright.cli.arguments.models import check_model
from tensorwright.cli.arguments.output import check_writable
from tensorwright.cli.printing import print_table
from tensorwright.compiling import compile as compile_model
from tensorwright.graph.imports import is_gguf, whole_model
from tensorwright.graph.onnx_export import save_proto
from tensorwright.runtime import Executable
from tensorwright_lab.bench import decode_side
from tensorwright_lab.bench.machine import describe_machine, measure_ceiling, threads_of
from tensorwright_lab.bench.options import read_names, read_numbers
from tensorwright_lab.rows import machine_options, row_name, write_objects
from tensorwright_lab.zoo.language_models import DECODERS, KINDS, write_decoder

_OURS, _ONNXRUNTIME, _LLAMACPP, _GENAI, _OPENVINO, _INDUCTOR = decode_side.SIDES
_PEERS = tuple(decode_side.SIDES)[1:]
_OF_ONNX = {_ONNXRUNTIME, _GENAI, _OPENVINO}
_PACKAGES = {_GENAI: "onnxruntime_genai", _OPENVINO: "openvino", _INDUCTOR: "torch"}
_AS_IT_IS = "file"
_MOST_IDS = 4096
_COLUMNS = (
    *("model", "weights", "runtime", "prompt", "first ms", "token ms", "p95 ms", "tokens/s"),
    *("GB/s", "share", "times ours", "same", "load s", "MB", ""),
)


@dataclass(frozen=True, slots=True)
class DecodeRow:
    """The measurements of a runtime after a prompt.

    prompt              tokens            first_s   from the call to the first token
    token_s, p95_s      median and 95th percentile of the seconds of a later token
    bytes_per_s         of weights and cache; 0 where it is not known
    share_of_bandwidth  of the measured one; 0 where it is not known
    times_ours          its seconds of a token over ours
    same                the share of its tokens before the first that is not ours
    """

    model: str
    weights: str
    runtime: str
    prompt: int
    first_s: float = 0.0
    token_s: float = 0.0
    p95_s: float = 0.0
    bytes_per_s: float = 0.0
    share_of_bandwidth: float = 0.0
    times_ours: float = 0.0
    same: float = 0.0
    load_s: float = 0.0
    peak_bytes: int = 0
    failure: str = ""


@click.command("decode")
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@click.option(
    "--weights",
    callback=read_names,
    metavar="A,B",
    help=f"Of networks of the zoo: some of {', '.join(KINDS)}; f32 if not given.",
)
@click.option(
    "--prompts", default="32,512,2048", callback=read_numbers, metavar="N,M", help="Their lengths."
)
@click.option("--tokens", type=click.IntRange(2), default=24, help="After each prompt.")
@click.option("--rounds", type=click.IntRange(1), default=3, help="Turns of each.")
@machine_options
@click.option(
    "--peers",
    callback=read_names,
    metavar="A,B",
    help=f"The runtimes to compare with: some of {', '.join(_PEERS)}; none if not given.",
)
@click.option(
    "--llamacpp",
    "library",
    metavar="LIBRARY",
    help="llama.cpp's libllama.so; by default the package xllamacpp has it.",
)
@click.option("--json", "json_path", metavar="FILE", help="Write the rows to a file, too.")
def command(
    models: tuple[str, ...],
    weights: tuple[str, ...],
    prompts: tuple[int, ...],
    tokens: int,
    rounds: int,
    target: base.CpuTarget,
    threads: int | None,
    peers: tuple[str, ...],
    library: str | None,
    json_path: str | None,
) -> None:
    """Time the first token and the later ones of language models, after prompts of some lengths.

    MODEL is a GGUF file, an ONNX file of a decoder with a cache, or zoo:NAME. GB/s are those of
    weights and cache, and share is their part of the bandwidth that is measured before.

    Example: tensorwright bench decode zoo:smollm2_135m --weights int4 --peers llamacpp,onnxruntime
    """
    _check(models, weights, peers)
    check_writable(json_path, *models)
    ceiling = measure_ceiling(target, threads_of(threads))
    rows: list[DecodeRow] = []
    head = {**describe_machine(target, ceiling), "tokens": tokens, "rounds": rounds}
    for model in models:
        is_zoo = model.removeprefix("zoo:") in DECODERS
        for kind in (weights or ("f32",)) if is_zoo else (_AS_IT_IS,):
            with tempfile.TemporaryDirectory(prefix="tensorwright-bench-") as folder:
                files = _Files.of(model, kind, Path(folder), ceiling.threads, peers)
                with _started(files, peers, ceiling.threads, library or "") as sides:
                    for prompt in prompts:
                        measured = measure(sides, prompt, tokens, rounds)
                        named = row_name(model), kind
                        rows += _rows(named, files, prompt, measured, ceiling.bandwidth)
                        click.echo(f"{named[0]} {kind}: prompt of {prompt} done", err=True)
            if json_path is not None:
                write_objects(json_path, head, [asdict(row) for row in rows])
    print_table(_COLUMNS, [_cells(row) for row in rows])
    over = [row for row in rows if row.share_of_bandwidth > 1]
    if over or any(row.failure for row in rows if row.runtime == _OURS):
        for row in over:
            text = (
                f"{row.share_of_bandwidth:.2f} of the measured bandwidth cannot be: measure again"
            )
            click.echo(f"{row.model} {row.weights}, prompt of {row.prompt}: {text}", err=True)
        sys.exit(1)


def _check(models: Sequence[str], weights: Sequence[str], peers: Sequence[str]) -> None:
    """Raise a UsageError for what no measurement takes."""
    for name, given, possible in (
        ("--weights", weights, KINDS),
        ("--peers", peers, _PEERS),
    ):
        for each in given:
            if each not in possible:
                where, reason = f"option {name}", f"there is no {each}"
                raise base.unknown_name("cli", where, reason, each, possible)
    for model in models:
        check_model(model)
        is_zoo = model.removeprefix("zoo:") in DECODERS
        reason, remedy = "", f"give --weights for {', '.join(f'zoo:{n}' for n in DECODERS)}"
        if weights and not is_zoo:
            reason = f"{model} has weights of its own"
        elif {_LLAMACPP, _INDUCTOR} & {*peers} and not (is_zoo or is_gguf(model)):
            name = "llama.cpp" if _LLAMACPP in peers else _INDUCTOR
            reason, remedy = f"{name} does not read {model}", "give a GGUF file"
        elif _INDUCTOR in peers and {*weights} - {"f32"}:
            reason, remedy = f"{_INDUCTOR} has weights in f32 alone", "leave it out, or --weights"
        if reason:
            raise base.UsageError(stage="cli", where=model, reason=reason, remedy=remedy)


@dataclass(frozen=True, slots=True)
class _Files:
    """The same decoder as each runtime reads it; `executable` is ours."""

    executable: Executable
    paths: dict[str, Path]

    @classmethod
    def of(
        cls, model: str, weights: str, folder: Path, threads: int, peers: Sequence[str]
    ) -> _Files:
        """Write the files."""
        source, saved = Path(model), folder / "model.tw"
        name = model.removeprefix("zoo:")
        if name in DECODERS:
            source = folder / "model.gguf"
            write_decoder(source, DECODERS[name], weights)
        executable = compile_model(source, threads=threads)
        executable.save(saved)
        paths = dict.fromkeys(decode_side.SIDES, source) | {_OURS: saved}
        if _OF_ONNX & {*peers} and is_gguf(source):
            model_file = folder / "model.onnx"
            save_proto(_with_last_scores(whole_model(source)), model_file)
            paths |= dict.fromkeys(_OF_ONNX, model_file)
        if _GENAI in peers:
            write_genai_config(folder, paths[_GENAI], executable, threads)
            paths[_GENAI] = folder
        return cls(executable, paths)

    def bytes_of_token(self, position: int) -> float:
        """What a step reads and writes at a position, each byte once."""
        sizes = {size.name: 1 for size in self.executable.sizes} | {"past": position}
        moved = (getattr(step, "bytes_moved", 0) for step in self.executable.plan.steps)
        return float(sum(base.amount_at(each, sizes) for each in moved))


def _with_last_scores(model: ModelProto) -> ModelProto:
    """A decoder that computes the scores of the last row alone, as `generate` lets ours do."""
    (norm,) = (node for node in model.graph.node if "norm" in node.output)
    ends = {"last": [-1], "end": [np.iinfo(np.int64).max], "axis": [1]}
    model.graph.initializer.extend(numpy_helper.from_array(np.array(n), k) for k, n in ends.items())
    last = helper.make_node("Slice", [norm.input[0], *ends], ["last.row"])
    model.graph.node.insert(list(model.graph.node).index(norm), last)
    norm.input[0] = "last.row"
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 1
    return model


def write_genai_config(folder: Path, model: Path, executable: Executable, threads: int) -> None:
    """Write what ONNX Runtime GenAI wants to know about a decoder: genai_config.json."""
    caches = [spec for spec in executable.inputs if spec.name.startswith("past_key_values")]
    _, groups, _, size = caches[0].shape
    (words,) = {spec.shape[-1] for spec in executable.outputs if spec.name == "logits"}
    parts = ("key", "value")
    decoder = {
        "filename": os.path.relpath(model, folder),
        "session_options": {"intra_op_num_threads": threads},
        "head_size": size,
        "num_key_value_heads": groups,
        "num_hidden_layers": len(caches) // 2,
        "inputs": {f"past_{part}_names": f"past_key_values.%d.{part}" for part in parts},
        "outputs": {f"present_{part}_names": f"present.%d.{part}" for part in parts},
    }
    about = {
        "model": {
            "type": "llama",
            "context_length": _MOST_IDS,
            "vocab_size": words,
            "eos_token_id": [],  # it never ends
            "pad_token_id": 0,
            "decoder": decoder,
        },
        "search": {"max_length": _MOST_IDS, "past_present_share_buffer": False},
    }
    (folder / "genai_config.json").write_text(json.dumps(about))


class _Process:
    """A process of `decode_side`."""

    def __init__(self, kind: str, path: Path, threads: int, library: str) -> None:
        command = [sys.executable, "-P", str(decode_side.__file__), kind, str(path), str(threads)]
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  as long as the process
        self._process = subprocess.Popen(
            [*command, library],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self.kind = kind
        self.load_s: float = self._answer()["load_s"]

    def ask(self, prompt: int, tokens: int) -> dict[str, Any]:
        """The answer for a prompt and so many tokens."""
        pipe: IO[str] | None = self._process.stdin
        assert pipe is not None, "it was asked for"
        pipe.write(json.dumps([prompt, tokens]) + "\n")
        pipe.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None, "it was asked for"
        line = self._process.stdout.readline()
        if not line:
            code = self._process.wait()
            self._log.seek(0)
            lines = self._log.read().decode(errors="replace").split("\n")
            last = next(filter(None, reversed(lines)), "it said nothing")
            self.close()
            raise base.MachineError(
                stage="bench",
                where=f"runtime {self.kind}",
                reason=f"its process ended with exit code {code}: {last}",
                remedy=f"check that it is installed, and reads {self._process.args!r}",
            )
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        for each in (self._process.stdin, self._process.stdout, self._log):
            if each is not None:
                each.close()


@contextmanager
def _started(
    files: _Files, peers: Sequence[str], threads: int, library: str
) -> Iterator[list[_Process | tuple[str, str]]]:
    """The processes, ours first; a kind and why it has none for others that do not start."""
    with ExitStack() as stack:
        sides: list[_Process | tuple[str, str]] = []
        for kind in (_OURS, *peers):
            try:
                own = _library_of(kind, library)
                side = _Process(kind, files.paths[kind], threads, own)
            except base.MachineError as error:
                sides.append((kind, error.reason))
            else:
                stack.callback(side.close)
                sides.append(side)
        yield sides


def _library_of(kind: str, library: str) -> str:
    """The library of llama.cpp, given or that of the package xllamacpp; "" for other runtimes.

    Raises:  MachineError where a runtime's package is not installed.
    """
    package = _PACKAGES.get(kind, "" if kind != _LLAMACPP or library else "xllamacpp.xllamacpp")
    if not package:
        return library
    try:
        spec = importlib.util.find_spec(package)
    except ImportError:
        spec = None
    if spec is None:
        name = package.partition(".")[0].replace("_", "-")
        more = ", or name its library: --llamacpp libllama.so" if kind == _LLAMACPP else ""
        raise base.MachineError(
            stage="bench",
            where=f"runtime {kind}",
            reason=f"it is not installed: pip install {name}{more}",
            remedy=f"pip install {name}{more}",
        )
    return str(spec.origin) if kind == _LLAMACPP else ""


@dataclass(frozen=True, slots=True)
class Measured:
    """Of a runtime: its seconds of first and later tokens, its tokens; or why there are none."""

    kind: str
    first_s: Sequence[float] = ()
    later_s: Sequence[float] = ()
    tokens: Sequence[int] = ()
    load_s: float = 0.0
    peak_bytes: int = 0
    failure: str = ""


def measure(
    sides: Sequence[_Process | tuple[str, str]], prompt: int, tokens: int, rounds: int
) -> list[Measured]:
    """What each runtime takes, in turns; the first round only warms up where there are more."""
    answers: list[list[dict[str, Any]]] = [[] for _ in sides]
    failures = [side[1] if isinstance(side, tuple) else "" for side in sides]
    for _ in range(rounds):
        for number, side in enumerate(sides):
            if failures[number] or isinstance(side, tuple):
                continue
            try:
                answers[number].append(side.ask(prompt, tokens))
            except base.MachineError as error:
                failures[number] = error.reason
    result = []
    for side, given, failure in zip(sides, answers, failures, strict=True):
        kind, load_s = side if isinstance(side, tuple) else (side.kind, side.load_s)
        if failure:
            result.append(Measured(kind, failure=failure))
            continue
        used = given[1:] or given
        first = [each["seconds"][0] for each in used]
        later = [second for each in used for second in each["seconds"][1:]]
        made, peak = given[0]["tokens"], max(each["peak_bytes"] for each in given)
        result.append(Measured(kind, first, later, made, float(load_s), peak))
    return result


def _rows(
    named: tuple[str, str],
    files: _Files,
    prompt: int,
    measured: Sequence[Measured],
    bandwidth: float,
) -> Iterator[DecodeRow]:
    ours = measured[0]
    for each in measured:
        if each.failure:
            yield DecodeRow(*named, each.kind, prompt, failure=each.failure)
            continue
        token_s, p95_s = (float(np.percentile(each.later_s, share)) for share in (50, 95))
        middle = prompt + len(each.tokens) // 2
        rate = files.bytes_of_token(middle) / token_s if each is ours else 0.0
        pairs = zip(each.tokens, ours.tokens, strict=False)
        count = next((at for at, (a, b) in enumerate(pairs) if a != b), len(each.tokens))
        yield DecodeRow(
            *named,
            each.kind,
            prompt,
            float(np.median(each.first_s)),
            token_s,
            p95_s,
            rate,
            rate / bandwidth,
            token_s / float(np.median(ours.later_s)) if ours.later_s else 0.0,
            count / len(each.tokens),
            each.load_s,
            each.peak_bytes,
        )


def _cells(row: DecodeRow) -> tuple[str, ...]:
    named = row.model, row.weights, row.runtime, str(row.prompt)
    if row.failure:
        return (*named, *[""] * (len(_COLUMNS) - len(named) - 1), row.failure)
    milliseconds = (f"{1e3 * each:.2f}" for each in (row.first_s, row.token_s, row.p95_s))
    rates = f"{row.bytes_per_s / 1e9:.1f}", f"{row.share_of_bandwidth:.2f}"
    return (
        *named,
        *milliseconds,
        f"{1 / row.token_s:.0f}",
        *(rates if row.bytes_per_s else ("", "")),
        f"{row.times_ours:.2f}",
        f"{row.same:.2f}",
        f"{row.load_s:.2f}",
        f"{row.peak_bytes / 1e6:.0f}",
        "",
    )
