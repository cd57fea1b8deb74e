"""The Slurm that other tests talk to is a real one: several nodes, GPUs, racks, accounting."""

from tests.nodes.slurm_cluster import SlurmCluster


def test_several_nodes_run_one_command_each(slurm: SlurmCluster) -> None:
    said = slurm.run("srun", "-N3", "-p", "gpu", "--gpus-per-node=h100:8", "printenv", "SLURMD_NODENAME")
    assert sorted(said.split()) == ["gpu1", "gpu2", "gpu3"]


def test_accounting_keeps_what_has_run(slurm_with_accounting: SlurmCluster) -> None:
    cluster = slurm_with_accounting
    number = cluster.run("sbatch", "--parsable", "--wait", "-o", "/dev/null", "-p", "cpu", "--wrap", "true").strip()
    cluster.wait_for(
        "the record", lambda: "COMPLETED" in cluster.run("sacct", "-X", "-n", "-P", "-j", number, "-o", "State")
    )
