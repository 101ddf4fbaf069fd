"""Run this checkout on 64-bit ARM, emulated: compile, tune, run, save, and the conformance suite.

    python benchmarks/correctness/arm64.py root              make the root (4 minutes, 1.1 GB)
    python benchmarks/correctness/arm64.py check             cross over, and tune there
    python benchmarks/correctness/arm64.py farm              build here, measure there
    python benchmarks/correctness/arm64.py suite             some of the conformance suite there
    python benchmarks/correctness/arm64.py suite --whole     all of it, or with --part 3 a part
    python benchmarks/correctness/arm64.py run python3 -m tensorwright doctor

The root is a Debian system for arm64 whose packages are unpacked and not configured, with this
package and what it needs from wheels, in TENSORWRIGHT_ARM64_ROOT (by default in the user's cache).
`check` and `suite` bring this checkout's sources there first.  qemu-user runs its programs.  Linux
starts them by itself once binfmt_misc knows qemu, which this script registers where it may: worker
processes are started inside.  Needs root, qemu-user-static and debootstrap; with
gcc-aarch64-linux-gnu the C library is built here, else by the gcc there.
"""

from __future__ import annotations

import argparse
import compileall
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

import tensorwright
from tensorwright.base import DType
from tensorwright.farm import StdioFarm
from tensorwright.graph import Graph, GraphBuilder, interpret
from tensorwright.graph.onnx_export import to_onnx
from tensorwright.records import opened

CHECKOUT = Path(__file__).parents[2]
DEBIAN = "bookworm"
PYTHON_VERSION = "311"  # of that Debian
_PACKAGES = "python3,libgomp1,gcc,libc6-dev,make"
_TEST_PACKAGES = ("pytest>=8.3", "hypothesis>=6.100")
_CROSS_COMPILER = "aarch64-linux-gnu-gcc"
_HOME = "/root"  # of the user inside the root of arm64
_SITE = "opt/tensorwright"
_WORK = "root/work"
_BINFMT = Path("/proc/sys/fs/binfmt_misc")
_ELF_MAGIC = r"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
_ELF_MASK = r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
_PRIVATE = 'mount -t proc proc "$0/proc"; mount --rbind /dev "$0/dev"; exec chroot "$0" "$@"'
_TARGETS = ("aarch64-neon", "aarch64-neon+dotprod", "aarch64-neon+fullfp16+dotprod+i8mm")
_TOLERANCES = {  # of results in f16; of those of NumPy, one is rounded after each operation
    "halves": 2e-3,
    "cnn in f16": 2e-3,
    "encoder in f16": 2e-3,
}
_TOLERANCE = 1e-5
_BYTES = "tests/unit/tuning/space/defaults/test_short_products.py"
_SAMPLE = (
    *("tests/conformance/test_backends.py", "tests/unit/codegen/test_arm.py", _BYTES),
    *("-k", "tiles or folds or padding or intrinsics or extremes or lane or halves or arm_"),
)
_PARTS = (
    ("tests/conformance/test_backends.py",),
    ("tests/conformance", "--ignore=tests/conformance/test_backends.py"),
    ("tests/unit/codegen",),
    ("tests/unit/runtime", "--ignore=tests/unit/runtime/test_runtime_package.py"),  # builds wheels
    ("tests/unit/base", _BYTES),
)
"""The whole suite, in parts of some minutes each."""
_OF_PROCESSORS = (
    "tests/unit/runtime/test_peak.py::test_the_peak_is_plausible_and_quick",
    "tests/unit/runtime/test_jit.py::test_code_is_unloaded_with_its_owner",
)
"""What no emulator passes: it is slower than a processor, and its memory is not executable."""


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("root")
    commands.add_parser("check")
    commands.add_parser("farm")
    tests = commands.add_parser("suite")
    tests.add_argument("--whole", action="store_true")
    tests.add_argument("--part", type=int, choices=range(1, len(_PARTS) + 1))
    commands.add_parser("run").add_argument("words", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    root = _folder()
    if given.command == "root":
        make_root(root)
        return 0
    if not is_made(root):
        print(f"there is no root in {root}: make it with `arm64.py root`", file=sys.stderr)
        return 2
    reason = register_emulator()
    if reason:
        print(reason, file=sys.stderr)
        return 2
    if given.command == "run":
        return call(root, given.words)
    install_sources(root)
    started = time.monotonic()
    match given.command:
        case "check":
            failed = check(root)
        case "farm":
            failed = farm(root)
        case _:
            chosen = _PARTS[given.part - 1 : given.part] if given.part else ()
            failed = suite(root, chosen or (_PARTS if given.whole else (_SAMPLE,)))
    print(f"{given.command} on arm64: {(time.monotonic() - started) / 60:.1f} minutes")
    return failed


def _folder() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("TENSORWRIGHT_ARM64_ROOT") or cache / "tensorwright" / "arm64")


def is_made(root: Path) -> bool:
    """Whether a root is complete: what was begun and not ended has another name."""
    return (root / _SITE).is_dir()


def make_root(root: Path) -> None:
    """Unpack Debian's packages and install this package's wheels, all without an emulator."""
    if is_made(root):
        print(f"{root} is there already")
        return
    root.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix="arm64-", dir=root.parent))
    fetch = ("--arch=arm64", "--foreign", "--variant=minbase", f"--include={_PACKAGES}")
    _do("debootstrap", *fetch, DEBIAN, str(made))
    unpack = (
        'dpkg-deb --fsys-tarfile "$1" | tar --extract --keep-directory-symlink --directory "$0"'
    )
    for package in sorted((made / "var/cache/apt/archives").glob("*.deb")):
        _do("sh", "-c", unpack, str(made), str(package))
    with tempfile.TemporaryDirectory() as wheels:
        _wheels(Path(wheels))
        ours = sorted(map(str, Path(wheels).glob("*.whl")))
        _install(made, *ours, *_TEST_PACKAGES)
    processes = made / "proc"
    if processes.is_symlink():  # inside a container debootstrap links it to itself
        processes.unlink()
    for folder in (processes, made / "root"):
        folder.mkdir(exist_ok=True)
    made.chmod(0o755)
    made.rename(root)
    print(f"{root} is made")


def _wheels(folder: Path) -> None:
    """Build the wheels of this checkout: they are the same for every processor."""
    with tempfile.TemporaryDirectory() as copy:
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
        for name in ("src", "lab/src"):
            shutil.copytree(CHECKOUT / name, Path(copy) / name, ignore=ignored)
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(CHECKOUT / name, copy)
        for name in ("pyproject.toml", "README.md"):
            shutil.copy(CHECKOUT / "lab" / name, Path(copy) / "lab")
        pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps")
        _do(*pip, "--wheel-dir", str(folder), copy, f"{copy}/lab")


def _install(root: Path, *requirements: str) -> None:
    """Install wheels for arm64 into the root, by the pip of this machine."""
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--upgrade")
    platforms = [f"--platform=manylinux_2_{minor}_aarch64" for minor in (17, 26, 27, 28)]
    kind = ("--only-binary=:all:", f"--python-version={PYTHON_VERSION}", *platforms)
    _do(*pip, *kind, f"--target={root / _SITE}", *requirements)


def install_sources(root: Path) -> None:
    """Bring the sources and tests of this checkout into the root."""
    ignored = shutil.ignore_patterns("__pycache__")
    for source, target in (
        ("src/tensorwright", f"{_SITE}/tensorwright"),
        ("lab/src/tensorwright_lab", f"{_SITE}/tensorwright_lab"),
        ("tests", "root/checkout/tests"),
    ):
        shutil.rmtree(root / target, ignore_errors=True)
        shutil.copytree(CHECKOUT / source, root / target, ignore=ignored)
        if f"{sys.version_info[0]}{sys.version_info[1]}" == PYTHON_VERSION:
            compileall.compile_dir(root / target, quiet=2)  # an emulator takes half a minute
    for name in ("pyproject.toml", "conftest.py"):
        shutil.copy(CHECKOUT / name, root / "root/checkout")
    sources = root / "root/checkout/src"
    sources.unlink(missing_ok=True)
    sources.symlink_to(f"/{_SITE}")


def register_emulator() -> str:
    """Let Linux start programs for arm64 by qemu; why that cannot be, "" where it can."""
    if not _BINFMT.is_dir():
        return "this Linux has no binfmt_misc: it cannot start programs for arm64"
    if not (_BINFMT / "register").exists():
        subprocess.run(["mount", "-t", "binfmt_misc", "binfmt_misc", str(_BINFMT)], check=False)
    if any(_BINFMT.glob("qemu-aarch64*")):
        return ""
    emulator = shutil.which("qemu-aarch64-static")
    if emulator is None:
        return "qemu-aarch64-static is missing (on Debian: apt-get install qemu-user-static)"
    line = f":qemu-aarch64:M::{_ELF_MAGIC}:{_ELF_MASK}:{emulator}:F"
    try:
        (_BINFMT / "register").write_text(line)
    except OSError as error:
        return f"qemu cannot be registered with binfmt_misc: {error}"
    return ""


def call(root: Path, words: list[str]) -> int:
    """Run a program inside the root, with mounts of its own; its exit status."""
    environment = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": _HOME,
        "PYTHONPATH": f"/{_SITE}",
        "TENSORWRIGHT_HOME": f"{_HOME}/home",
        "TENSORWRIGHT_C_COMPILER": "gcc",  # nothing has configured the name cc
        "LANG": "C.UTF-8",
    }
    told = {k: v for k, v in os.environ.items() if k.startswith(("TENSORWRIGHT_", "QEMU_"))}
    told.pop("TENSORWRIGHT_ARM64_ROOT", None)
    command = [
        "unshare",
        "--mount",
        "sh",
        "-c",
        _PRIVATE,
        str(root),
        "env",
        "--chdir=/root",
        *words,
    ]
    return subprocess.run(command, check=False, env={**told, **environment}).returncode


def small_network() -> Graph:
    """A convolution in blocks of channels, a fold of rows, and two products of matrices."""
    random = np.random.default_rng(7)

    def weights(*shape: int) -> np.ndarray:
        return random.standard_normal(shape).astype(np.float32) / 8

    b = GraphBuilder("small")
    x = b.input("x", (1, 8, 14, 14))
    y = b.add("relu", b.add("conv", x, b.constant(weights(32, 8, 3, 3)), pads=(1, 1, 1, 1)))
    y = b.add("relu", b.add("conv", y, b.constant(weights(32, 32, 3, 3)), pads=(1, 1, 1, 1)))
    y = b.add("reshape", y, shape=(32, 196))
    y = b.add("matmul", y, b.constant(weights(196, 48)))
    return b.finish([b.add("softmax", y, output="y", axis=1)])


def byte_network() -> Graph:
    """A product of bytes, whose data are quantised here."""
    random = np.random.default_rng(8)
    b = GraphBuilder("bytes")
    scale = b.constant(np.array(0.03, np.float32))
    zero = b.constant(np.array(117, np.uint8))
    codes = b.add("quantize_linear", b.input("x", (24, 64)), scale, zero)
    weights = random.integers(-127, 128, (64, 48)).astype(np.int8)
    sums = b.add("matmul_integer", codes, b.constant(weights), zero)
    scaled = b.add("mul", b.add("cast", sums, to=DType.F32), scale)
    return b.finish([b.add("relu", scaled, output="y")])


def half_network() -> Graph:
    """Halves that are added and multiplied element by element."""
    b = GraphBuilder("halves")
    x = b.input("x", (16, 40), DType.F16)
    return b.finish([b.add("relu", b.add("add", b.add("mul", x, x), x), output="y")])


def byte_image() -> Graph:
    """A convolution of bytes, whose channels lie in blocks, on images with odd rows."""
    random = np.random.default_rng(9)

    def weights(*shape: int) -> np.ndarray:
        return random.standard_normal(shape).astype(np.float32) / 8

    b = GraphBuilder("image")
    scale, zero = b.constant(np.array(0.05, np.float32)), b.constant(np.array(113, np.uint8))
    x = b.add("conv", b.input("x", (1, 8, 13, 13)), b.constant(weights(32, 8, 1, 1)))
    codes = b.add("quantize_linear", x, scale, zero)
    own = b.constant(random.integers(-127, 128, (24, 32, 3, 3)).astype(np.int8))
    sums = b.add("conv_integer", codes, own, zero, pads=(1, 1, 1, 1))
    y = b.add("relu", b.add("mul", b.add("cast", sums, to=DType.F32), scale))
    return b.finish([b.add("conv", y, b.constant(weights(5, 24, 1, 1)), output="y")])


def cnn(dtype: DType) -> Graph:
    """Two convolutions, a mean of pixels and a product; the same numbers in each type."""
    random = np.random.default_rng(10)
    b = GraphBuilder("cnn")

    def weights(*shape: int) -> str:
        drawn = random.standard_normal(shape).astype(np.float16) / 8
        return b.constant(drawn.astype(dtype.numpy))

    y = b.input("x", (1, 3, 18, 18), dtype)
    for channels, stride in ((3, 1), (16, 2)):
        y = b.add("conv", y, weights(16, channels, 3, 3), pads=(1, 1, 1, 1), strides=(stride,) * 2)
        y = b.add("relu", b.add("add", y, weights(16, 1, 1)))
    y = b.add("reshape", b.add("reduce_mean", y, axes=(2, 3)), shape=(1, 16))
    return b.finish([b.add("softmax", b.add("matmul", y, weights(16, 10)), output="y", axis=-1)])


def encoder(dtype: DType) -> Graph:
    """One layer of a transformer with two heads; the same numbers in each type."""
    random = np.random.default_rng(11)
    b = GraphBuilder("encoder")
    length, width, heads = 12, 32, 2

    def weights(*shape: int) -> str:
        drawn = random.standard_normal(shape).astype(np.float16) / 8
        return b.constant(drawn.astype(dtype.numpy))

    def normal(x: str) -> str:
        return b.add("layer_norm", x, weights(width), weights(width))

    def by_head(x: str, perm: tuple[int, ...]) -> str:
        parts = b.add("matmul", x, weights(width, width))
        parts = b.add("reshape", parts, shape=(length, heads, width // heads))
        return b.add("transpose", parts, perm=perm)

    x = b.input("x", (length, width), dtype)
    y = normal(x)
    q, k, v = by_head(y, (1, 0, 2)), by_head(y, (1, 2, 0)), by_head(y, (1, 0, 2))
    mixed = b.add("matmul", b.add("softmax", b.add("matmul", q, k), axis=-1), v)
    y = b.add("reshape", b.add("transpose", mixed, perm=(1, 0, 2)), shape=(length, width))
    x = b.add("add", x, b.add("matmul", y, weights(width, width)))
    y = b.add("gelu", b.add("matmul", normal(x), weights(width, 2 * width)))
    y = b.add("matmul", y, weights(2 * width, width))
    return b.finish([b.add("add", x, y, output="y")])


NETWORKS = {
    "small": small_network,
    "bytes": byte_network,
    "image of bytes": byte_image,
    "halves": half_network,
    "cnn in f16": partial(cnn, DType.F16),
    "encoder in f16": partial(encoder, DType.F16),
}
_EXACT = {"cnn in f16": partial(cnn, DType.F32), "encoder in f16": partial(encoder, DType.F32)}
"""What the answers of a network are compared with, where that is not the network itself."""


def check(root: Path) -> int:
    """Cross over executables and a C library, then tune there; how many answers are wrong."""
    work = _emptied(root)
    wrong = 0
    for name, build in NETWORKS.items():
        _keep(work, name, build(), _EXACT.get(name, build)())
        wrong += sum(_crossed(root, name, target) for target in _TARGETS)
    wrong += _crossed_library(root, "small")
    wrong += _tuned(root, "small")
    print("all answers are right" if not wrong else f"{wrong} WRONG")
    return int(wrong > 0)


def farm(root: Path) -> int:
    """Tune for workers of two kinds: one here that only builds, and one there that measures."""
    work = _emptied(root)
    graph = small_network()
    _keep(work, "small", graph, graph)
    worker = ("-m", "tensorwright", "worker", "--stdio")
    commands = (
        (sys.executable, *worker, "--device", "none", "--name", "builder"),
        (sys.executable, str(Path(__file__).resolve()), "run", "python3", *worker, "--slots", "1"),
    )
    records = work / "farm.sqlite"
    with StdioFarm(commands) as workers:
        executable = tensorwright.tune(
            graph, target="aarch64-neon", threads=1, trials=12, records=records, workers=workers
        )
    executable.save(work / "farm.tw")
    with opened(records) as store:
        for record in store.query():
            print(f"  {record.status.value:14} {record.hardware}  {record.target}")
    return int(_runs_wrong(root, "small", "farm.tw", "small, tuned by a farm"))


def _emptied(root: Path) -> Path:
    """The folder of this script in the root, without anything in it."""
    work = root / _WORK
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    return work


def _keep(work: Path, name: str, graph: Graph, exact: Graph) -> None:
    """Write a network as a model, an input, and the output that it must have: that of `exact`."""
    (work / f"{name}.onnx").write_bytes(to_onnx(graph).SerializeToString())
    kind = graph.types["x"]
    shape = [extent for extent in kind.shape if isinstance(extent, int)]
    given = np.random.default_rng(3).standard_normal(shape).astype(kind.dtype.numpy)
    np.save(work / f"{name}-x.npy", given)
    (expected,) = interpret(exact, {"x": given.astype(exact.types["x"].dtype.numpy)}).values()
    np.save(work / f"{name}-y.npy", expected)


def _here(*words: str) -> None:
    _do(sys.executable, "-m", "tensorwright", *words)


def _crossed(root: Path, name: str, target: str) -> bool:
    """Compile here, run there; whether the answer is wrong."""
    made = f"{name}-{target}.tw"
    model = str(root / _WORK / f"{name}.onnx")
    _here("compile", model, "--target", target, "--threads", "1", "-o", f"{root / _WORK / made}")
    return _runs_wrong(root, name, made, f"{name} for {target}, compiled here")


def _runs_wrong(root: Path, name: str, made: str, what: str) -> bool:
    words = ("python3", "-m", "tensorwright", "run", f"work/{made}")
    status = call(root, [*words, "--input", f"x=work/{name}-x.npy", "-o", "work/answer.npy"])
    return _differs(root, name, what) if status == 0 else _said(what, "failed")


def _differs(root: Path, name: str, what: str) -> bool:
    work = root / _WORK
    answer, expected = (
        np.load(work / f).astype(np.float64) for f in ("answer.npy", f"{name}-y.npy")
    )
    difference = float(np.abs(answer - expected).max() / np.abs(expected).max())
    (work / "answer.npy").unlink()
    if difference > _TOLERANCES.get(name, _TOLERANCE):
        return _said(what, f"differs by {difference:.1e}")
    print(f"  {what}: right, to {difference:.1e}")
    return False


def _said(what: str, fault: str) -> bool:
    print(f"  {what}: {fault.upper()}")
    return True


def _crossed_library(root: Path, name: str) -> bool:
    """Write a C library here, build it by a cross-compiler (or there, where this machine has none),
    let its example check itself there.
    """
    work = root / _WORK
    # A library for this machine comes with answers for its example: the other one must give them.
    for target in ("native", "aarch64-neon"):
        folder = work / f"library-{target}"
        words = ("--target", target, "--threads", "1", "--emit", "c", "-o", str(folder))
        _here("compile", str(work / f"{name}.onnx"), *words)
    library = work / "library-aarch64-neon"
    for each in (work / "library-native").glob("example*.bin"):
        shutil.copy(each, library)
    there = f"--chdir={_HOME}/work/library-aarch64-neon"
    if shutil.which(_CROSS_COMPILER):
        _do("make", "-C", str(library), f"CC={_CROSS_COMPILER}", "example")
    elif call(root, ["env", there, "make", "CC=gcc", "example"]):
        return _said("C library", "not built")
    if call(root, ["env", there, "./example"]):
        return _said("C library", "failed")
    print("  C library: right")
    return False


def _tuned(root: Path, name: str) -> bool:
    """Tune, compile, run and save there; whether an answer is wrong."""
    tensorwright = ["python3", "-m", "tensorwright"]
    model = f"work/{name}.onnx"
    if call(root, [*tensorwright, "tune", model, "--trials", "8", "--threads", "1"]):
        return _said("tuning there", "failed")
    if call(root, [*tensorwright, "compile", model, "--threads", "1", "-o", "work/tuned.tw"]):
        return _said("compiling there", "failed")
    return _runs_wrong(root, name, "tuned.tw", f"{name}, tuned there")


def suite(root: Path, parts: Sequence[Sequence[str]]) -> int:
    """Run parts of the tests there, each by itself; how many have failed."""
    failed = 0
    for part in parts:
        started = time.monotonic()
        left_out = (f"--deselect={test}" for test in _OF_PROCESSORS)
        words = ("python3", "-m", "pytest", "-q", "--durations=5", *part, *left_out)
        status = call(root, ["env", f"--chdir={_HOME}/checkout", *words])
        failed += status != 0
        minutes = (time.monotonic() - started) / 60
        print(f"{part[0]} on arm64: {'failed' if status else 'passed'}, {minutes:.1f} minutes")
    return int(failed > 0)


def _do(*words: str) -> None:
    subprocess.run(words, check=True)


if __name__ == "__main__":
    raise SystemExit(main())
