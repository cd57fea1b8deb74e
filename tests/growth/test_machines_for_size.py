"""What a job of a larger size needs to end in time, after how it grew."""

from __future__ import annotations

import math

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.growth import SizedJob, machines_for_size
from capacity_tui.engine.growth import fit_all as fit_all_growth
from capacity_tui.engine.numeric import mean

SIZES = (100, 1000, 10_000, 50_000)
PER_SAMPLE = {"seconds": 2.5e-3, "peak_memory_bytes": 4000.0, "disk_bytes": 400.0, "cpu_seconds": 10e-3}
HOUR, DAY = 3600.0, 86_400.0


@pytest.fixture(scope="module")
def fits():
    points = {
        figure: [(float(n), rate * n * wobble) for n in SIZES for wobble in (0.99, 1.01)]
        for figure, rate in PER_SAMPLE.items()
    }
    return fit_all_growth(points)


@pytest.fixture(scope="module")
def jobs(fits) -> dict[float, SizedJob]:
    return {deadline: machines_for_size(fits, 1e7, deadline) for deadline in (DAY, HOUR)}


def test_a_job_that_ends_in_time_stays_whole(jobs):
    job = jobs[DAY]
    assert job.parts == 1
    assert job.cores == 4
    assert mean(job.seconds.value) == pytest.approx(2.5e4, rel=0.02)
    assert mean(job.memory_bytes.high) >= 4e10
    assert mean(job.storage_bytes.value) == pytest.approx(4e9, rel=0.02)
    assert job.database.kind == "file"


def test_a_shorter_deadline_splits_it_and_takes_more_machines(jobs):
    whole, split = jobs[DAY], jobs[HOUR]
    assert split.parts == math.ceil(mean(split.parts * split.seconds.high) / HOUR)
    assert mean(split.seconds.high) <= HOUR
    assert split.cores == split.parts * 4
    assert mean(split.storage_bytes.value) == pytest.approx(mean(whole.storage_bytes.value), rel=0.02)


@pytest.mark.parametrize("deadline", [DAY, HOUR])
def test_machines_hold_all_parts_and_the_cheapest_comes_first(jobs, deadline):
    job, catalog = jobs[deadline], load_catalog()
    prices = [mean(each.usd.value) for each in job.machines]
    assert prices == sorted(prices)
    assert len({catalog.instances[each.instance].provider for each in job.machines}) == len(job.machines) == 3
    for each in job.machines:
        assert each.cores >= job.cores
        assert each.memory_bytes >= mean(job.memory_bytes.high) * job.parts
        assert mean(each.usd.value) == pytest.approx(each.usd_per_hour * mean(job.seconds.value) / HOUR)


def test_what_was_not_measured_is_open(fits):
    job = machines_for_size(fits[:1], 1e6, DAY)
    assert (job.memory_bytes, job.storage_bytes, job.database) == (None, None, None)
    assert job.machines


def test_what_cannot_end_in_time_is_refused(fits):
    with pytest.raises(CapacityError, match="no number of parts"):
        machines_for_size(fits, 1e9, 1e-3)
    with pytest.raises(CapacityError, match="how time grows"):
        machines_for_size(fits[1:], 1e6, DAY)
