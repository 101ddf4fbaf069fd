"""The table of results in the README, from the files in `benchmarks/results`.

    python docs/site/results_table.py            writes it between the marks in the README

A test compares what the README has with what the files say.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
MARKS = "<!-- results: written by docs/site/results_table.py -->", "<!-- end of results -->"
FILES = (
    ("models-tuned-native", "AVX-512, executed in halves", "tuned, 3 minutes each"),
    ("models-untuned-native-wide", "AVX-512, full width", "untuned"),
    ("models-untuned-avx2-machine", "AVX2", "untuned"),
)
INDUCTOR = "pytorch-backends"
PEERS = (("onnxruntime", "ONNX Runtime"), ("openvino", "OpenVINO"))


def table() -> str:
    """Markdown: for each file how many times as fast as each peer, mean and least; then the same
    of TorchInductor.
    """
    return "\n".join([*_lines(), "", _over_inductor()]) + "\n"


def in_readme(readme: str, text: str) -> str:
    """The README with this table between its marks."""
    begin, end = map(re.escape, MARKS)
    between = f"{MARKS[0]}\n{text}{MARKS[1]}"
    return re.sub(f"{begin}.*?{end}", lambda _: between, readme, flags=re.DOTALL)


def _lines() -> Iterator[str]:
    heads = [f"over {title}" for _, title in PEERS]
    columns = [
        "two cores with",
        "schedules",
        "networks",
        *heads,
        "over the faster",
        "least",
        "date",
    ]
    yield "| " + " | ".join(columns) + " |"
    yield "|---|---|---:|" + "---:|" * len(PEERS) + "---:|---:|---|"
    for name, machine, schedules in FILES:
        measured = json.loads((RESULTS / f"{name}.json").read_text())
        rows = [row for row in measured["rows"] if not row["failure"]]
        means = [f"{_mean(_ratios(rows, peer)):.2f}" for peer, _ in PEERS]
        best = [row["ratio"] for row in rows]
        cells = [machine, schedules, str(len(rows)), *means, f"**{_mean(best):.2f}**"]
        link = f"[{measured['started'][:10]}](benchmarks/results/{name}.json)"
        yield "| " + " | ".join([*cells, f"{min(best):.2f}", link]) + " |"


def _over_inductor() -> str:
    measured = json.loads((RESULTS / f"{INDUCTOR}.json").read_text())
    times = [{name: row[name]["time_s"] for name in row} for row in measured["rows"].values()]
    usual = [row["inductor"] / row["tensorwright"] for row in times]
    most = [row["inductor-max"] / row["tensorwright"] for row in times]
    better = list(map(min, usual, most))
    return (
        f"As the backend of `torch.compile`, untuned, tensorwright runs {len(times)} networks "
        f"{_mean(usual):.2f} times as fast\nas TorchInductor by default, and "
        f"{_mean(most):.2f} times as fast as it with `max-autotune` and frozen weights. Over the\n"
        f"better of both for each network it is {_mean(better):.2f} times, and at least "
        f"{min(better):.2f} times "
        f"([{measured['measured']}](benchmarks/results/{INDUCTOR}.json))."
    )


def _ratios(rows: Sequence[Mapping[str, Any]], peer: str) -> list[float]:
    """How many times as fast as a peer, of each network that it answers rightly."""
    return [
        each["time_ms"] / row["ours_ms"]
        for row in rows
        for each in row["peers"]
        if each["peer"] == peer and each["time_ms"] and not each["failure"]
    ]


def _mean(ratios: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


if __name__ == "__main__":
    README = ROOT / "README.md"
    README.write_text(in_readme(README.read_text(), table()))
