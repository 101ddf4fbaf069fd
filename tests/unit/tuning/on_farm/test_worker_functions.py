"""A worker builds and measures what a session sends it."""

from __future__ import annotations

import json
import math
from dataclasses import astuple

from tests.targets import native_target
from tests.unit.tuning.helpers import doubled

from tensorwright.artifacts import build_request
from tensorwright.farm import Payload
from tensorwright.graph import program
from tensorwright.processes import never
from tensorwright.records import Status, read_workload, workload_data
from tensorwright.tuning.measuring import Measurement, MeasureOptions
from tensorwright.tuning.on_farm import worker_functions

WORKLOAD = program(doubled().outputs)


def test_workloads_and_requests_are_read_back() -> None:
    there = read_workload(workload_data(WORKLOAD))
    assert (there.key, str(there)) == (WORKLOAD.key, str(WORKLOAD))
    request = build_request(WORKLOAD, "", native_target())
    back = worker_functions.read_request(worker_functions.request_data(request))
    assert str(back.outputs[0]) == str(request.outputs[0])
    assert back.target == request.target


def test_a_candidate_is_built_and_measured() -> None:
    request = build_request(WORKLOAD, "", native_target())
    built = worker_functions.build_candidate(Payload(worker_functions.request_data(request)), never)
    assert built is not None
    data = {
        "workloads": 1,
        "races": [astuple(worker_functions.Race(0, 1, threads=1))] * 2,
        "target": worker_functions.write(native_target()),
        "options": worker_functions.write(MeasureOptions(repeats=1, min_sample_s=1e-4)),
        "seed": 0,
        "reference_s": 0.0,
        "reference_every_s": 60.0,
    }
    blobs = (
        json.dumps(workload_data(WORKLOAD)).encode(),
        *built.blobs,
        *built.blobs,
    )
    answer = worker_functions.measure_candidates(Payload(data, blobs), never)
    assert answer is not None
    assert [one.status for one in worker_functions.read(answer.data["measured"])] == [Status.OK] * 2
    assert answer.data["reference_s"] > 0
    # Expect a reference a thousand times as fast: it has drifted, and nothing is measured.
    hasty = {**data, "reference_s": answer.data["reference_s"] / 1000, "reference_every_s": 0.0}
    stopped = iter([False, False, True])
    answer = worker_functions.measure_candidates(Payload(hasty, blobs), lambda: next(stopped, True))
    assert answer is None or "reference kernel" in answer.data["drift"]


def test_what_does_not_build_says_why() -> None:
    request = build_request(WORKLOAD, "vectorize(y, nowhere)", native_target())
    built = worker_functions.build_candidate(Payload(worker_functions.request_data(request)), never)
    assert built is not None
    assert built.data["status"] == "build_error"


def test_a_kernel_races_against_the_best_of_those_before_it() -> None:
    fast, slow = Measurement(Status.OK, (1.0, 3.0)), Measurement(Status.CENSORED, (0.5,))
    assert worker_functions.fastest_s(fast) == 1.0
    assert worker_functions.fastest_s(slow) == math.inf
    assert (
        worker_functions.Race(0, 1, 1, best_s=2.0).limit_s(worker_functions.fastest_s(fast)) == 1.0
    )
    assert worker_functions.Race(0, 1, 1, best_s=2.0).limit_s(math.inf) == 2.0
    assert worker_functions.Race(0, 1, 1).limit_s(1.0) == math.inf
