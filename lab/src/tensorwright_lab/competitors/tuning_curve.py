"""The best of another tuner after numbers of trials and seconds: a file of JSON lines."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path

from tensorwright.base import InputError

FILE = "curve.jsonl"
"""Name of the file in the work folder of a tuner."""


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """After `trials` trials and `elapsed_s` seconds of tuning the best took `best_s` seconds.

    `best_s` is infinite as long as no trial has given a time.
    """

    trials: int
    elapsed_s: float
    best_s: float


def append_points(folder: Path, points: tuple[CurvePoint, ...]) -> None:
    """Add points to the curve in a folder."""
    with (folder / FILE).open("a") as file:
        file.writelines(json.dumps(_to_json(point)) + "\n" for point in points)


def read_curve(folder: Path) -> tuple[CurvePoint, ...]:
    """The curve in a folder; () where there is none. A line that was cut off by a crash is skipped.

    Raises:  InputError for a line that is something else.
    """
    path = folder / FILE
    if not path.exists():
        return ()
    lines = path.read_text().split("\n")
    return tuple(_read_point(line, path) for line in lines[:-1] if line)


def seconds_to_reach(points: tuple[CurvePoint, ...], time_s: float) -> float | None:
    """Seconds of tuning after which the best took at most `time_s`; None if it never did."""
    return next((point.elapsed_s for point in points if point.best_s <= time_s), None)


def _to_json(point: CurvePoint) -> dict[str, float | None]:
    best_s = point.best_s if math.isfinite(point.best_s) else None
    return {**asdict(point), "best_s": best_s}


def _read_point(line: str, path: Path) -> CurvePoint:
    try:
        fields = json.loads(line)
        best_s = math.inf if fields["best_s"] is None else float(fields["best_s"])
        return CurvePoint(int(fields["trials"]), float(fields["elapsed_s"]), best_s)
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            stage="peers",
            where=str(path),
            reason=f"{line[:60]!r} is not a point of a curve",
            remedy="remove the file: it only says how tuning went",
        ) from error
