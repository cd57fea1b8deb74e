"""One command on every node of a cluster: real servers where they start, and answers for nodes that give none."""

import time

import pytest

from capacity_tui.engine.errors import CapacityError, LauncherError
from capacity_tui.engine.nodes import chosen_launcher
from capacity_tui.engine.nodes.launcher import Order, Ssh, read_hosts, run_on_nodes
from capacity_tui.engine.nodes.slurm import Slurm, names_of, parse_nodes, racks_of, slurm_nodes


def by_node(launcher, order, nodes=None):
    return {answer.node: answer for answer in launcher.run(order, nodes or launcher.nodes())}


def test_ssh_runs_a_command_on_every_host(ssh_hosts):
    launcher = read_hosts(ssh_hosts)
    assert launcher.nodes() == ("n1", "n2", "n3")
    assert launcher.racks == {"n1": "r1", "n2": "r1", "n3": "r2"}
    found = by_node(launcher, Order(("sh", "-c", "cat; echo 'a  b'"), "told\n", 20))
    assert all((answer.output, answer.failure) == ("told\na  b\n", "") for answer in found.values())
    assert set(found) == {"n1", "n2", "n3"}


def test_a_host_that_hangs_or_is_gone_is_named_and_holds_up_no_other(ssh_hosts):
    order = Order(("sh", "-c", 'test "$(cat)" = x; sleep 30 & wait'), "x", 1.5)
    started = time.monotonic()
    found = by_node(Ssh(("n1", "gone", "n2")), order)
    assert found["n1"].failure == found["n2"].failure == "no answer within 1.5 s"
    assert "refused" in found["gone"].failure
    assert time.monotonic() - started < 15
    failed = by_node(read_hosts(ssh_hosts), Order(("sh", "-c", "echo told >&2; exit 3")), ["n1"])
    assert failed["n1"].failure == "exit code 3: told"
    late = by_node(read_hosts(ssh_hosts), Order(("sh", "-c", "echo 3 of 4 came >&2; sleep 30"), seconds=3), ["n1"])
    assert late["n1"].failure == "no answer within 3 s: 3 of 4 came"


@pytest.mark.parametrize("stream", ["", ">&2"])
def test_a_node_that_writes_on_and_on_is_ended_and_takes_no_memory(stream):
    import resource

    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    order = Order((), "told", 30)
    (flooded,) = run_on_nodes(order, ("n1",), lambda _: ("sh", "-c", f"yes {stream}"))
    assert (flooded.failure, flooded.output) == ("more than 64.0 MiB were written", "")
    assert time.monotonic() - started < 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400 * 1024
    (large,) = run_on_nodes(order, ("n1",), lambda _: ("sh", "-c", "head -c 10000000 /dev/zero; exec cat"))
    assert (large.failure, len(large.output), large.output[-4:]) == ("", 10_000_004, "told")


def test_asking_can_be_given_up():
    answers = run_on_nodes(Order(()), ("n1", "n2"), lambda node: ("sleep", "30" if node == "n2" else "0"))
    began = time.monotonic()
    assert next(answers).node == "n1"
    answers.close()
    assert time.monotonic() - began < 10


def test_slurm_runs_a_step_on_every_node(slurm):
    assert Slurm().nodes() == ("cpu1", "gpu1", "gpu2", "gpu3")
    order = Order(("sh", "-c", "echo $SLURMD_NODENAME $(cat)"), "told", 30)
    found = by_node(Slurm("gpu"), order, ("gpu1", "gpu2", "gpu3"))
    assert {node: answer.output.split() for node, answer in found.items()} == {
        node: [node, "told"] for node in ("gpu1", "gpu2", "gpu3")
    }
    gpu = next(node for node in slurm_nodes() if node.name == "gpu1")
    assert (gpu.cpus, gpu.resources, gpu.partitions) == (16, {"gpu:h100": 8}, ("gpu", "spot"))


def test_what_the_controller_tells_is_read():
    assert parse_nodes("No nodes in the system\n\n") == ()
    text = (
        "NodeName=g1 Arch=x86_64 CPUAlloc=64 CPUTot=192 Gres=gpu:h100:8(S:0-1),nic:mlx:2 GresUsed=gpu:h100:4(IDX:0-3) "
        "RealMemory=2063000 State=MIXED+DRAIN Partitions=gpu,all CurrentWatts=4100 "
        "Reason=GPU 3 fell off the bus [root@2026-11-01T08:00:00]\n"
        "NodeName=c1 CPUTot=16 RealMemory=64000 State=IDLE Partitions=cpu Gres=(null) CurrentWatts=n/s\n"
    )
    first, second = parse_nodes(text)
    assert (first.state, first.reason) == ("mixed+drain", "GPU 3 fell off the bus")
    assert (first.resources, first.used, first.watts) == ({"gpu:h100": 8, "nic:mlx": 2}, {"gpu:h100": 4}, 4100.0)
    assert (second.resources, second.used, second.watts) == ({}, {}, None)
    assert names_of("n[01-03,7],login,r[1-2]n[1-2]") == (
        "n01", "n02", "n03", "n7", "login", "r1n1", "r1n2", "r2n1", "r2n2"
    )  # fmt: skip
    topology = "SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[1-2]\nSwitchName=spine Level=1 Nodes=n[1-2] Switches=leaf1"
    assert racks_of(topology) == {"n1": ("leaf1", "spine"), "n2": ("leaf1", "spine")}


@pytest.mark.parametrize("text", ["", "# nothing\n", "-oProxyCommand=rm\n"])
def test_a_file_without_hosts_is_refused(text, tmp_path):
    file = tmp_path / "hosts"
    file.write_text(text)
    with pytest.raises(LauncherError):
        read_hosts(file)


def test_what_reaches_nodes_has_to_be_there(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    for options in ({}, {"slurm": True}, {"hosts": tmp_path / "none"}, {"slurm": True, "ray": "auto"}):
        with pytest.raises(CapacityError) as refused:
            chosen_launcher(**options).nodes()
        assert refused.value.hint
