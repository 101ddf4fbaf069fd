"""Compile files of the kinds that people have as they are, and compare calls with ONNX Runtime.

    python benchmarks/correctness/foreign.py [--family tagger] [--seed 0] [--limit 20] [--json FILE]

The files are made here: networks of PyTorch with seeded weights, written by its two exporters and
by the quantizers of ONNX Runtime; models that the converters of scikit-learn, LightGBM and XGBoost
write; functions that onnxscript writes; and graphs written operator by operator.  Nothing is
downloaded.  The converters are the laboratory's extra `foreign`: without it, their graphs are
listed with "no file".
Each is compiled without an option and called at five points of its open sizes: all 1 or the least
that the case allows, one of them 0, and random ones.  A result is right within 2e-4 of the greatest
magnitude, and within 5 % where activations are bytes: each runtime rounds them in its own order.

program      the program for all sizes answers
instance     the network is compiled for these sizes, and answers
both refuse  ONNX Runtime and we refuse the sizes
ours only    we answer, ONNX Runtime does not
refused      we refuse what ONNX Runtime answers
wrong        another result, or an error that is not one of ours

Exit code 1 if one is refused or wrong.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections import Counter
from pathlib import Path

from tensorwright_lab.judging.foreign import ANSWERS, FAULTS, Verdict, judge
from tensorwright_lab.zoo.foreign import CASES, Case


def main() -> int:
    """Check the cases that the options name."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--family", action="append", help="only this one; may be repeated")
    parser.add_argument("--exporter", action="append", help="only files of this one")
    parser.add_argument("--seed", type=int, default=0, help="of the points (default 0)")
    parser.add_argument("--limit", type=int, help="at most so many cases")
    parser.add_argument("--json", type=Path, help="a file for all verdicts")
    given = parser.parse_args()
    logging.getLogger("tensorwright").setLevel(logging.ERROR)
    chosen = [
        case
        for case in CASES
        if (not given.family or case.family in given.family)
        and (not given.exporter or case.exporter in given.exporter)
    ][: given.limit]
    verdicts = []
    print(_row("graph (exporter)", *ANSWERS, "compile s"))
    for case in chosen:
        verdicts.append(judge(case, given.seed))
        _show(verdicts[-1])
    if given.json:
        given.json.write_text(json.dumps([each.record() for each in verdicts], indent=1))
    return _finish(verdicts, chosen)


def _row(title: str, *columns: object) -> str:
    return f"{title:58}" + "".join(f"{column:>12}" for column in columns)


def _show(verdict: Verdict) -> None:
    if verdict.no_file:
        print(f"{verdict.title:58}   no file: {verdict.no_file}", flush=True)
        return
    counts = [verdict.counts[answer] or "." for answer in ANSWERS]
    print(_row(verdict.title, *counts, f"{verdict.compile_s:.1f}"), flush=True)
    for fault in verdict.faults:
        print("    " + fault.strip().replace("\n", "\n      "), flush=True)


def _finish(verdicts: list[Verdict], cases: list[Case]) -> int:
    total: Counter[str] = Counter()
    by_exporter: dict[str, Counter[str]] = {}
    for verdict, case in zip(verdicts, cases, strict=True):
        total.update(verdict.counts)
        by_exporter.setdefault(case.exporter, Counter()).update(verdict.counts)
    for exporter, counts in by_exporter.items():
        print(_row(f"points of {exporter}", *(counts[answer] for answer in ANSWERS)))
    families = len({case.family for case in cases})
    files = [verdict for verdict in verdicts if not verdict.no_file]
    spent = sum(verdict.compile_s for verdict in files)
    print(_row("all points", *(total[answer] for answer in ANSWERS), f"{spent:.1f}"))
    bad = sum(bool(verdict.faults) for verdict in files)
    print(
        f"{len(files)} graphs of {families} families, {len(verdicts) - len(files)} not written; "
        f"{len(files) - bad} right, {bad} with faults"
    )
    return 1 if any(total[answer] for answer in FAULTS) else 0


if __name__ == "__main__":
    sys.exit(main())
