"""A session: a model that is compiled, or an executable that is loaded, and its calls."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tensorwright import base
from tensorwright.compiling import compile, read_handle
from tensorwright.onnxruntime_compat import options
from tensorwright.onnxruntime_compat.values import IOBinding, NodeArg, OrtValue, array_of
from tensorwright.runtime import Executable, check_names, load
from tensorwright.version import __version__

if TYPE_CHECKING:
    from tensorwright.base import Array

PROVIDER = "CPUExecutionProvider"


@dataclass(slots=True)
class ModelMetadata:
    """What a session says of its model: the name of its graph; the rest is not kept."""

    graph_name: str
    producer_name: str = ""
    description: str = ""
    graph_description: str = ""
    domain: str = ""
    version: int = 0
    custom_metadata_map: dict[str, str] = field(default_factory=dict)


class InferenceSession:
    """A model that is ready to run. Safe to call from several threads."""

    def __init__(
        self,
        path_or_bytes: str | os.PathLike[str] | bytes,
        sess_options: options.SessionOptions | None = None,
        providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        **others: Any,
    ) -> None:
        """Compile a model, or load an executable.

        path_or_bytes   the path of a model or executable, or its bytes
        providers       the one for processors must be among them, where some are named
        provider_options, and other arguments by name, have no effect
        Raises:  InvalidArgument for other providers alone and options that are refused; the errors
                 of `compile` and `load` under their names in `options.py`.
        """
        del provider_options, others  # say how another library computes
        _check_providers(providers)
        self._options = sess_options or options.SessionOptions()
        self._options.check()
        threads = self._options.intra_op_num_threads or None
        model = read_handle(path_or_bytes)
        with options.loading(path_or_bytes):
            if _is_executable(model):
                self.executable: Executable = load(model, threads=threads)
            else:
                self.executable = compile(model, threads=threads, sizes=self._options.sizes)
        self._names = tuple(spec.name for spec in self.executable.outputs)

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: options.RunOptions | None = None,
    ) -> list[Array]:
        """The outputs of these names, or all, in order.

        Raises:  InvalidArgument for an input that does not fit and an unknown output, MissingInput
                 for one that is not given; Fail where the options stop the call.
        """
        wanted = self._wanted(output_names)
        feed = self._feed(input_feed)
        with options.calling():
            if run_options is None:
                results = self.executable.run(feed)
            else:
                run_options.check()
                call = self.executable.run_async(feed)
                with run_options.watching(call):
                    results = call.result()
        return [results[name] for name in wanted]

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[list[Array], Any, str], object],
        user_data: Any,
        run_options: options.RunOptions | None = None,
    ) -> None:
        """As `run`, in the background: at the end callback(results, user_data, error).

        error         the text of an error; "" where there is none
        run_options   as they are now
        """
        if run_options is not None:
            run_options.check()
        wanted = self._wanted(output_names)
        with options.calling():
            call = self.executable.run_async(self._feed(input_feed))

        def tell(_: object) -> None:
            error = call.exception()
            results = [] if error else [call.result()[name] for name in wanted]
            callback(results, user_data, str(error) if error else "")

        call.add_done_callback(tell)

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: options.RunOptions | None = None,
    ) -> list[OrtValue]:
        """As `run`, with values instead of arrays."""
        return [*map(OrtValue, self.run(output_names, input_dict_ort_values, run_options))]

    def io_binding(self) -> IOBinding:
        """A binding without anything; one call at a time uses it."""
        return IOBinding(self.executable)

    def run_with_iobinding(
        self, iobinding: IOBinding, run_options: options.RunOptions | None = None
    ) -> None:
        """Compute what is bound.  Raises: BindingError; Fail where the options have stopped."""
        if run_options is not None:
            run_options.check()
        iobinding.run()

    def get_inputs(self) -> list[NodeArg]:
        """The inputs, in order."""
        return [NodeArg.of(spec) for spec in self.executable.inputs]

    def get_outputs(self) -> list[NodeArg]:
        """The outputs, in order."""
        return [NodeArg.of(spec) for spec in self.executable.outputs]

    def get_overridable_initializers(self) -> list[NodeArg]:
        """None: weights are part of the executable."""
        return []

    def get_providers(self) -> list[str]:
        """The one provider."""
        return [PROVIDER]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """The one provider, which has no options."""
        return {PROVIDER: {}}

    def set_providers(self, providers: Sequence[Any], _: Any = None) -> None:
        """Raises:  InvalidArgument for other providers alone."""
        _check_providers(providers)

    def get_session_options(self) -> options.SessionOptions:
        """The options with which it was made."""
        return self._options

    def get_modelmeta(self) -> ModelMetadata:
        """The name of the model's graph."""
        return ModelMetadata(self.executable.plan.name)

    def end_profiling(self) -> str:
        """The file of a profile: none."""
        return ""

    def disable_fallback(self) -> None:
        """Change nothing: there is no other provider."""

    def enable_fallback(self) -> None:
        """Change nothing: there is no other provider."""

    def _wanted(self, output_names: Sequence[str] | None) -> tuple[str, ...]:
        wanted = tuple(output_names) if output_names else self._names
        unknown = [name for name in wanted if name not in self._names]
        if unknown:
            raise options.refusal(
                f"output {unknown[0]}",
                "the model has no such output",
                base.did_you_mean(
                    unknown[0], self._names, "name some of " + ", ".join(self._names)
                ),
            )
        return wanted

    def _feed(self, input_feed: Mapping[str, Any]) -> dict[str, Any]:
        specs = self.executable.inputs
        if any(spec.name not in input_feed for spec in specs):
            with options.calling(options.MissingInput):
                check_names("input", specs, input_feed)
        return {name: array_of(value) for name, value in input_feed.items()}


def _check_providers(providers: Sequence[Any] | None) -> None:
    names = [each if isinstance(each, str) else each[0] for each in providers or (PROVIDER,)]
    if PROVIDER not in names:
        raise options.refusal(
            f"providers {', '.join(names)}",
            "a session runs on the processor alone",
            f"name {PROVIDER} among them",
        )


def get_available_providers() -> list[str]:
    """The one provider."""
    return [PROVIDER]


def get_all_providers() -> list[str]:
    """The one provider."""
    return [PROVIDER]


def get_version_string() -> str:
    """The version of this package."""
    return __version__


def get_device() -> str:
    """Where sessions run."""
    return "CPU"


def set_default_logger_severity(_: int) -> None:
    """Change nothing: the knob `log` says how much this package says."""


def set_default_logger_verbosity(_: int) -> None:
    """Change nothing, as above."""


def set_default_logger_callback(*_: Any) -> None:
    """Change nothing, as above."""


def disable_telemetry_events() -> None:
    """Change nothing: nothing is sent anywhere."""


def enable_telemetry_events() -> None:
    """Change nothing: nothing is sent anywhere."""


def preload_dlls(**_: Any) -> None:
    """Change nothing: sessions run on the processor alone."""


def set_seed(_: int) -> None:
    """Change nothing: no operator draws random numbers."""


def _is_executable(model: Any) -> bool:
    if isinstance(model, bytes):
        return base.kind_of_bytes(model[: base.HEAD_BYTES]) is base.EXECUTABLE
    try:
        return isinstance(model, str | os.PathLike) and base.kind_of_file(model) is base.EXECUTABLE
    except OSError:  # compiling says what is wrong with it
        return False
