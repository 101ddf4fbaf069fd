"""Files of torch.export in an environment without PyTorch: are the answers PyTorch's?

    python benchmarks/correctness/without_pytorch.py export FOLDER [NETWORK ...]
    python benchmarks/correctness/without_pytorch.py check FOLDER [NETWORK ...] [--json FILE]
    python benchmarks/correctness/without_pytorch.py damage FOLDER [NETWORK ...] [--seed 0]
        [--count 200]

`export` needs PyTorch and tensorwright-lab: it writes each network of the suite `wild` as
NETWORK.pt2, and beside it the inputs and the results of eager PyTorch.  The others need neither.
`check` compiles each file, runs it on the inputs and compares; the exit code is 1 where an error,
relative to the largest number of a result, is above 1e-4, and where PyTorch was imported.
`damage` changes, drops or cuts bytes of a file, of its members or of its JSON, and reads what is
left: each must end in a graph or in an error of ours, or the exit code is 1.
"""

from __future__ import annotations

import argparse
import importlib
import io
import json
import random
import sys
import time
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import tensorwright
from tensorwright.base import InternalError, TensorwrightError
from tensorwright.graph.model_import import load_model
from tensorwright.peers.process import max_rel_error

TOLERANCE = 1e-4


def export(folder: Path, networks: list[str]) -> bool:
    """Write the files, by PyTorch."""
    torch: Any = importlib.import_module("torch")
    pytree: Any = importlib.import_module("torch.utils._pytree")
    suite: Any = importlib.import_module("tensorwright_lab.zoo.wild.suite")
    maker: Any = importlib.import_module("tensorwright_lab.zoo.wild.export")
    drawing: Any = importlib.import_module("tensorwright_lab.zoo.wild.export")
    folder.mkdir(parents=True, exist_ok=True)
    for network in networks or suite.WILD:
        path, kept = folder / f"{network}.pt2", folder / f"{network}-results.npz"
        start = time.perf_counter()
        example = maker.make_example(f"{suite.BUILDERS[network]}:{network}", 0)
        module, tensors = example.module.eval(), tuple(drawing.draw_inputs(example, 1).values())
        if not path.exists():
            with torch.no_grad():
                torch.export.save(torch.export.export(module, tensors), path)
        if not kept.exists():
            with torch.no_grad():
                leaves = pytree.tree_leaves(module(*tensors))
            np.savez(folder / f"{network}-inputs.npz", *[each.numpy() for each in tensors])
            np.savez(kept, *[each.numpy() for each in leaves if each is not None])
        print(f"{network:16}{time.perf_counter() - start:8.1f} s", flush=True)
    return True


def check(folder: Path, networks: list[str], path: Path | None) -> bool:
    """Compile the files and compare; the rows of a file that is there are kept."""
    rows: dict[str, Any] = json.loads(path.read_text()) if path and path.exists() else {}
    for network in networks or names_of(folder):
        if network not in rows:
            rows[network] = row = checked(folder, network)
            print(f"{network:16}{row['error']:10.1e}{row['compile_s']:8.1f} s", flush=True)
            if path:
                path.write_text(json.dumps(rows, indent=1) + "\n")
    worst = max(row["error"] for row in rows.values())
    print(
        f"{len(rows)} networks, worst error {worst:.1e}, PyTorch imported: {'torch' in sys.modules}"
    )
    return bool(worst <= TOLERANCE) and "torch" not in sys.modules


def checked(folder: Path, network: str) -> dict[str, float]:
    """The error of a network, and the seconds of compiling it."""
    start = time.perf_counter()
    executable: Any = tensorwright.compile(folder / f"{network}.pt2")
    compile_s = time.perf_counter() - start
    results = executable(*arrays_of(folder / f"{network}-inputs.npz"))
    got = results if isinstance(results, tuple) else (results,)
    wanted = arrays_of(folder / f"{network}-results.npz")
    if len(got) != len(wanted):
        raise SystemExit(f"{network}: {len(got)} results, not {len(wanted)}")
    named = [{str(at): each for at, each in enumerate(every)} for every in (got, wanted)]
    return {"error": float(max_rel_error(*named) or 0.0), "compile_s": compile_s}


def arrays_of(path: Path) -> list[Any]:
    """The arrays of a file, in order."""
    with np.load(path) as arrays:
        return [arrays[name] for name in arrays.files]


def names_of(folder: Path) -> list[str]:
    """The networks that a folder has."""
    return sorted(path.stem for path in folder.glob("*.pt2"))


def damage(folder: Path, networks: list[str], seeds: range) -> bool:
    """Read damaged files: whether each ends in a graph or in an error of ours."""
    names = networks or names_of(folder)
    data = {name: (folder / f"{name}.pt2").read_bytes() for name in names}
    outcomes: Counter[str] = Counter()
    faults: dict[int, str] = {}
    for seed in seeds:
        draw = random.Random(seed)
        name = names[seed % len(names)]
        try:
            load_model(damaged(data[name], draw))
            outcomes["read"] += 1
        except InternalError as error:
            faults[seed] = str(error)
        except TensorwrightError as error:
            outcomes[type(error).__name__] += 1
        except Exception as error:  # noqa: BLE001  # what may not happen is what is looked for
            faults[seed] = f"{type(error).__name__}: {error}"
    print(f"damaged files: {dict(outcomes)}")
    for seed, fault in faults.items():
        print(f"\nseed {seed}, {names[seed % len(names)]}: {fault}")
        words = f"{sys.argv[0]} damage {folder} {' '.join(names)}"
        print(f"repeat: python {words} --seed {seed} --count 1")
    print(f"\n{len(seeds)} cases, {len(faults)} faults")
    return not faults


def damaged(data: bytes, draw: random.Random) -> bytes:
    """An archive with a fault: in its bytes, in a member, or in the JSON of one."""
    kind = draw.choice(("bytes", "cut", "member", "json", "json"))
    if kind == "bytes":
        changed = bytearray(data)
        directory = data.rfind(b"PK\x05\x06")
        for _ in range(draw.randint(1, 4)):
            first = draw.choice((0, max(0, directory - 4000)))  # headers, or the list of members
            changed[draw.randrange(first, len(data))] = draw.randrange(256)
        return bytes(changed)
    if kind == "cut":
        return data[: draw.randrange(len(data))]
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {each: archive.read(each) for each in archive.namelist()}
    if kind == "member":
        name = draw.choice(list(members))
        held = members.pop(name)
        if draw.random() < 0.5:
            members[name] = held[: len(held) // 2]
    else:
        name = draw.choice([each for each in members if each.endswith(".json")])
        tree = json.loads(members[name])
        spoil(tree, draw)
        members[name] = json.dumps(tree).encode()
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, held in members.items():
            archive.writestr(name, held)
    return file.getvalue()


def spoil(tree: Any, draw: random.Random) -> None:
    """Replace, drop or double something in a tree of JSON."""
    keys = list(tree) if isinstance(tree, dict) else list(range(len(tree)))
    key = draw.choice(keys)
    inner = tree[key]
    if isinstance(inner, dict | list) and inner and draw.random() < 0.9:
        spoil(inner, draw)
    elif draw.random() < 0.4:
        del tree[key]
    elif isinstance(tree, list) and draw.random() < 0.3:
        tree.append(inner)
    else:
        tree[key] = draw.choice((None, -1, 0, 1 << 70, "x", [], {}, [[]], True, 1.5, "s77"))


def main() -> None:
    """Do one of the steps."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("step", choices=("export", "check", "damage"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("networks", nargs="*", metavar="NETWORK")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=200)
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.count)
    match options.step:
        case "export":
            is_good = export(options.folder, options.networks)
        case "check":
            is_good = check(options.folder, options.networks, options.json)
        case _:
            is_good = damage(options.folder, options.networks, seeds)
    sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    main()
