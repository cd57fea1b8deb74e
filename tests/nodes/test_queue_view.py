"""The view of a cluster on a real Slurm: what is taken, what is free, who waits."""

from __future__ import annotations

from capacity_tui.tui.engine_view import CapacityEngine
from tests.nodes.slurm_cluster import SlurmCluster

PLAN = """\
model: {name: llama-3.1-8b}
training: {seq_len: 4096, micro_batch: 1, global_batch: 256}
parallelism: {tp: 4, zero: 1}
hardware: {name: h100-sxm-80gb, devices: 8}
"""


def test_the_view_tells_what_jobs_have_and_plans_for_the_rest(slurm: SlurmCluster) -> None:
    for node, count in (("gpu1", 8), ("gpu2", 6), ("gpu1", 8)):
        slurm.run(
            *("sbatch", "-o", "/dev/null", "-J", "train", "-w", node, "-p", "gpu"),
            *(f"--gpus-per-node=h100:{count}", "--wrap", "sleep 60"),
        )
    slurm.wait_for("two jobs", lambda: slurm.run("squeue", "-h", "-o", "%T").split().count("RUNNING") == 2)
    document = CapacityEngine().open(PLAN)
    first, last = document.clustered(document.compare().columns[0].mode)
    assert first.nodes is None
    assert last.nodes is not None
    everything, *nodes = last.nodes.rows["node"]
    cells = {row.name: row.cells for row in nodes}
    assert cells["gpu1"] == ("busy",) * 8
    assert sorted(cells["gpu2"]) == ["busy"] * 6 + ["free"] * 2
    assert cells["gpu3"] == ("planned",) * 8
    assert everything.change == {"hardware.devices": 8}
    running = [job.cells[1:4] for job in last.queue.rows if job.stands_out]
    assert running == [("train", "gpu", "running")] * 2
    assert [job.cells[3] for job in last.queue.rows if not job.stands_out] == ["pending"]
