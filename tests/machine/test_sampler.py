"""Live samples: rates between samples, reasons where there is nothing to tell, little cost."""

from __future__ import annotations

import time

from recorded import GIB, replay

from capacity_tui.engine.machine import Counters, Sampler


def sampler(tmp_path, *totals: Counters, times=(0.0, 2.0, 4.0)) -> Sampler:
    clock, read = iter(times), iter(totals)
    return Sampler(replay("container_v2", tmp_path), counters=lambda: next(read), clock=lambda: next(clock))


def test_rates_need_two_samples(tmp_path):
    live = sampler(tmp_path, Counters(10, 100, 0, 0, 0, 0), Counters(11, 104, 4096, 0, 2000, 600))
    first, second = live.sample(), live.sample()
    assert first.cpu_percent.value is None
    assert first.cpu_percent.reason == first.disk_read_bytes_per_second.reason == "rates need two samples"
    assert second.cpu_percent.value == 25
    assert second.disk_read_bytes_per_second.value == 2048
    assert second.network_receive_bytes_per_second.value == 1000
    assert second.network_send_bytes_per_second.value == 300


def test_a_counter_that_starts_anew_is_no_negative_rate(tmp_path):
    live = sampler(tmp_path, Counters(1, 2, 9, 9, 9, 9), Counters(1, 2, 0, 10, 9, 9))
    live.sample()
    second = live.sample()
    assert second.disk_read_bytes_per_second.reason == "the counter started anew"
    assert second.cpu_percent.reason == "no time has passed"
    assert second.disk_write_bytes_per_second.value == 0.5


def test_each_core_is_told_until_their_number_changes(tmp_path):
    cores = (((0.0, 0.0), (0.0, 0.0)), ((2.0, 2.0), (0.5, 2.0)), ((3.0, 3.0),))
    live = sampler(tmp_path, *(Counters(None, None, 0, 0, 0, 0, cores=each) for each in cores))
    first, second, third = (live.sample().cpu_per_core_percent for _ in cores)
    assert first.reason == "rates need two samples"
    assert second.value == (100.0, 25.0)
    assert third.reason == "the number of CPUs has changed"


def test_memory_is_the_containers(tmp_path):
    sample = sampler(tmp_path, Counters(1, 2, 0, 0, 0, 0)).sample()
    assert sample.memory_total_bytes.value == 16 * GIB
    assert sample.memory_used_bytes.value == 3 * GIB


def test_amd_gpus_are_sampled_without_a_library(tmp_path):
    live = Sampler(replay("mi300x_node", tmp_path))
    for _ in range(50):
        gpus = live.sample().gpus
        if gpus.value is not None:
            break
        time.sleep(0.02)
    assert [gpu.utilization_percent.value for gpu in gpus.value or ()] == [37, None]
    live.close()


def test_a_sample_of_this_machine_costs_under_a_hundredth_of_a_core():
    live = Sampler()
    live.sample()
    count = 20
    before = time.process_time()
    for _ in range(count):
        live.sample()
    assert (time.process_time() - before) / count < 0.01  # of the second between samples
    live.close()
