"""`tensorwright.compile`: return the kept executable of a model, or run the pipeline and keep one.

The key of a kept executable is a digest of what compiling depended on: the model's bytes, the
options, the target, the machine, the knobs, this package and the packages with which it computes.
Two lists are stored beside the executable: the files that hold the model's weights, and the records
that were read (`WatchedStore`).  The executable is used again only if both lists are unchanged; in
doubt the pipeline runs.

This module imports no stage of the pipeline, so that a kept executable is returned fast.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias
from weakref import WeakKeyDictionary

from tensorwright.base import (
    EXTENSIONS,
    KNOBS,
    Advice,
    CpuTarget,
    ModelError,
    UndecidedError,
    UsageError,
    available_cores,
    digest_of_bytes,
    digest_of_file,
    is_dumped,
    knobs,
    package_digest,
    takes_options,
)
from tensorwright.compile_options import CompileArguments
from tensorwright.instances import AnySizes, Instances, Signature
from tensorwright.machine import detect_hardware, kept_product_steps, kept_steps
from tensorwright.runtime import (
    Executable,
    ExecutableCache,
    default_executable_cache,
    usable_threads,
)

if TYPE_CHECKING:
    from tensorwright.graph import Program
    from tensorwright.pipeline import Model as PipelineModel

    Model: TypeAlias = PipelineModel | bytearray | memoryview | BinaryIO

_PIPELINE, _RECORDS = "tensorwright.pipeline", "tensorwright.records"
_MEASURING, _PROCESSES = "tensorwright.runtime.measuring", "tensorwright.processes"
_MODELS = "tensorwright.graph.model_import"
_RECORD = "ExportedGraph"
_AHEAD = "tensorwright.tuning.selection.ahead"
_WITHOUT_EFFECT = (
    knobs.HOME,
    knobs.DUMP,
    knobs.DUMP_DIR,
    knobs.VERIFY,
    knobs.LOG,
    knobs.KERNEL_CACHE,
    knobs.EXECUTABLE_CACHE,
    knobs.COST_MODEL,
    knobs.THREADS,  # the key has the number that is used
    knobs.TARGET,
)
_LEAST_HELPED_BYTES = 1_000_000
"""Smaller models usually have few workloads: one process compiles them before a second starts."""
_LEAST_CHECKED_BYTES = 256_000_000
"""Larger files are refused, if we lack an operator, before they are read for their digest."""
_TOO_LARGE: WeakKeyDictionary[Executable, tuple[str, dict[str, Any]]] = WeakKeyDictionary()
"""Executables of this process that the disk does not keep, with their keys and facts."""
_SETTLED_S = 2.0
"""A file that was written more recently may be written again without a change of its times."""


@takes_options(CompileArguments)
def compile(model: Model | Program, how: CompileArguments) -> Executable:
    """Compile a model or a tensor expression, or return its kept executable.

    model   an ONNX, GGUF or .pt2 file: its path, its bytes or an open handle; a
            ModelProto, an ExportedProgram, a Graph, tensor expressions, a result of `program`

    The executable of a model with open sizes takes arrays of any size within their bounds. Sizes
    that its program does not take are compiled when a call has them (`AnySizes`).
    A workload without a record gets the schedule that the time model expects to be the fastest, or
    the heuristic schedule (knob `default_schedule`).  If `optimize` has kept a faster graph
    for the network in the same records, that graph is compiled.
    Raises:  ModelError, UnsupportedError, ScheduleError, MachineError, UsageError.
    """
    given = read_handle(model)
    if how.trace or how.constants or how.on_kernel:
        return _pipeline(given, how)
    question = _question(given, how)
    if how.sizes == "fixed":
        return _compiled(question, given, how)
    refusal: UndecidedError | None = None
    try:
        program = _compiled(question, given, how)
    except UndecidedError as error:
        program, refusal = None, error
    return _of_any_sizes(given, how, question, program, refusal)


def _compiled(question: _Question | None, model: Any, how: CompileArguments) -> Executable:
    """The kept executable for a question, or what the pipeline makes."""
    if question is None:
        return _pipeline(model, how)
    return question.kept() or question.compiled(model)


def _of_any_sizes(
    model: Any,
    how: CompileArguments,
    question: _Question | None,
    program: Executable | None,
    refusal: UndecidedError | None,
) -> Executable:
    """An executable that also answers calls of sizes that its program does not take.

    program   None if `refusal` says why the model cannot be compiled for all sizes
    """
    if program is not None and all(size.name in program.plan.counted for size in program.sizes):
        return program
    kind = type(model).__name__
    if not (isinstance(model, str | os.PathLike | bytes) or kind in ("ModelProto", _RECORD)):
        if program is None:
            assert refusal is not None
            raise refusal
        return program
    digest = question.model if question else _digest_of_model(model)[0]

    def declared() -> Signature:
        pipeline = importlib.import_module(_PIPELINE)
        said: Signature = pipeline.declared_signature(model, how)
        return said

    def build(shapes: Mapping[str, tuple[int, ...]]) -> Executable:
        chosen = replace(how, input_shapes=shapes)
        question = _question(model, chosen)
        now = question.model if question else _digest_of_model(model)[0]
        if now not in (digest, None):
            raise ModelError(
                stage="compile",
                where=label,
                reason="it has changed since it was compiled",
                remedy="compile it again",
            )
        return _compiled(question, model, chosen)

    threads = usable_threads(how.threads)
    label = str(model) if isinstance(model, str | os.PathLike) else "the model"
    return AnySizes(program, declared, Instances(label, build), threads, refusal)


def read_handle(model: Any) -> Any:
    """The bytes of an open file or of a buffer, the record of an ExportedProgram; any other model
    unchanged.

    Raises:  UsageError for a file that is open for text; the errors of reading a program.
    """
    if type(model).__name__ == "ExportedProgram":
        return importlib.import_module(_MODELS).recorded(model)
    if isinstance(model, bytearray | memoryview):
        return bytes(model)
    if hasattr(model, "read") and not isinstance(model, str | os.PathLike):
        data = model.read()
        if isinstance(data, str):
            raise UsageError(
                stage="compile",
                where="the open file of the model",
                reason="it gives text",
                remedy='open it for bytes: open(path, "rb")',
            )
        return data
    return model


@dataclass(frozen=True, slots=True)
class _Question:
    """A model and the options of its compilation, as digests.

    model   the digest of the model's own bytes
    path    of the model's file; None if the model is not a file
    store   the path of the record store; None if the caller gave an open store
    """

    cache: ExecutableCache
    model: str
    path: Path | None
    target: CpuTarget
    how: CompileArguments
    store: Path | None

    def key(self) -> str:
        """The key of the entry, for the present state of the machine."""
        parts = (
            package_digest(),
            self.model,
            self.target.name,
            self.target.key,
            detect_hardware().fingerprint,
            str((kept_steps(self.target), kept_product_steps(self.target))),
            str(usable_threads(self.how.threads)),
            repr((_sorted(self.how.input_shapes), _sorted(self.how.bounds), _knob_values())),
            repr((self.how.precision, [*self.how.keep], str(self.store))),
        )
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def kept(self) -> Executable | None:
        """The kept executable, if compiling would give the same one; else None.

        Raises:  UndecidedError if compiling would raise the same one.
        """
        key = self.key()
        entry = self.cache.entry(key)
        if entry is None:
            return self._alive(key)
        store = _signature(self.store)  # before the records are asked
        if not self._is_valid(entry):
            return None
        if "refusal" in entry:
            fields = entry["refusal"]
            raise UndecidedError(**{**fields, "remedy": Advice(fields["remedy"], entry["command"])})
        if store is None or store != entry["store"]:
            self.cache.renew(key, {**entry, "store": store})
        contents = self.cache.contents(entry)
        return None if contents is None else Executable.of(contents, self.how.threads)

    def _alive(self, key: str) -> Executable | None:
        """One that shares the constants of an executable which this process has."""
        for executable, (other, facts) in list(_TOO_LARGE.items()):
            if other == key and self._is_valid(facts):
                return Executable.of(executable.contents, self.how.threads)
        return None

    def compiled(self, model: Any) -> Executable:
        """Compile, and keep the executable, or the refusal, with what it depended on."""
        module = importlib.import_module(_RECORDS)
        before = _state_of(self.path), _signature(self.store)
        result: Executable | UndecidedError
        with module.opened(self.how.records) as store:
            watched = module.WatchedStore(store)
            with self._helper(model):
                try:
                    result = _pipeline(model, replace(self.how, records=watched))
                except UndecidedError as error:
                    result = error
        files = () if self.path is None else _external_files(self.path)
        if _state_of(self.path) == before[0] and files is not None:
            facts = {"files": files, "reads": watched.reads, "store": before[1]}
            key = self.key()
            if isinstance(result, UndecidedError):
                command = result.for_command().remedy
                entry = {**facts, "refusal": dict(result.fields), "command": command}
                self.cache.renew(key, entry)
            elif not self.cache.put(key, result.contents, facts):
                _TOO_LARGE[result] = key, facts
        if isinstance(result, UndecidedError):
            raise result
        return result

    def _helper(self, model: Any) -> contextlib.AbstractContextManager[None]:
        """A second process that compiles, too; none for small models and without a second core.

        The rates of this machine are measured before it starts, so it does not disturb them.
        """
        is_used = knobs.DEFAULT_SCHEDULE.get() != "rule" and available_cores() > 1
        if _size_bytes(model) < _LEAST_HELPED_BYTES or not is_used:
            return contextlib.nullcontext()
        threads = usable_threads(self.how.threads)
        importlib.import_module(_MEASURING).this_machine(self.target, threads)
        values = {knob.name: knob.get() for knob in KNOBS}
        arguments = (_AHEAD, "get_ready", self.target, threads, values)
        helper: contextlib.AbstractContextManager[None]
        helper = importlib.import_module(_PROCESSES).spare_worker(*arguments)
        return helper

    def _is_valid(self, entry: dict[str, Any]) -> bool:
        """Whether the files of weights and the records that were read are unchanged."""
        if any(_digest_of(Path(name)) != digest for name, digest in entry["files"]):
            return False
        signature = _signature(self.store)
        if signature is not None and signature == entry["store"]:
            return True
        module = importlib.import_module(_RECORDS)
        with module.opened(self.how.records) as store:
            return bool(module.answers_alike(store, entry["reads"]))


def _question(model: Any, how: CompileArguments) -> _Question | None:
    """The question that the cache may answer; None if the pipeline must run.

    It must run if the argument is not a model, if the target is not a processor, and if a knob or
    one of `EXTENSIONS` demands it.
    """
    cache = default_executable_cache()
    is_used = cache.limit_bytes and knobs.KERNEL_CACHE.get()
    if not is_used or EXTENSIONS or knobs.VERIFY.get() or is_dumped(*knobs.DUMP_STAGES):
        return None
    if _size_bytes(model) >= _LEAST_CHECKED_BYTES:
        importlib.import_module(_MODELS).check_operators(model)
    digest, path = _digest_of_model(model)
    target = how.machine
    if digest is None or not isinstance(target, CpuTarget):
        return None
    store: Path | None = None
    if how.records is None:
        store = knobs.HOME.get() / knobs.RECORDS_FILE
    elif isinstance(how.records, str | os.PathLike):
        store = Path(how.records).absolute()
    return _Question(cache, digest, path, target, how, store)


def _pipeline(model: Any, how: CompileArguments) -> Executable:
    executable: Executable = importlib.import_module(_PIPELINE).compile(model, how)
    return executable


def _digest_of_model(model: Any) -> tuple[str | None, Path | None]:
    """The digest of a model's bytes with its kind, and its file; (None, None) without a model."""
    if isinstance(model, bytes):
        return f"bytes {digest_of_bytes(model)}", None
    if isinstance(model, str | os.PathLike):
        path = Path(model)
        digest = _digest_of(path)
        return (None, None) if digest is None else (f"file {digest}", path)
    kind = type(model).__name__
    if kind == "ModelProto":
        data = model.SerializeToString(deterministic=True)
        return f"proto {digest_of_bytes(data)}", None
    if kind == _RECORD:
        return f"record {model.digest}", None
    if kind == "Graph":
        return f"graph {digest_of_bytes(str(model).encode())}", None
    return None, None


def _digest_of(path: Path) -> str | None:
    try:
        return digest_of_file(path)
    except (OSError, ValueError):
        return None


def _external_files(path: Path) -> Sequence[tuple[str, str]] | None:
    """The files beside a model that hold its weights, with digests; None if one is missing."""
    imported = importlib.import_module(_MODELS)
    files = [(str(each), _digest_of(each)) for each in imported.files_beside(path)]
    whole = [(name, digest) for name, digest in files if digest is not None]
    return whole if len(whole) == len(files) else None


def _sorted(given: object) -> object:
    """A mapping as its sorted items; any other value unchanged, for the pipeline to refuse."""
    return sorted(given.items()) if isinstance(given, Mapping) else given


def _knob_values() -> str:
    """The values of the knobs that change the executable; for a file, also its digest."""
    values: dict[str, str] = {}
    for knob in KNOBS:
        if knob not in _WITHOUT_EFFECT:
            value = knob.get()
            text = f"{value} {_digest_of(value)}" if isinstance(value, Path) else str(value)
            values[knob.name] = text
    return json.dumps(values)


def _state_of(path: Path | None) -> list[int] | None:
    """The size and the times of a file, which change when it is written."""
    if path is None:
        return None
    try:
        status = path.stat()
    except OSError:
        return None
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def _size_bytes(model: Any) -> int:
    """The bytes of a file, or of what was read from one; 0 for other models."""
    if isinstance(model, bytes):
        return len(model)
    state = _state_of(Path(model)) if isinstance(model, str | os.PathLike) else None
    return state[0] if state else 0


def _signature(store: Path | None) -> list[Any] | None:
    """The state of a record store's file and of its write-ahead log, which writes change.

    None if writes may leave the state unchanged: for an open store, and soon after a write.
    """
    if store is None:
        return None
    files = (store, store.with_name(store.name + "-wal"))
    states = [state for state in map(_state_of, files) if state and state[0]]  # a log may be empty
    newest = max((state[1] for state in states), default=0)
    is_settled = abs(time.time_ns() - newest) > _SETTLED_S * 1e9
    return states if is_settled else None
