"""What tests of nodes have in common: a real Slurm on this machine, where it can be started."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nodes.slurm_cluster import NotStartedError, SlurmCluster
from tests.nodes.ssh_host import SshHost


def running(folder_factory: pytest.TempPathFactory, accounting: bool) -> Iterator[SlurmCluster]:
    """A Slurm that runs for the whole session; a skip with the reason where it does not start."""
    cluster = SlurmCluster(folder_factory.mktemp("slurm"), accounting)
    try:
        try:
            cluster.start()
        except NotStartedError as reason:
            pytest.skip(f"no Slurm of our own: {reason}")
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="session")
def _started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    yield from running(tmp_path_factory, accounting=False)


@pytest.fixture(scope="session")
def _started_with_accounting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    yield from running(tmp_path_factory, accounting=True)


def _reached(cluster: SlurmCluster, patch: pytest.MonkeyPatch) -> Iterator[SlurmCluster]:
    for name, value in cluster.environment.items():
        patch.setenv(name, value)
    yield cluster
    cluster.cancel_all()


@pytest.fixture
def slurm(_started: SlurmCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmCluster]:
    """Slurm with nodes gpu1-gpu3 (8 H100 each, two racks) and cpu1, which commands of this test ask; no accounting."""
    yield from _reached(_started, monkeypatch)


@pytest.fixture
def slurm_with_accounting(
    _started_with_accounting: SlurmCluster, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SlurmCluster]:
    """The same with slurmdbd and a database, so that sacct answers; starting it takes seconds more."""
    yield from _reached(_started_with_accounting, monkeypatch)


@pytest.fixture(scope="session")
def _ssh_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshHost]:
    host = SshHost(tmp_path_factory.mktemp("ssh"))
    try:
        try:
            host.start()
        except NotStartedError as reason:
            pytest.skip(f"no ssh server of our own: {reason}")
        yield host
    finally:
        host.stop()


@pytest.fixture
def ssh_hosts(_ssh_server: SshHost, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A file of hosts n1, n2 (rack r1) and n3 (r2), which the ssh of this test reaches on this machine."""
    monkeypatch.setenv("PATH", str(_ssh_server.command().parent), prepend=os.pathsep)
    file = tmp_path / "hosts"
    file.write_text("n1 rack=r1\nn2 rack=r1 slots=8\n# a remark\nn3 rack=r2\n")
    return file


@pytest.fixture
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh_catalog: None) -> Path:
    """Folders of a user who has kept nothing yet."""
    for name in ("CONFIG", "DATA", "STATE"):
        monkeypatch.setenv(f"CAPACITY_TUI_{name}", str(tmp_path / name.lower()))
    return tmp_path
