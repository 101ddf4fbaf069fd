"""A worker builds and measures what a session sends it."""

from __future__ import annotations

import math

from tests.targets import native_target
from tests.unit.tuning.helpers import doubled

from tensorwright.build import build_request
from tensorwright.farm import Payload
from tensorwright.graph import program_workload
from tensorwright.processes import never
from tensorwright.records import Status
from tensorwright.tuning.measuring import MeasureOptions
from tensorwright.tuning.on_farm.wire import (
    read,
    read_request,
    read_workload,
    request_data,
    workload_data,
    write,
)
from tensorwright.tuning.on_farm.worker_functions import build_candidate, measure_candidates

WORKLOAD = program_workload(doubled().outputs)


def test_workloads_and_requests_are_read_back() -> None:
    there = read_workload(workload_data(WORKLOAD))
    assert (there.key, str(there)) == (WORKLOAD.key, str(WORKLOAD))
    request = build_request(WORKLOAD, "", native_target())
    back = read_request(request_data(request))
    assert str(back.outputs[0]) == str(request.outputs[0])
    assert back.target == request.target


def test_a_candidate_is_built_and_measured() -> None:
    request = build_request(WORKLOAD, "", native_target())
    built = build_candidate(Payload(request_data(request)), never)
    assert built is not None
    data = {
        "workload": workload_data(WORKLOAD),
        "target": write(native_target()),
        "options": write(MeasureOptions(repeats=1, min_sample_s=1e-4)),
        "seed": 0,
        "threads": 1,
        "best_s": write(math.inf),
        "reference_s": 0.0,
        "reference_every_s": 60.0,
    }
    answer = measure_candidates(Payload(data, built.blobs), never)
    assert answer is not None
    (one,) = read(answer.data["measured"])
    assert one.status is Status.OK
    assert answer.data["reference_s"] > 0
    # Expect a reference a thousand times as fast: it has drifted, and nothing is measured.
    hasty = {**data, "reference_s": answer.data["reference_s"] / 1000, "reference_every_s": 0.0}
    stopped = iter([False, False, True])
    answer = measure_candidates(Payload(hasty, built.blobs), lambda: next(stopped, True))
    assert answer is None or "reference kernel" in answer.data["drift"]


def test_what_does_not_build_says_why() -> None:
    request = build_request(WORKLOAD, "vectorize(y, nowhere)", native_target())
    built = build_candidate(Payload(request_data(request)), never)
    assert built is not None
    assert built.data["status"] == "build_error"
